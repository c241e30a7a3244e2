package mockcarrier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

const (
	firstRate  = 6001
	rateLife   = 10 * time.Minute
	rateMemory = time.Hour // for how long an expired rate is told from one that never was
	mostRates  = 10_000    // the oldest are forgotten
)

// rate is a price that holds for a while.
type rate struct {
	Account string    `json:"account"` // see accountName
	ID      string    `json:"id"`
	Seq     int       `json:"seq"`
	Service string    `json:"service"`
	For     string    `json:"for"` // see consignment.fingerprint
	Price   api.Money `json:"price"`
	Expires time.Time `json:"expires"`
}

func rateID(seq int) string { return fmt.Sprintf("rate_%d", seq) }

// fingerprint tells consignments apart: by countries, postal codes, weights and
// sizes of the parcels in their order, and insurance.
func (c consignment) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %s %q", c.from.Country, c.from.PostalCode, c.to.Country, c.to.PostalCode)
	for _, p := range c.parcels {
		fmt.Fprintf(&b, " %.0fmg", math.Round(kilograms(p.Weight)*1e6))
		if d := p.Dimensions; d != nil {
			fmt.Fprintf(&b, " %.1f×%.1f×%.1fmm", millimetres(d.Length, d.Unit), millimetres(d.Width, d.Unit), millimetres(d.Height, d.Unit))
		}
	}
	sum, _ := c.insured()
	fmt.Fprintf(&b, " %d", sum)
	hash := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(hash[:8])
}

// QuoteRates answers with a rate for each service that can carry the parcels,
// and with why the others cannot.
func (h handlers) QuoteRates(ctx context.Context, req server.QuoteRatesRequestObject) (server.QuoteRatesResponseObject, error) {
	c := consignment{req.Body.From, req.Body.To, req.Body.Parcels, req.Body.Insurance}
	var offers []offer
	var left []api.Warning
	add := func(s service) {
		if obstacles := s.obstacles(c); len(obstacles) > 0 {
			left = append(left, obstacles...)
			return
		}
		lines, cents := s.price(c)
		offers = append(offers, offer{s, lines, cents})
	}
	for i, name := range req.Body.Services {
		if s, ok := serviceOf(name); ok {
			add(s)
		} else {
			left = append(left, unknownService(name, resilience.Index("/services", i)))
		}
	}
	if req.Body.Services == nil {
		for _, s := range services {
			add(s)
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.cents, b.cents) })
	now := h.now()
	rates := h.world.offer(exchangeOf(ctx).account, c.fingerprint(), offers, now)
	list := rateList{Rates: make([]api.Rate, len(rates)), Warnings: left}
	for i, r := range rates {
		list.Rates[i] = offers[i].rate(r, now)
	}
	return list, nil
}

// offer is what a service costs.
type offer struct {
	service
	lines []priceLine
	cents int64
}

func (o offer) rate(r rate, now time.Time) api.Rate {
	body := api.Rate{
		ID: r.ID, Service: o.name, ServiceName: o.title, Price: &r.Price, ExpiresAt: moment(r.Expires),
		EstimatedDelivery: shipment{request: api.ShipmentRequest{Service: o.name}, ready: now}.estimate(),
	}
	for _, l := range o.lines {
		amount := euros(l.cents)
		body.Charges = append(body.Charges, api.PriceLine{Code: l.code, Description: l.description, Amount: &amount})
	}
	return body
}

// offer makes rates of offers, and forgets those that expired long ago.
func (w *world) offer(account, what string, offers []offer, now time.Time) []rate {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rates = slices.DeleteFunc(w.rates, func(r rate) bool { return now.After(r.Expires.Add(rateMemory)) })
	made := make([]rate, len(offers))
	for i, o := range offers {
		w.lastRate = max(firstRate, w.lastRate+1)
		made[i] = rate{
			Account: account, ID: rateID(w.lastRate), Seq: w.lastRate, Service: o.name, For: what,
			Price: euros(o.cents), Expires: now.Add(rateLife),
		}
	}
	w.rates = append(w.rates, made...)
	w.rates = slices.Delete(w.rates, 0, max(0, len(w.rates)-mostRates))
	return made
}

// priceOf returns the price of a rate for a shipment, in a world that is locked.
func (w *world) priceOf(id, account string, request api.ShipmentRequest, now time.Time, wrong *resilience.FieldErrors) api.Money {
	i := slices.IndexFunc(w.rates, func(r rate) bool { return r.ID == id && r.Account == account })
	if i < 0 {
		wrong.Add("/rateId", "rate_not_found", "is no rate of yours")
		return api.Money{}
	}
	r := w.rates[i]
	switch {
	case !now.Before(r.Expires):
		wrong.Add("/rateId", "rate_expired", "expired at "+r.Expires.UTC().Format(time.RFC3339))
	case r.Service != request.Service:
		wrong.Add("/rateId", "rate_mismatch", "is a rate of "+r.Service)
	case r.For != consignmentOf(request).fingerprint():
		wrong.Add("/rateId", "rate_mismatch", "is a rate of other parcels, places or insurance")
	}
	return r.Price
}

// rateList is api.RateList with the empty list written.
type rateList struct {
	Rates    []api.Rate    `json:"rates"`
	Warnings []api.Warning `json:"warnings,omitempty"`
}

// VisitQuoteRatesResponse writes the list.
func (l rateList) VisitQuoteRatesResponse(w http.ResponseWriter) error { return writeModel(w, l) }
