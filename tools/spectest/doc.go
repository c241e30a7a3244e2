// Package spectest has no code, only tests: of openapi/carrier.yaml, and of
// the checks themselves. They need nothing but Go, unlike the linter beside
// the spec.
//
// The spec is outside this module, so go test does not notice when it changes.
// Run them with -count=1.
package spectest
