package mockcarrier

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/openapi"
)

// AdminPath is where the admin API begins.
const AdminPath = "/__mock/"

// maxState is the most bytes that a state has that comes over the admin API.
const maxState = 16 << 20

// AdminHandler returns the admin API, with which tests in any language do what
// those in Go do by methods. Its OpenAPI description is served with it:
//
//	GET    /__mock/              a page that shows journal and ledger, and switches faults
//	GET    /__mock/openapi.yaml  the description of this API
//	GET    /__mock/carrier.yaml  that of the carrier's
//	GET    /__mock/health        {"status":"ok","now":…}
//	GET    /__mock/operations    a list of {"id":…,"method":…,"path":…}
//	GET    /__mock/ledger        a list of Charge
//	GET    /__mock/requests      a list of Request; ?operation=, after= and limit= narrow it down
//	GET    /__mock/deliveries    a list of Delivery; ?after= and limit= narrow it down
//	GET    /__mock/faults        a list of {"id":…,"fault":…,"seen":…,"fired":…}
//	POST   /__mock/faults        a Fault, or a list of them, of which the last is the newest
//	DELETE /__mock/faults        ends all rules
//	DELETE /__mock/faults/{id}   ends one
//	GET    /__mock/expectations  what Expectations returns
//	POST   /__mock/expectations  {"operation":…,"with":[Matcher…],"times":2}, or a list; as Expect does
//	DELETE /__mock/expectations  forgets them
//	GET    /__mock/verification  {"ok":…,"report":…}: what the end of a Go test would say
//	POST   /__mock/explanation   {"method":…,"path":…,"header":…,"body":…}: as Explain does
//	DELETE /__mock/tokens        as RevokeTokens does
//	POST   /__mock/reset         as Reset does
//	POST   /__mock/clock         {"advance":"72h"}, a Go duration; as Advance does
//	GET    /__mock/state         what Snapshot returns, without the secrets of subscriptions
//	PUT    /__mock/state         as Restore does
//
// A [Fault] has its fields in lower camel case, and Wait as a Go duration:
//
//	{"kind":"status","status":503,"header":{"Retry-After":["1"]},"operations":["createShipment"],"first":2}
//
// The carrier serves it itself where [WithAdmin] lets it; the handler is for a
// listener of its own. It asks for no credentials, and is for this machine and
// its own pages: see [WithAdminHosts] for the names that it is reached by.
// Whatever a browser asks for on behalf of a page of another origin is refused.
func (c *Carrier) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	handlePage(mux)
	mux.HandleFunc("GET /__mock/openapi.yaml", serveDocument("application/yaml", openapi.Admin()))
	mux.HandleFunc("GET /__mock/carrier.yaml", serveDocument("application/yaml", openapi.Carrier()))
	mux.HandleFunc("GET /__mock/health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "now": c.now()})
	})
	mux.HandleFunc("GET /__mock/operations", adminOperations)
	mux.HandleFunc("GET /__mock/ledger", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, notNil(c.Ledger()))
	})
	mux.HandleFunc("GET /__mock/requests", c.adminRequests)
	mux.HandleFunc("GET /__mock/deliveries", c.adminDeliveries)
	mux.HandleFunc("GET /__mock/faults", c.adminFaults)
	mux.HandleFunc("POST /__mock/faults", c.adminInject)
	mux.HandleFunc("DELETE /__mock/faults", func(w http.ResponseWriter, _ *http.Request) {
		c.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /__mock/faults/{id}", c.adminEndFault)
	mux.HandleFunc("GET /__mock/expectations", c.adminExpectations)
	mux.HandleFunc("POST /__mock/expectations", c.adminExpect)
	mux.HandleFunc("DELETE /__mock/expectations", func(w http.ResponseWriter, _ *http.Request) {
		c.expected.reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /__mock/verification", c.adminVerify)
	mux.HandleFunc("POST /__mock/explanation", c.adminExplain)
	mux.HandleFunc("DELETE /__mock/tokens", func(w http.ResponseWriter, _ *http.Request) {
		c.RevokeTokens()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /__mock/reset", func(w http.ResponseWriter, _ *http.Request) {
		c.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /__mock/clock", c.adminClock)
	mux.HandleFunc("GET /__mock/state", func(w http.ResponseWriter, _ *http.Request) {
		s := c.state()
		s.withoutSecrets()
		copyAnswer(w, answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: append(encode(s), '\n')})
	})
	mux.HandleFunc("PUT /__mock/state", c.adminRestore)
	return c.guardAdmin(mux)
}

// servesAdmin says whether a request is for the admin API, and it is there.
func (c *Carrier) servesAdmin(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path+"/", AdminPath) {
		return false
	}
	if on := c.config.admin; on != nil {
		return *on
	}
	return listensOnLoopback(r)
}

func adminOperations(w http.ResponseWriter, _ *http.Request) {
	type operation struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		Path   string `json:"path"`
	}
	var list []operation
	for _, op := range api.Operations() {
		list = append(list, operation{op.ID, op.Method, basePath + op.Path})
	}
	writeJSON(w, http.StatusOK, list)
}

func (c *Carrier) adminClock(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r, maxBody)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	var request struct {
		Advance string `json:"advance"`
	}
	err := decodeStrictly(body, &request)
	by, durationErr := time.ParseDuration(request.Advance)
	if err = errors.Join(err, durationErr); err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_clock", "Bad clock", `The body is to be like {"advance":"72h"}.`))
		return
	}
	c.Advance(by)
	writeJSON(w, http.StatusOK, map[string]any{"now": c.now()})
}

func (c *Carrier) adminRestore(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r, maxState)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	if err := c.Restore(body); err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_state", "Bad state", "%s", strings.TrimPrefix(err.Error(), "mockcarrier: ")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func adminBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *refusal) {
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, unsupportedMediaType()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(http.StatusRequestEntityTooLarge, "body_too_large", "Body too large", "A body has at most %d bytes.", most)
	case err != nil:
		panic(http.ErrAbortHandler) // the client has gone
	}
	return body, nil
}

// decodeStrictly decodes one JSON document, without unknown members.
func decodeStrictly(body []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the document")
	}
	return nil
}

// decodeList decodes one document, or a list of them that is not empty.
func decodeList[T any](body []byte) ([]T, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		body = append(append([]byte("["), body...), ']')
	}
	var list []T
	err := decodeStrictly(body, &list)
	if err == nil && len(list) == 0 {
		err = errors.New("nothing is given")
	}
	return list, err
}

func serveDocument(mediaType, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		copyAnswer(w, answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {mediaType}}, Body: []byte(content)})
	}
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

// notNil makes the JSON of an empty list [] rather than null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
