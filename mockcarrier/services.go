package mockcarrier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// service is what the carrier sells.
type service struct {
	name, title string
	perParcel   int64   // in cents
	pace        float64 // the factor on the times of the journey
	carries     float64 // kg, the most that a parcel may weigh
}

var services = []service{
	{"economy", "Economy", 420, 2, 20},
	{"standard", "Standard", 520, 1, 70},
	{"express", "Express", 980, 0.5, 30},
}

// serviceOf returns the service of a name, and whether there is one. What is to
// go by another goes as standard.
func serviceOf(name string) (service, bool) {
	index := func(name string) int {
		return slices.IndexFunc(services, func(s service) bool { return s.name == name })
	}
	if i := index(name); i >= 0 {
		return services[i], true
	}
	return services[index("standard")], false
}

// consignment is what goes from one place to another, as far as its price
// depends on it.
type consignment struct {
	from, to  api.Address
	parcels   []api.Parcel
	insurance *api.Insurance
}

func consignmentOf(r api.ShipmentRequest) consignment {
	return consignment{r.From, r.To, r.Parcels, r.Insurance}
}

// priceLine is a part of a price.
type priceLine struct {
	code, description string
	cents             int64
}

// price is per parcel and kilogram, and more for another country and for
// insurance.
func (s service) price(c consignment) (lines []priceLine, cents int64) {
	lines = []priceLine{{"base", fmt.Sprintf("%s, %d × %s", s.title, len(c.parcels), euros(s.perParcel).Amount), s.perParcel * int64(len(c.parcels))}}
	weight := int64(0)
	for _, p := range c.parcels {
		weight += int64(math.Ceil(kilograms(p.Weight)*100 - 1e-6))
	}
	lines = append(lines, priceLine{"weight", "1.00 for each kg", weight})
	if c.from.Country != c.to.Country {
		lines = append(lines, priceLine{"international", "To another country", 1000})
	}
	if sum, _ := c.insured(); sum > 0 {
		lines = append(lines, priceLine{"insurance", "1 % of the sum", sum})
	}
	for _, l := range lines {
		cents += l.cents
	}
	return lines, cents
}

// insuredMost is the largest sum that the carrier insures, in whole units of
// whatever currency.
const insuredMost = 50_000

// insured returns the sum that the carrier insures, in units that have begun,
// and whether that is all that is asked for.
func (c consignment) insured() (int64, bool) {
	if c.insurance == nil || value(c.insurance.Provider) == api.InsuranceProviderThirdParty {
		return 0, true
	}
	whole, fraction, _ := strings.Cut(c.insurance.Value.Amount, ".")
	sum, err := strconv.ParseInt(whole, 10, 64)
	if strings.Trim(fraction, "0") != "" {
		sum++
	}
	if err != nil || sum > insuredMost {
		return insuredMost, false
	}
	return sum, true
}

// obstacles are why the service cannot carry the parcels as they are.
func (s service) obstacles(c consignment) []api.Warning {
	var list []api.Warning
	for i, p := range c.parcels {
		if kilograms(p.Weight) > s.carries+1e-9 {
			list = append(list, api.Warning{
				Code: "too_heavy", Message: fmt.Sprintf("%s carries up to %g kg.", s.name, s.carries),
				Pointer: resilience.Index("/parcels", i) + "/weight",
			})
		}
	}
	if _, all := c.insured(); !all {
		list = append(list, api.Warning{
			Code: "insurance_too_high", Message: fmt.Sprintf("%s insures up to %d.", s.name, insuredMost), Pointer: "/insurance/value",
		})
	}
	return list
}

func unknownService(name, pointer string) api.Warning {
	return api.Warning{Code: "unknown_service", Message: name + " is none of the carrier's services.", Pointer: pointer}
}

// warnings are what the sender of a shipment should know.
func warnings(r api.ShipmentRequest) []api.Warning {
	var list []api.Warning
	s, known := serviceOf(r.Service)
	if !known {
		list = append(list, unknownService(r.Service, "/service"))
	}
	list = append(list, s.obstacles(consignmentOf(r))...)
	if r.Customs == nil && r.From.Country != r.To.Country {
		list = append(list, api.Warning{
			Code: "customs_missing", Message: "Customs may hold a parcel without a declaration.", Pointer: "/customs",
		})
	}
	return list
}

func euros(cents int64) api.Money {
	return api.Money{Amount: fmt.Sprintf("%d.%02d", cents/100, cents%100), Currency: "EUR"}
}

func kilograms(w api.Weight) float64 {
	switch w.Unit {
	case api.WeightUnitG:
		return w.Value / 1000
	case api.WeightUnitOz:
		return w.Value * 0.028349523125
	case api.WeightUnitLb:
		return w.Value * 0.45359237
	}
	return w.Value
}

func millimetres(length float64, unit api.LengthUnit) float64 {
	return length * cmp.Or(map[api.LengthUnit]float64{api.LengthUnitCm: 10, api.LengthUnitIn: 25.4}[unit], 1)
}
