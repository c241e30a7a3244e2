// Package carriergo holds nothing but the line that generates this module's
// code from openapi/carrier.yaml: `go generate .`, or `make generate`.
//
// The SDK is package carrier, the carrier for tests is package mockcarrier, and
// package carrier/resilience has the layers for any other carrier.
package carriergo

//go:generate go -C tools run ./generate -root ..
