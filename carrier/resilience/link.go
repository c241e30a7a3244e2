package resilience

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
)

const (
	linkGroup      = "links"
	maxLink        = 8 << 10
	maxForeignBody = 64 << 20
	// The hosts of links are the carrier's choice, and can be many.
	maxIdleLinks, maxIdleLinksPerHost = 64, 8
)

// linkOperation is what a link leads to that is no operation of the API.
func linkOperation(contentType string) *operation {
	o := &Operation{ID: "fetch", Method: http.MethodGet, Group: linkGroup}
	if contentType != "*/*" { // which would ask for a Content-Type
		o.Success = []Success{{Status: http.StatusOK, ContentTypes: []string{contentType}}}
	} else {
		o.Success = []Success{{Status: http.StatusOK}}
	}
	return &operation{Operation: o, safety: SafetyRead, accept: []string{contentType}}
}

// Fetch gets what a link in an answer leads to: a label, a document. Links
// come from outside, so where they lead decides what is sent along:
//
//   - To the origin of the base URL (the same scheme, host and port, whatever
//     the spelling) goes a GET like any other call, with the credentials.
//   - To any other origin goes a bare GET, behind the egress guard (see
//     [EgressPolicy], [WithLinkGuard]): no credential, no token, no client
//     certificate, no key, and none of the headers of [WithHeader] but, if given
//     to this call, Accept, Accept-Language, If-None-Match and
//     If-Modified-Since. Retries, breaker and budget are apart from the API's,
//     and the answer may have 64 MiB unless [WithMaxResponseBytes] says otherwise.
//
// A relative link is resolved below the base URL. Redirects are not followed:
// see [RedirectError]. A link that is refused Is [ErrBlocked].
//
// The link may itself be a secret, and is not repeated in any error.
func (d *Doer) Fetch(ctx context.Context, link string, opts ...CallOption) (*Stream, error) {
	c, err := d.newFetch(ctx, link, true, linkOperation("*/*"), opts)
	if err != nil {
		return nil, err
	}
	return c.stream()
}

// FetchJSON is [Doer.Fetch] for a link to JSON, like that to the next page,
// which is read in full, within [WithMaxResponseBytes], and decoded into a new T.
func FetchJSON[T any](ctx context.Context, d *Doer, link string, opts ...CallOption) (*T, error) {
	c, err := d.newFetch(ctx, link, false, linkOperation("application/json"), opts)
	if err != nil {
		return nil, err
	}
	out := new(T)
	c.into = out
	c.run()
	if err := c.conclude(c.config.info); err != nil {
		return nil, err
	}
	return out, nil
}

// newFetch makes a call of a link. op is what it is unless the API knows better.
func (d *Doer) newFetch(ctx context.Context, link string, stream bool, op *operation, opts []CallOption) (*call, error) {
	u, own, err := d.resolveLink(link)
	if err != nil {
		return nil, refuseLink(op, err)
	}
	if d.closed.Load() {
		return nil, Refuse(op.Operation, invalid("the client is closed"))
	}
	from := d
	if !own {
		if from, err = d.foreign(); err != nil {
			return nil, refuseLink(op, err)
		}
		if err := from.guarded.guard.check(u); err != nil {
			return nil, refuseLink(op, err)
		}
		if stream {
			op.MaxBody = maxForeignBody
		}
	} else if known := d.find(http.MethodGet, u); known != nil {
		op = known
	}
	c, err := from.prepare(ctx, op, opts)
	if err != nil {
		return nil, err
	}
	if !own {
		c.settings.headers = harmless(c.settings.headers)
	}
	c.url, c.method, c.streams = *u, http.MethodGet, stream
	return c, nil
}

// refuseLink is the error of a link that is not followed.
func refuseLink(op *operation, err error) error {
	if _, ok := err.(*blockedError); !ok {
		return Refuse(op.Operation, err)
	}
	return &Error{Operation: op.ID, Outcome: OutcomeNotSent, causes: []error{err}, what: err.Error()}
}

// resolveLink returns the URL that a link means, and whether it is of the
// origin of the base URL; it then has the base URL's own spelling of it.
func (d *Doer) resolveLink(link string) (u *url.URL, own bool, err error) {
	switch {
	case link == "":
		return nil, false, invalid("the link is empty")
	case len(link) > maxLink:
		return nil, false, blocked("the link is longer than %d bytes", maxLink)
	}
	u, parseErr := url.Parse(link)
	if parseErr != nil {
		return nil, false, blocked("the link is not a valid URL")
	}
	if d.baseURL != nil {
		base := *d.baseURL
		base.Path += "/" // what is relative is below the base URL
		if base.RawPath != "" {
			base.RawPath += "/"
		}
		u = base.ResolveReference(u)
	}
	switch {
	case u.Scheme == "" && u.Host == "":
		return nil, false, invalid("a relative link needs a base URL: use WithBaseURL")
	case u.Opaque != "" || u.Host == "":
		return nil, false, blocked("the link has no host")
	case u.User != nil:
		return nil, false, blocked("the link has user info")
	}
	host, addr, err := parseHost(u.Hostname())
	if err != nil {
		return nil, false, err
	}
	u.Fragment, u.RawFragment = "", ""
	u.Host = hostPort(host, addr, u.Port())
	if d.baseURL != nil && sameOrigin(d.baseURL, u) {
		u.Scheme, u.Host = d.baseURL.Scheme, d.baseURL.Host
		return u, true, nil
	}
	return u, false, nil
}

func hostPort(host string, addr netip.Addr, port string) string {
	if addr.Is6() {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	return host
}

// foreign returns the Doer for links of other origins, made when the first is
// fetched. It holds nothing that could leak: no credential, no header, no base
// URL. What it does know of them is how to redact them.
func (d *Doer) foreign() (*Doer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.linked != nil {
		return d.linked, nil
	}
	c := config{
		common: d.config.common, budget: d.config.budget, breaker: d.config.breaker, limits: d.config.limits,
		logger: d.config.logger, maxConns: d.config.maxConns, rootCAs: d.config.rootCAs, transport: d.config.transport,
	}
	c.headers = nil
	g := d.config.linkGuard
	if g != nil && guardable(c.transport) == nil {
		c.transport = nil // the user said so
	}
	if g == nil {
		g = d.config.guard
	}
	if g == nil {
		g, _ = newGuard(EgressPolicy{})
	}
	rt := newGuarded(g, &c)
	if rt == nil {
		return nil, blocked("a link of another origin cannot go through the RoundTripper of WithTransport, which cannot be guarded: see WithLinkGuard")
	}
	if c.transport != nil {
		rt.withoutIdentity()
	} else {
		rt.direct.MaxIdleConns, rt.direct.MaxIdleConnsPerHost = maxIdleLinks, maxIdleLinksPerHost
	}
	l := &Doer{
		config: &c, base: rt, guarded: rt, evident: true, client: d.client, table: newTable(nil), retry: d.retry,
		budget: newBudget(c.budget), redactor: d.redactor, userAgent: d.userAgent, breakers: map[string]*Breaker{},
	}
	if c.transport == nil {
		l.own = rt.direct
	}
	d.linked = l
	return l, nil
}

// harmless are the headers that may go along with a link to anywhere.
func harmless(headers []header) []header {
	var kept []header
	for _, h := range headers {
		switch h.name {
		case "Accept", "Accept-Language", "If-None-Match", "If-Modified-Since":
			kept = append(kept, h)
		}
	}
	return kept
}
