package mockcarrier

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// WithAdminHosts lets the admin API be reached by host names that it does not
// take for safe by itself, such as "carrier.tests.internal".
//
// By itself it takes, on the loopback interface, localhost and the loopback
// addresses; elsewhere these, any address, and names without a dot, as
// containers have them. Other names may have been made to point here by a page
// in somebody's browser (DNS rebinding), and are refused.
func WithAdminHosts(names ...string) Option {
	names = slices.Clone(names)
	good := !slices.ContainsFunc(names, func(name string) bool { return name == "" || strings.ContainsAny(name, ":/ ") })
	return option(good, "WithAdminHosts needs names without a port", func(c *config) { c.adminHosts = names })
}

// guardAdmin refuses what does not come from this machine's own programs and
// pages, and makes all errors problem details.
func (c *Carrier) guardAdmin(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !c.knowsAdminHost(r):
			writeRefusal(w, refuse(http.StatusForbidden, "foreign_host", "Forbidden", "The host %s is refused.", r.Host))
			return
		case crossOrigin.Check(r) != nil || embedded(r):
			writeRefusal(w, refuse(http.StatusForbidden, "cross_origin", "Forbidden", "Pages of another origin are refused."))
			return
		}
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		rec := &recorder{header: http.Header{}}
		next.ServeHTTP(rec, r)
		a := rec.answer()
		if a.Status < http.StatusBadRequest || a.Header.Get("Content-Type") == problemType {
			copyAnswer(w, a)
			return
		}
		refused := refuseStatus(a.Status) // in place of the mux's own
		if allow := a.Header.Get("Allow"); allow != "" {
			refused.with("Allow", allow)
		}
		writeRefusal(w, refused)
	})
}

// embedded says whether a browser asks for a page of another origin. That it
// goes to such an address itself, by a link, is fine.
func embedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	}
	return false
}

func (c *Carrier) knowsAdminHost(r *http.Request) bool {
	name := hostName(r.Host)
	switch {
	case isLoopback(name), slices.ContainsFunc(c.config.adminHosts, func(known string) bool { return strings.EqualFold(known, name) }):
		return true
	case listensOnLoopback(r):
		return false
	}
	return name != "" && (!strings.Contains(name, ".") || net.ParseIP(name) != nil)
}

func listensOnLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(hostName(addr.String()))
}

// isLoopback says whether a host name or address is this machine's own.
func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// hostName returns a host without its port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
