package mockcarrier_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// quoteFor makes a request for rates of an order.
func quoteFor(body string) string {
	for _, member := range []string{`"reference":"order-1001",`, `"service":"standard",`} {
		body = strings.Replace(body, member, "", 1)
	}
	return body
}

// with adds members to a JSON object.
func with(body, members string) string { return "{" + members + "," + body[1:] }

// quoted is what the tests look at in the answer of quoteRates.
type quoted struct {
	Rates []struct {
		ID, Service, ServiceName string
		Price                    carrier.Money
		Charges                  []carrier.PriceLine
		EstimatedDelivery        *carrier.EstimatedDelivery
		ExpiresAt                time.Time
	}
	Warnings []carrier.Warning
}

func quote(t *testing.T, a api, body string) quoted {
	t.Helper()
	return decoded[quoted](t, a.do(t, "POST", "/rates", body), 200)
}

func (q quoted) services() string {
	var list []string
	for _, r := range q.Rates {
		list = append(list, r.Service+" "+r.Price.Amount)
	}
	return strings.Join(list, ", ")
}

func (q quoted) warnings() string { return warningsText(q.Warnings) }

func warningsText(warnings []carrier.Warning) string {
	var list []string
	for _, w := range warnings {
		list = append(list, strings.TrimSpace(w.Code+" "+w.Pointer))
	}
	return strings.Join(list, ", ")
}

func TestQuoteRates(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen()))
	weighing := func(weight string) string {
		return strings.Replace(quoteFor(order), `"value":1.2`, `"value":`+weight, 1)
	}
	for name, tc := range map[string]struct{ body, services, warnings string }{
		"one parcel":       {quoteFor(order), "economy 5.40, standard 6.40, express 11.00", ""},
		"two parcels":      {twoParcels(quoteFor(order)), "economy 10.97, standard 12.97, express 22.17", ""},
		"abroad":           {strings.Replace(quoteFor(order), `"TR"},"parcels"`, `"CH"},"parcels"`, 1), "economy 15.40, standard 16.40, express 21.00", ""},
		"some":             {with(quoteFor(order), `"services":["express","economy"]`), "economy 5.40, express 11.00", ""},
		"an unknown one":   {with(quoteFor(order), `"services":["drone","express"]`), "express 11.00", "unknown_service /services/0"},
		"heavy":            {weighing("20.5"), "standard 25.70, express 30.30", "too_heavy /parcels/0/weight"},
		"in ounces":        {strings.Replace(quoteFor(order), `1.2,"unit":"kg"`, `100,"unit":"oz"`, 1), "economy 7.04, standard 8.04, express 12.64", ""},
		"at the limit":     {weighing("20"), "economy 24.20, standard 25.20, express 29.80", ""},
		"heavier":          {weighing("70"), "standard 75.20", "too_heavy /parcels/0/weight, too_heavy /parcels/0/weight"},
		"too heavy for us": {weighing("70.1"), "", "too_heavy /parcels/0/weight, too_heavy /parcels/0/weight, too_heavy /parcels/0/weight"},
		"insured":          {with(quoteFor(order), `"insurance":{"value":{"amount":"80.00","currency":"EUR"}}`), "economy 6.20, standard 7.20, express 11.80", ""},
		"a unit begun":     {with(quoteFor(order), `"services":["express"],"insurance":{"value":{"amount":"80.01","currency":"EUR"}}`), "express 11.81", ""},
		"by somebody else": {with(quoteFor(order), `"services":["express"],"insurance":{"value":{"amount":"80","currency":"EUR"},"provider":"third_party"}`), "express 11.00", ""},
		"dear":             {with(quoteFor(order), `"services":["express"],"insurance":{"value":{"amount":"50000","currency":"EUR"}}`), "express 511.00", ""},
		"too dear":         {with(quoteFor(order), `"services":["express"],"insurance":{"value":{"amount":"99999999999999999999","currency":"EUR"}}`), "", "insurance_too_high /insurance/value"},
	} {
		t.Run(name, func(t *testing.T) {
			got := quote(t, a, tc.body)
			if got.services() != tc.services || got.warnings() != tc.warnings {
				t.Errorf("got %s; %s\nwant %s; %s", got.services(), got.warnings(), tc.services, tc.warnings)
			}
			for _, r := range got.Rates {
				sum := new(big.Rat)
				for _, line := range r.Charges {
					amount, _ := new(big.Rat).SetString(line.Amount.Amount)
					sum.Add(sum, amount)
				}
				if sum.FloatString(2) != r.Price.Amount || r.Price.Currency != "EUR" || r.ServiceName == "" || r.EstimatedDelivery == nil {
					t.Errorf("got %+v, its charges sum up to %s", r, sum.FloatString(2))
				}
				if !r.ExpiresAt.Equal(noon.Add(10 * time.Minute)) {
					t.Errorf("it expires at %v", r.ExpiresAt)
				}
			}
		})
	}
	if none := a.do(t, "POST", "/rates", weighing("100")).body; !strings.HasPrefix(none, `{"rates":[],"warnings":[`) {
		t.Errorf("got %s", none)
	}
	insured := quote(t, a, with(quoteFor(order), `"insurance":{"value":{"amount":"80.00","currency":"EUR"}}`)).Rates[0].Charges
	if last := insured[len(insured)-1]; last.Code != "insurance" || last.Amount.Amount != "0.80" || insured[0].Code != "base" {
		t.Errorf("the charges are %+v", insured)
	}
	problem := a.do(t, "POST", "/rates", strings.Replace(quoteFor(order), "1.2", "0", 1)).want(t, 422, "validation_failed")
	if pointers(problem) != "/parcels/0/weight/value" {
		t.Errorf("got %v", problem)
	}
	if got := fieldCodes(a.do(t, "POST", "/rates", with(quoteFor(order), `"services":[]`)).want(t, 422)); got != "/services minItems" {
		t.Errorf("got %s", got)
	}
	if len(a.Ledger()) != 0 {
		t.Errorf("the ledger is %v", a.Ledger())
	}
}

// A rate is what is charged, as long as it holds and for what it was asked for.
func TestBuyAtARate(t *testing.T) {
	for name, tc := range map[string]struct {
		quoted  string // what is asked for before; the order's own rate if it is empty
		request string
		later   time.Duration
		code    string
	}{
		"as quoted":             {request: order},
		"in other units":        {request: strings.Replace(order, `1.2,"unit":"kg"`, `1200,"unit":"g"`, 1)},
		"another name":          {request: strings.Replace(order, "Deniz Kaya", "Deniz Ak", 1)},
		"just before it ends":   {request: order, later: 10*time.Minute - 1},
		"at its end":            {request: order, later: 10 * time.Minute, code: "rate_expired"},
		"an hour later":         {request: order, later: time.Hour, code: "rate_expired"},
		"another service":       {request: strings.Replace(order, "standard", "express", 1), code: "rate_mismatch"},
		"another weight":        {request: strings.Replace(order, "1.2", "1.3", 1), code: "rate_mismatch"},
		"another parcel":        {request: twoParcels(order), code: "rate_mismatch"},
		"another country":       {request: strings.Replace(order, `"TR"},"parcels"`, `"CH"},"parcels"`, 1), code: "rate_mismatch"},
		"another postal code":   {request: strings.Replace(order, "06000", "06001", 1), code: "rate_mismatch"},
		"another size":          {request: strings.Replace(order, `"weight"`, `"dimensions":{"length":3,"width":2,"height":1,"unit":"cm"},"weight"`, 1), code: "rate_mismatch"},
		"insured":               {request: with(order, `"insurance":{"value":{"amount":"80","currency":"EUR"}}`), code: "rate_mismatch"},
		"insured, and so asked": {quoted: with(quoteFor(order), `"insurance":{"value":{"amount":"80","currency":"EUR"}}`), request: with(order, `"insurance":{"value":{"amount":"80.00","currency":"EUR"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(mockcarrier.StartInMemory(t, frozen()))
			asked := tc.quoted
			if asked == "" {
				asked = quoteFor(order)
			}
			rate := quote(t, a, asked).Rates[1] // standard
			a.Advance(tc.later)
			body := with(tc.request, `"rateId":"`+rate.ID+`"`)
			if tc.code != "" {
				for _, path := range []string{"/shipments", "/shipments/validate"} {
					problem := a.do(t, "POST", path, body, "Idempotency-Key", "k").want(t, 422, "validation_failed")
					if got := fieldCodes(problem); got != "/rateId "+tc.code {
						t.Errorf("%s: got %s", path, got)
					}
				}
				if len(a.Ledger()) != 0 {
					t.Errorf("the ledger is %v", a.Ledger())
				}
				return
			}
			a.do(t, "POST", "/shipments/validate", body).want(t, 200)
			first := a.buy(t, "k", body)
			charge := first.want(t, 201)["charge"].(map[string]any)["amount"]
			if charge != rate.Price.Amount || a.Ledger()[0].Amount != rate.Price.Amount {
				t.Errorf("charged %v and %v, quoted %s", charge, a.Ledger(), rate.Price.Amount)
			}
			a.Advance(time.Hour)
			if again := a.buy(t, "k", body); again.body != first.body { // replayed, although the rate has expired
				t.Errorf("the replay is %s", again.body)
			}
		})
	}
}

func TestRatesAreTheirAccounts(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithAPIKey("one", "two")))
	a.key = "one"
	id := quote(t, a, quoteFor(order)).Rates[1].ID
	body := with(order, `"rateId":"`+id+`"`)
	a.key = "two"
	problem := a.buy(t, "k", body).want(t, 422, "validation_failed")
	if got := fieldCodes(problem); got != "/rateId rate_not_found" {
		t.Errorf("got %s", got)
	}
	a.key = "one"
	a.buy(t, "k", body).want(t, 201)
	a.Reset()
	if got := fieldCodes(a.buy(t, "k", body).want(t, 422)); got != "/rateId rate_not_found" {
		t.Errorf("after a reset: %s", got)
	}
}

// Rates are forgotten: an hour after they have expired, and the oldest where
// there are too many.
func TestRatesAreForgotten(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithJournalLimit(10)))
	first := quote(t, a, quoteFor(order)).Rates[1].ID
	a.Advance(70*time.Minute + 1)
	quote(t, a, quoteFor(order))
	refused := func(id string) string {
		return fieldCodes(a.buy(t, "k", with(order, `"rateId":"`+id+`"`)).want(t, 422))
	}
	if got := refused(first); got != "/rateId rate_not_found" {
		t.Errorf("got %s", got)
	}
	second := quote(t, a, quoteFor(order)).Rates[1].ID
	for range 10_000 / 3 {
		quote(t, a, quoteFor(order))
	}
	if got := refused(second); got != "/rateId rate_not_found" {
		t.Errorf("got %s", got)
	}
	if n := strings.Count(string(a.Snapshot()), `"id":"rate_`); n != 10_000 {
		t.Errorf("%d rates are kept", n)
	}
}

func TestValidateShipment(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithUniqueReferences()))
	abroad := strings.Replace(order, `"TR"},"parcels"`, `"CH"},"parcels"`, 1)
	for name, tc := range map[string]struct{ body, warnings string }{
		"plain":           {order, ""},
		"abroad":          {abroad, "customs_missing /customs"},
		"insured":         {with(order, `"insurance":{"value":{"amount":"80.00","currency":"EUR"}}`), ""},
		"too much":        {with(order, `"insurance":{"value":{"amount":"80000","currency":"EUR"}}`), "insurance_too_high /insurance/value"},
		"by drone":        {strings.Replace(order, "standard", "drone", 1), "unknown_service /service"},
		"heavy":           {strings.Replace(order, "1.2", "71", 1), "too_heavy /parcels/0/weight"},
		"service point":   {with(order, `"servicePointId":"sp_tr_34000_1"`), ""},
		"with references": {strings.Replace(order, "order-1001", "FAULT-LABEL-BLANK", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			defer a.Reset()
			got := decoded[carrier.ShipmentQuote](t, a.do(t, "POST", "/shipments/validate", tc.body), 200)
			if len(a.Ledger()) != 0 || strings.Contains(a.get(t, "/shipments").body, "shp_") {
				t.Errorf("something was made: %v", a.Ledger())
			}
			made := decoded[carrier.Shipment](t, a.buy(t, "k", tc.body), 201)
			if *got.Charge != *made.Charge || fmt.Sprint(got.EstimatedDelivery) != fmt.Sprint(made.EstimatedDelivery) || got.Service != made.Service ||
				warningsText(got.Warnings) != tc.warnings || warningsText(made.Warnings) != tc.warnings {
				t.Errorf("said %+v\nmade %+v", got, made)
			}
		})
	}

	a.buy(t, "k", orderFor("order-1")).want(t, 201)
	for name, tc := range map[string]struct {
		body          string
		status        int
		code, pointer string
	}{
		"given before":     {orderFor("order-1"), 409, "duplicate_reference", ""},
		"no weight":        {strings.Replace(order, "1.2", "0", 1), 422, "validation_failed", "/parcels/0/weight/value"},
		"unknown member":   {with(order, `"colour":"red"`), 422, "validation_failed", "/colour"},
		"no service point": {with(order, `"servicePointId":"corner"`), 422, "validation_failed", "/servicePointId"},
		"no rate":          {with(order, `"rateId":"rate_1"`), 422, "validation_failed", "/rateId"},
		"neither":          {with(order, `"rateId":"rate_1","servicePointId":"corner"`), 422, "validation_failed", "/rateId /servicePointId"},
		"not JSON":         {"{", 400, "malformed_json", ""},
		"down":             {orderFor("FAULT-503-BEFORE-COMMIT"), 503, "service_unavailable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := a.do(t, "POST", "/shipments/validate", tc.body).want(t, tc.status, tc.code)
			refused := a.buy(t, name, tc.body).want(t, tc.status, tc.code)
			if pointers(said) != tc.pointer || said["detail"] != refused["detail"] || fieldCodes(said) != fieldCodes(refused) {
				t.Errorf("said %v\nthen %v", said, refused)
			}
		})
	}
	a.do(t, "POST", "/shipments/validate", orderFor("FAULT-503-BEFORE-COMMIT")).want(t, 200) // once
	a.do(t, "POST", "/shipments/validate", orderFor("FAULT-RESET-AFTER-COMMIT")).want(t, 200)
	if len(a.Ledger()) != 1 {
		t.Errorf("the ledger is %v", a.Ledger())
	}
}
