package mockcarrier

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// CallbackOperation is how the delivery of a notification is called in faults,
// after the callback of the spec.
const CallbackOperation = "trackingUpdated"

// signatureHeader is what notifications are signed in.
const signatureHeader = "Carrier-Signature"

// attemptLimit is how long a subscriber may take to answer, in real time or that
// of the bubble.
const attemptLimit = 10 * time.Second

// attempt delivers a notification once, unless a fault holds it back, and says
// whether it did.
func (c *Carrier) attempt(ctx context.Context, sub *subscription, n *notification) bool {
	resets := c.deliveries.begin()
	h, ok := c.world.happened(n.shipmentID, n.at)
	if !ok {
		c.subscriptions.settle(func() { sub.drop(n) })
		return false
	}
	notification := update(h)
	body := encode(notification)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.url, bytes.NewReader(body))
	if err != nil {
		panic(err) // the address was good before
	}
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("User-Agent", "mockcarrier")

	fault := c.deliveryFault(n, h, req, body)
	if wait := fault.holdsBack(h); wait > 0 {
		c.subscriptions.settle(func() { n.delayed, n.due = true, n.due.Add(wait) })
		return false
	}
	at, secrets := c.config.clock(), sub.secrets
	log := Delivery{
		Notification: notification.ID, Subscription: sub.id, Type: string(notification.Type), TrackingNumber: h.number(),
		Attempt: n.attempts + 1, Duplicate: n.delivered, Signature: SignatureGood, At: c.now(),
	}
	if fault.Kind != KindNone && fault.Kind != "" {
		log.Fault = fault.String()
	}
	switch fault.Kind {
	case KindBadSignature:
		log.Signature, secrets = SignatureBad, []resilience.Secret{"not the secret"}
	case KindStaleSignature:
		log.Signature, at = SignatureStale, at.Add(-fault.Wait)
	}
	req.Header.Set(signatureHeader, sign(at, body, secrets))
	log.Status, err = c.post(req)
	if err != nil {
		log.Err = err.Error()
	}
	c.deliveries.add(log, resets)
	c.config.logger.Info("notification", "id", log.Notification, "subscription", log.Subscription, "attempt", log.Attempt,
		"status", log.Status, "error", log.Err, "fault", log.Fault)
	c.subscriptions.settle(func() { sub.attempted(n, log.Status, err, fault, log.At) })
	return true
}

// settle changes what is known of a subscription.
func (ss *subscriptions) settle(change func()) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	change()
}

// attempted notes how an attempt has ended.
func (s *subscription) attempted(n *notification, status int, err error, fault Fault, now time.Time) {
	n.attempts++
	repetition := n.again > 0
	if repetition {
		n.again--
	}
	if n.first.IsZero() {
		n.first = now
	}
	taken := err == nil && status >= 200 && status < 300
	n.delivered = n.delivered || taken
	switch {
	case s.ended:
	case status == http.StatusGone:
		s.end()
	case errors.Is(err, errElsewhere):
		s.drop(n)
	case repetition:
		s.repeat(n, now)
	case taken && fault.Kind == KindUnacknowledged:
		s.retry(n, now)
	case taken:
		s.failing = time.Time{}
		if fault.Kind == KindRedeliver {
			n.again = max(1, fault.Count)
		}
		s.repeat(n, now)
	default:
		s.retry(n, now)
	}
}

// repeat delivers a notification once more, if it is to be.
func (s *subscription) repeat(n *notification, now time.Time) {
	if n.again == 0 {
		s.drop(n)
		return
	}
	n.due = now
}

// retry delivers a notification again later, or gives it up.
func (s *subscription) retry(n *notification, now time.Time) {
	if s.failing.IsZero() {
		s.failing = now
	}
	n.due = now.Add(retryWait(n.attempts))
	if n.due.Sub(n.first) > giveUpAfter {
		s.drop(n)
	}
}

func (s *subscription) drop(n *notification) {
	for i, other := range s.waiting {
		if other == n {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return
		}
	}
}

// sign returns the header for a body that is sent at a time, with a signature
// for each secret. It is not that of package callback, which is tested with it.
func sign(at time.Time, body []byte, secrets []resilience.Secret) string {
	t := strconv.FormatInt(at.Unix(), 10)
	header := "t=" + t
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = io.WriteString(mac, t+".")
		_, _ = mac.Write(body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}

// errElsewhere is why nothing was sent to an address that is not this machine's.
var errElsewhere = errors.New("blocked: the address is not on this machine, and there is no WithWebhookHandler")

// post sends a notification, and returns the status of the answer.
func (c *Carrier) post(req *http.Request) (int, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), attemptLimit, fmt.Errorf("no answer within %v", attemptLimit))
	defer cancel()
	defer context.AfterFunc(c.running.ctx, cancel)()
	req = req.WithContext(ctx)
	status, err := 0, errElsewhere
	switch {
	case c.config.webhooks != nil:
		status, err = c.handOver(req)
	case isLoopback(req.URL.Hostname()):
		status, err = postTo(req)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return status, err
}

// handOver lets the handler of WithWebhookHandler answer. It does not wait
// longer than the context, and the carrier does not close before the handler
// has returned.
func (c *Carrier) handOver(req *http.Request) (status int, err error) {
	req.RequestURI, req.RemoteAddr = req.URL.RequestURI(), "127.0.0.1:0"
	type outcome struct {
		status int
		err    error
	}
	done := make(chan outcome, 1)
	c.running.enter()
	go func() {
		defer c.running.leave()
		result := outcome{err: errors.New("the handler did not return")}
		defer func() {
			if cause := recover(); cause != nil {
				result.err = fmt.Errorf("the handler panicked: %v", cause)
			}
			done <- result
		}()
		rec := &recorder{header: http.Header{}}
		c.config.webhooks.ServeHTTP(rec, req)
		result = outcome{status: rec.answer().Status}
	}()
	select {
	case result := <-done:
		return result.status, result.err
	case <-req.Context().Done():
		return 0, req.Context().Err()
	}
}

// postTo sends a notification over the loopback interface, on a connection of
// its own, and follows no redirect.
func postTo(req *http.Request) (int, error) {
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
			return errElsewhere
		}
		return nil
	}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // without the address, which may have a token in its query
	}
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
