package mockcarrier

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// AdminPath is where the admin API begins.
const AdminPath = "/__mock/"

// AdminHandler returns the admin API, with which tests in any language do what
// those in Go do by methods:
//
//	GET    /__mock/health    {"status":"ok","now":…}
//	GET    /__mock/ledger    a list of Charge
//	GET    /__mock/requests  a list of Request; ?operation= narrows it down
//	GET    /__mock/faults    a list of {"fault":…,"seen":…,"fired":…}
//	POST   /__mock/faults    a Fault, or a list of them, of which the last is the newest
//	DELETE /__mock/faults    ends all rules
//	POST   /__mock/reset     as Reset does
//	POST   /__mock/clock     {"advance":"72h"}, a Go duration
//
// A [Fault] has its fields in lower camel case, and Wait as a Go duration:
//
//	{"kind":"status","status":503,"header":{"Retry-After":["1"]},"operations":["createShipment"],"first":2}
//
// The carrier serves it itself where [WithAdmin] lets it; the handler is for a
// listener of its own. It asks for no credentials. On the loopback interface it
// refuses requests to another host name than localhost or a loopback address,
// and everywhere those that a browser makes for a page of another origin.
func (c *Carrier) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /__mock/health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "now": c.now()})
	})
	mux.HandleFunc("GET /__mock/ledger", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, notNil(c.Ledger()))
	})
	mux.HandleFunc("GET /__mock/requests", c.adminRequests)
	mux.HandleFunc("GET /__mock/faults", c.adminFaults)
	mux.HandleFunc("POST /__mock/faults", c.adminInject)
	mux.HandleFunc("DELETE /__mock/faults", func(w http.ResponseWriter, _ *http.Request) {
		c.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /__mock/reset", func(w http.ResponseWriter, _ *http.Request) {
		c.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /__mock/clock", c.adminClock)

	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeRefusal(w, refuse(http.StatusForbidden, "cross_origin", "Forbidden", "Pages of another origin are refused."))
	}))
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if listensOnLoopback(r) && !isLoopback(r.Host) {
			writeRefusal(w, refuse(http.StatusForbidden, "foreign_host", "Forbidden", "The host %s is refused.", r.Host))
			return
		}
		rec := &recorder{header: http.Header{}}
		mux.ServeHTTP(rec, r)
		if a := rec.answer(); a.Status < http.StatusBadRequest || a.Header.Get("Content-Type") == problemType {
			copyAnswer(w, a)
		} else { // the mux's own
			refused := refuseStatus(a.Status)
			if allow := a.Header.Get("Allow"); allow != "" {
				refused.with("Allow", allow)
			}
			writeRefusal(w, refused)
		}
	}))
}

// servesAdmin says whether a request is for the admin API, and it is there.
func (c *Carrier) servesAdmin(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, AdminPath) {
		return false
	}
	if on := c.config.admin; on != nil {
		return *on
	}
	return listensOnLoopback(r)
}

func (c *Carrier) adminRequests(w http.ResponseWriter, r *http.Request) {
	list := []Request{}
	operation := r.URL.Query().Get("operation")
	for _, entry := range c.Requests() {
		if operation == "" || entry.Operation == operation {
			list = append(list, entry)
		}
	}
	writeJSON(w, http.StatusOK, list)
}

func (c *Carrier) adminFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, c.rules.report(false))
}

func (c *Carrier) adminInject(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		body = append(append([]byte("["), body...), ']')
	}
	var faults []Fault
	err := json.Unmarshal(body, &faults)
	if err == nil && len(faults) == 0 {
		err = errors.New("no fault is given")
	}
	if err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_fault", "Bad fault", "%s", strings.TrimPrefix(err.Error(), "mockcarrier: ")))
		return
	}
	for _, f := range faults {
		c.Inject(f)
	}
	writeJSON(w, http.StatusCreated, c.rules.report(false))
}

func (c *Carrier) adminClock(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	var request struct {
		Advance string `json:"advance"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&request)
	by, durationErr := time.ParseDuration(request.Advance)
	if err = errors.Join(err, durationErr); err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_clock", "Bad clock", `The body is to be like {"advance":"72h"}.`))
		return
	}
	c.Advance(by)
	writeJSON(w, http.StatusOK, map[string]any{"now": c.now()})
}

func adminBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "body_too_large", "Body too large", "A body has at most %d bytes.", maxBody)
	}
	return body, nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	copyAnswer(w, answer{Status: status, Header: http.Header{"Content-Type": {jsonType}}, Body: append(encode(v), '\n')})
}

func writeRefusal(w http.ResponseWriter, r *refusal) { copyAnswer(w, r.answer("")) }

func copyAnswer(w http.ResponseWriter, a answer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

func listensOnLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(addr.String())
}

// isLoopback says whether a host, with or without a port, is this machine's own.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// notNil makes the JSON of an empty list [] rather than null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
