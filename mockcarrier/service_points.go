package mockcarrier

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// servicePoints is how many there are around each postal code.
const servicePoints = 12

// servicePointID is the form of their ids: country, postal code and place in the
// list. There is no other list of them.
var servicePointID = regexp.MustCompile(`^sp_[a-z]{2}_([a-z0-9]+)_([1-9][0-9]?)$`)

func isServicePoint(id string) bool {
	m := servicePointID.FindStringSubmatch(id)
	if m == nil || m[1] == postalNoServicePoints {
		return false
	}
	n, _ := strconv.Atoi(m[2])
	return n <= servicePoints
}

// ListServicePoints answers with the service points around a postal code, the
// nearest first.
func (h handlers) ListServicePoints(_ context.Context, req server.ListServicePointsRequestObject) (server.ListServicePointsResponseObject, error) {
	if r := parameters(api.NewListServicePointsRequest(req.Params)); r != nil {
		return nil, r
	}
	limit := 10
	if req.Params.Limit != nil {
		limit = *req.Params.Limit
	}
	list := listing[api.ServicePoint]{Items: []api.ServicePoint{}}
	bare := barePostalCode(req.Params.PostalCode)
	if bare == "" || bare == postalNoServicePoints {
		return list, nil
	}
	for n := 1; n <= min(limit, servicePoints); n++ {
		list.Items = append(list.Items, servicePoint(req.Params.Country, bare, n))
	}
	return list, nil
}

// servicePoint makes the nth service point of a postal code up.
func servicePoint(country, bare string, n int) api.ServicePoint {
	kind := servicePointKinds[(n-1)%len(servicePointKinds)]
	code := bare
	if written, fits := postalCode(bare, postalForms[country]); fits {
		code = written
	}
	distance := 350 * n
	latitude, longitude := somewhere(country+bare, distance, n)
	p := api.ServicePoint{
		ID:   strings.ToLower(fmt.Sprintf("sp_%s_%s_%d", country, bare, n)),
		Name: fmt.Sprintf("%s %d", kind.name, n), Kind: kind.kind,
		Address:  &api.PlaceAddress{Line1: fmt.Sprintf("%d Station Road", 4*n), City: "Town of " + code, PostalCode: code, Country: country},
		Latitude: &latitude, Longitude: &longitude, DistanceMetres: distance,
	}
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}[:kind.days] {
		p.OpeningHours = append(p.OpeningHours, api.OpeningHours{Day: day, From: kind.from, To: kind.to})
	}
	return p
}

var servicePointKinds = []struct {
	kind     api.ServicePointKind
	name     string
	from, to string
	days     int // from Monday on
}{
	{api.ServicePointKindLocker, "Locker at the station", "00:00", "24:00", 7},
	{api.ServicePointKindShop, "Corner shop", "08:00", "20:00", 6},
	{api.ServicePointKindPostOffice, "Post office", "09:00", "17:00", 5},
	{api.ServicePointKindDepot, "Depot", "07:00", "19:00", 5},
}

// somewhere returns a place at a distance from the middle of an area, which is
// anywhere on the Earth but always the same.
func somewhere(area string, metres, direction int) (latitude, longitude float64) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(area))
	n := h.Sum32()
	latitude, longitude = float64(n%12_000)/100-60, float64(n/12_000%34_000)/100-170
	const perDegree = 111_320 // metres
	angle := float64(direction) * 2.4
	latitude += float64(metres) / perDegree * math.Cos(angle)
	longitude += float64(metres) / perDegree / math.Cos(latitude*math.Pi/180) * math.Sin(angle)
	round := func(degrees float64) float64 { return math.Round(degrees*1e5) / 1e5 }
	return round(latitude), round(longitude)
}
