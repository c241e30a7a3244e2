// Package openapi has the descriptions of the carrier's API, and of the admin
// API of the mock carrier, for programs that hand them out.
package openapi

import _ "embed"

//go:embed carrier.yaml
var carrier string

//go:embed admin.yaml
var admin string

// Carrier returns the OpenAPI description of the carrier's API, in YAML.
func Carrier() string { return carrier }

// Admin returns the OpenAPI description of the mock carrier's admin API, in YAML.
func Admin() string { return admin }
