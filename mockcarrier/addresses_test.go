package mockcarrier_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestValidateAddress(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	const good = `{"name":"Ada Books","line1":"1 Main Street","city":"Istanbul","postalCode":"34000","country":"TR"}`
	in := func(country, postalCode string) string {
		return strings.NewReplacer("34000", postalCode, `"TR"`, `"`+country+`"`).Replace(good)
	}
	yes, no := "true", "false"
	for name, tc := range map[string]struct {
		body, status, codes, written, residential string
	}{
		"as it should be":           {good, "valid", "", "1 Main Street|Istanbul|34000", ""},
		"small letters":             {`{"name":"Ada Books","line1":"1 main street","city":"istanbul","postalCode":"34 000","country":"TR"}`, "corrected", "spelling /line1, spelling /city, postal_code_format /postalCode", "1 Main Street|Istanbul|34000", ""},
		"spaces":                    {strings.Replace(good, "1 Main Street", "  1  Main Street ", 1), "corrected", "spelling /line1", "1 Main Street|Istanbul|34000", ""},
		"small words":               {strings.Replace(good, "1 Main Street", "1 rue de la Paix", 1), "valid", "", "1 rue de la Paix|Istanbul|34000", ""},
		"beyond ASCII":              {strings.Replace(good, "Istanbul", "ölüdeniz", 1), "corrected", "spelling /city", "1 Main Street|Ölüdeniz|34000", ""},
		"a form of its own":         {in("NL", "1234ab"), "corrected", "postal_code_format /postalCode", "1 Main Street|Istanbul|1234 AB", ""},
		"one of several forms":      {in("GB", "sw1a1aa"), "corrected", "postal_code_format /postalCode", "1 Main Street|Istanbul|SW1A 1AA", ""},
		"no postal codes":           {in("HK", ""), "valid", "", "1 Main Street|Istanbul|", ""},
		"any form":                  {in("IE", "D02X285"), "valid", "", "1 Main Street|Istanbul|D02X285", ""},
		"wrong form":                {in("TR", "3400"), "invalid", "postal_code_unknown /postalCode", "", ""},
		"code of a country without": {in("HK", "1"), "invalid", "postal_code_unknown /postalCode", "", ""},
		"country not served":        {in("AQ", "34000"), "invalid", "country_not_served /country", "", ""},
		"no region":                 {in("US", "10001"), "invalid", "region_missing /region", "", ""},
		"nothing right":             {in("US", "1"), "invalid", "postal_code_unknown /postalCode, region_missing /region", "", ""},
		"region":                    {with(in("US", "100011234"), `"region":"ny"`), "corrected", "spelling /region, postal_code_format /postalCode", "1 Main Street|Istanbul|10001-1234", ""},
		"ambiguous":                 {in("TR", "99901"), "ambiguous", "several_match /line2", "", ""},
		"invalid":                   {in("TR", "99902"), "invalid", "postal_code_unknown /postalCode", "", ""},
		"residential":               {in("TR", "99903"), "valid", "", "1 Main Street|Istanbul|99903", yes},
		"residential anywhere":      {in("CH", "99903"), "valid", "", "1 Main Street|Istanbul|99903", yes},
		"company":                   {with(good, `"company":"Ada Books Ltd"`), "valid", "", "1 Main Street|Istanbul|34000", no},
		"said to be a home":         {with(good, `"company":"Ada Books Ltd","residential":true`), "valid", "", "1 Main Street|Istanbul|34000", yes},
	} {
		t.Run(name, func(t *testing.T) {
			got := decoded[carrier.AddressCheck](t, a.do(t, "POST", "/addresses/validate", tc.body), 200)
			written, residential := "", ""
			if got.Address != nil {
				written = strings.Join([]string{got.Address.Line1, got.Address.City, got.Address.PostalCode}, "|")
			}
			if got.Residential != nil {
				residential = fmt.Sprint(*got.Residential)
			}
			if string(got.Status) != tc.status || warningsText(got.Messages) != tc.codes || written != tc.written || residential != tc.residential {
				t.Errorf("got %s %q %q %q, want %+v", got.Status, warningsText(got.Messages), written, residential, tc)
			}
			if want := map[bool]int{true: 2}[tc.status == "ambiguous"]; len(got.Suggestions) != want {
				t.Errorf("the suggestions are %+v", got.Suggestions)
			}
			for _, s := range append(got.Suggestions, value(got.Address)) { // how it is written is right
				if s.Line1 == "" || tc.status == "ambiguous" {
					continue
				}
				again := strings.NewReplacer(`  1  Main Street `, s.Line1, `1 main street`, s.Line1, `istanbul`, s.City, "ölüdeniz", s.City, `"ny"`, `"NY"`,
					`34 000`, s.PostalCode, `1234ab`, s.PostalCode, `sw1a1aa`, s.PostalCode, `100011234`, s.PostalCode).Replace(tc.body)
				if check := decoded[carrier.AddressCheck](t, a.do(t, "POST", "/addresses/validate", again), 200); check.Status != "valid" {
					t.Errorf("%s is %+v", again, check)
				}
			}
		})
	}
	if problem := a.do(t, "POST", "/addresses/validate", strings.Replace(good, `"TR"`, `"tr"`, 1)).want(t, 422); pointers(problem) != "/country" {
		t.Errorf("got %v", problem)
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func TestListServicePoints(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t))
	list := func(query string) []carrier.ServicePoint {
		t.Helper()
		return decoded[carrier.ServicePointList](t, a.get(t, "/service-points?"+query), 200).Items
	}
	for query, want := range map[string]int{
		"country=TR&postalCode=34000": 10, "country=TR&postalCode=34000&limit=1": 1, "country=TR&postalCode=34000&limit=50": 12,
		"country=TR&postalCode=99904": 0, "country=CH&postalCode=99904": 0, "country=TR&postalCode=-": 0, "country=AQ&postalCode=x": 10,
	} {
		if got := list(query); len(got) != want {
			t.Errorf("%s: %d, want %d", query, len(got), want)
		}
	}
	if none := a.get(t, "/service-points?country=TR&postalCode=99904").body; strings.TrimSpace(none) != `{"items":[]}` {
		t.Errorf("got %s", none)
	}
	points := list("country=GB&postalCode=sw1a%201aa&limit=50")
	kinds := map[carrier.ServicePointKind]bool{}
	for i, p := range points {
		if p.ID != fmt.Sprintf("sp_gb_sw1a1aa_%d", i+1) || p.Name == "" || p.Address.PostalCode != "SW1A 1AA" || p.Address.Country != "GB" || len(p.OpeningHours) < 5 {
			t.Errorf("got %+v", p)
		}
		if i > 0 && p.DistanceMetres <= points[i-1].DistanceMetres {
			t.Errorf("%s is not further away than the one before", p.ID)
		}
		// Two neighbours are as far apart as their distances let them be.
		q := points[0]
		north := (*p.Latitude - *q.Latitude) * 111_320
		east := (*p.Longitude - *q.Longitude) * 111_320 * math.Cos(*p.Latitude*math.Pi/180)
		if apart := math.Hypot(north, east); i > 0 && (apart < float64(p.DistanceMetres-q.DistanceMetres)-5 || apart > float64(p.DistanceMetres+q.DistanceMetres)+5) {
			t.Errorf("%s is %.0f m from the first, at %d and %d m from the middle", p.ID, apart, p.DistanceMetres, q.DistanceMetres)
		}
		kinds[p.Kind] = true
		body := with(orderFor(p.ID), `"servicePointId":"`+p.ID+`"`)
		if made := a.buy(t, p.ID, body).want(t, 201); made["servicePointId"] != p.ID {
			t.Errorf("got %v", made)
		}
	}
	if len(kinds) != 4 {
		t.Errorf("the kinds are %v", kinds)
	}
	if again := list("country=GB&postalCode=SW1A1AA&limit=50"); fmt.Sprint(again) == "" || again[3].ID != points[3].ID || *again[3].Latitude != *points[3].Latitude {
		t.Errorf("got %+v, then %+v", points[3], again[3])
	}
	for _, id := range []string{"sp_gb_sw1a1aa_0", "sp_gb_sw1a1aa_13", "sp_gb_sw1a1aa_01", "sp_tr_99904_1", "SP_GB_SW1A1AA_1", "sp_gb__1", "corner", "sp_gb_sw1a1aa_1 "} {
		problem := a.buy(t, "none", with(order, `"servicePointId":"`+id+`"`)).want(t, 422, "validation_failed")
		if got := fieldCodes(problem); got != "/servicePointId not_found" {
			t.Errorf("%s: got %s", id, got)
		}
	}
	for query, name := range map[string]string{
		"postalCode=34000": "country", "country=TR": "postalCode", "country=tr&postalCode=34000": "country", "country=TR&postalCode=": "postalCode",
		"country=TR&postalCode=34_00": "postalCode", "country=TR&postalCode=34000&limit=0": "limit", "country=TR&postalCode=34000&limit=51": "limit",
	} {
		if problem := a.get(t, "/service-points?"+query).want(t, 400, "malformed_parameter"); pointers(problem) != name {
			t.Errorf("%s: %v", query, problem)
		}
	}
}
