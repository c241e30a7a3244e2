package mockcarrier

import (
	"context"
	"strings"
	"unicode"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// The postal codes that stand for a case, in whatever country.
const (
	postalAmbiguous       = "99901"
	postalInvalid         = "99902"
	postalResidential     = "99903"
	postalNoServicePoints = "99904"
)

// postalForms are the countries that the carrier serves, with the forms of their
// postal codes as the carrier writes them: 9 is a digit, A a letter. A country
// without a form has no postal codes, and "*" leaves them open.
var postalForms = map[string][]string{
	"AE": nil, "AT": {"9999"}, "AU": {"9999"}, "BE": {"9999"}, "BG": {"9999"}, "BR": {"99999-999"}, "CA": {"A9A 9A9"},
	"CH": {"9999"}, "CN": {"999999"}, "CY": {"9999"}, "CZ": {"999 99"}, "DE": {"99999"}, "DK": {"9999"}, "EE": {"99999"},
	"ES": {"99999"}, "FI": {"99999"}, "FR": {"99999"}, "GB": {"A9 9AA", "A99 9AA", "AA9 9AA", "AA99 9AA", "A9A 9AA", "AA9A 9AA"},
	"GR": {"999 99"}, "HK": nil, "HR": {"99999"}, "HU": {"9999"}, "IE": {"*"}, "IN": {"999999"}, "IT": {"99999"},
	"JP": {"999-9999"}, "KR": {"99999"}, "LT": {"99999"}, "LU": {"9999"}, "LV": {"9999"}, "MX": {"99999"}, "NL": {"9999 AA"},
	"NO": {"9999"}, "NZ": {"9999"}, "PL": {"99-999"}, "PT": {"9999-999"}, "RO": {"999999"}, "SE": {"999 99"}, "SG": {"999999"},
	"SI": {"9999"}, "SK": {"999 99"}, "TR": {"99999"}, "US": {"99999", "99999-9999"}, "ZA": {"9999"},
}

// ValidateAddress answers with what the carrier makes of an address.
func (h handlers) ValidateAddress(_ context.Context, req server.ValidateAddressRequestObject) (server.ValidateAddressResponseObject, error) {
	return server.ValidateAddress200JSONResponse{Body: checkAddress(*req.Body)}, nil
}

func checkAddress(given api.Address) api.AddressCheck {
	forms, served := postalForms[given.Country]
	bare := barePostalCode(given.PostalCode)
	code, fits := postalCode(bare, forms)
	var wrong []api.Warning
	complain := func(code, message, pointer string) {
		wrong = append(wrong, api.Warning{Code: code, Message: message, Pointer: pointer})
	}
	switch {
	case !served:
		complain("country_not_served", "The carrier does not deliver to "+given.Country+".", "/country")
	case bare == postalInvalid, !fits:
		complain("postal_code_unknown", "There is no such postal code in "+given.Country+".", "/postalCode")
	}
	if given.Region == nil && needsRegion(given.Country) {
		complain("region_missing", "An address in "+given.Country+" needs a region.", "/region")
	}
	if wrong != nil {
		return api.AddressCheck{Status: api.AddressStatusInvalid, Messages: wrong}
	}

	written, messages := spelt(given, code)
	check := api.AddressCheck{Status: api.AddressStatusValid, Address: &written, Residential: given.Residential, Messages: messages}
	if messages != nil {
		check.Status = api.AddressStatusCorrected
	}
	home := bare == postalResidential
	if check.Residential == nil && (home || given.Company != nil) {
		check.Residential = &home
	}
	if bare == postalAmbiguous {
		check.Status, check.Address = api.AddressStatusAmbiguous, nil
		for _, block := range []string{"Block A", "Block B"} {
			written.Line2 = block
			check.Suggestions = append(check.Suggestions, written)
		}
		check.Messages = append(messages, api.Warning{
			Code: "several_match", Message: "There are several addresses like this.", Pointer: "/line2",
		})
	}
	return check
}

// needsRegion says whether the addresses of a country have the short code of a
// region.
func needsRegion(country string) bool { return country == "AU" || country == "CA" || country == "US" }

func placeAddress(a api.Address) api.PlaceAddress {
	return api.PlaceAddress{
		Name: a.Name, Company: value(a.Company), Line1: a.Line1, Line2: value(a.Line2), Line3: value(a.Line3),
		City: a.City, Region: value(a.Region), PostalCode: a.PostalCode, Country: a.Country,
	}
}

// spelt returns an address as the carrier writes it, and what it has changed.
func spelt(given api.Address, postalCode string) (api.PlaceAddress, []api.Warning) {
	a := placeAddress(given)
	var changed []api.Warning
	write := func(member *string, as, name, code, pointer string) {
		if *member != as {
			*member = as
			changed = append(changed, api.Warning{Code: code, Message: name + " was written as " + as + ".", Pointer: pointer})
		}
	}
	write(&a.Name, spaced(a.Name), "The name", "spelling", "/name")
	write(&a.Company, spaced(a.Company), "The company", "spelling", "/company")
	write(&a.Line1, capitalised(a.Line1), "The line", "spelling", "/line1")
	write(&a.Line2, capitalised(a.Line2), "The line", "spelling", "/line2")
	write(&a.Line3, capitalised(a.Line3), "The line", "spelling", "/line3")
	write(&a.City, capitalised(a.City), "The town", "spelling", "/city")
	region := capitalised(a.Region)
	if needsRegion(a.Country) {
		region = strings.ToUpper(region)
	}
	write(&a.Region, region, "The region", "spelling", "/region")
	write(&a.PostalCode, postalCode, "The postal code", "postal_code_format", "/postalCode")
	return a, changed
}

// spaced returns a text without spaces around it, and with one between words.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// capitalised returns a text with its words in capitals, if it has none.
func capitalised(text string) string {
	if strings.ContainsFunc(text, unicode.IsUpper) {
		return spaced(text)
	}
	words := strings.Fields(text)
	for i, word := range words {
		letters := []rune(word)
		letters[0] = unicode.ToUpper(letters[0])
		words[i] = string(letters)
	}
	return strings.Join(words, " ")
}

// barePostalCode returns the letters and digits of a postal code.
func barePostalCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
}

// postalCode writes the letters and digits of a postal code in the form that they
// fit, and says whether there is one. Those that stand for a case fit as they are.
func postalCode(bare string, forms []string) (string, bool) {
	switch bare {
	case postalAmbiguous, postalInvalid, postalResidential, postalNoServicePoints:
		return bare, true
	}
	if len(forms) == 0 {
		return "", bare == ""
	}
	for _, form := range forms {
		if form == "*" {
			return bare, true
		}
		if barePostalCode(form) == strings.Map(postalForm, bare) {
			return inForm(bare, form), true
		}
	}
	return "", false
}

func postalForm(r rune) rune {
	if unicode.IsDigit(r) {
		return '9'
	}
	return 'A'
}

func inForm(bare, form string) string {
	written := []byte(form)
	next := 0
	for i, c := range written {
		if c != ' ' && c != '-' {
			written[i] = bare[next]
			next++
		}
	}
	return string(written)
}
