module github.com/carrier-sdk/carrier-go

go 1.26.0

require (
	code.dny.dev/ssrf v0.3.0
	github.com/google/uuid v1.6.0
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/oapi-codegen/runtime v1.9.0
	github.com/sony/gobreaker/v2 v2.4.0
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
)
