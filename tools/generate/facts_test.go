package main

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestFacts(t *testing.T) {
	scheme := func(kind, in, name string) *openapi3.SecuritySchemeRef {
		return &openapi3.SecuritySchemeRef{Value: &openapi3.SecurityScheme{Type: kind, In: in, Name: name}}
	}
	cases := []struct {
		name       string
		servers    []string
		asked      []string
		schemes    openapi3.SecuritySchemes
		base, head string
	}{
		{"nothing", nil, nil, nil, "", ""},
		{"whole URL", []string{"https://api.example/v1/", "https://other.example"}, nil, nil, "/v1", ""},
		{"path alone", []string{"/api/rest/v2"}, nil, nil, "/api/rest/v2", ""},
		{"root", []string{"https://api.example/"}, nil, nil, "", ""},
		{"key in a query", nil, nil, openapi3.SecuritySchemes{"q": scheme("apiKey", "query", "key")}, "", ""},
		{"bearer", nil, nil, openapi3.SecuritySchemes{"b": scheme("http", "", "")}, "", ""},
		{"what is asked for comes first", nil, []string{"z"}, openapi3.SecuritySchemes{
			"a": scheme("apiKey", "header", "X-A"), "z": scheme("apiKey", "header", "X-Z"),
		}, "", "X-Z"},
		{"else by name", nil, nil, openapi3.SecuritySchemes{
			"b": scheme("apiKey", "header", "X-B"), "a": scheme("apiKey", "header", "X-A"),
		}, "", "X-A"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			doc := &openapi3.T{Components: &openapi3.Components{SecuritySchemes: tc.schemes}}
			for _, url := range tc.servers {
				doc.Servers = append(doc.Servers, &openapi3.Server{URL: url})
			}
			for _, name := range tc.asked {
				doc.Security = append(doc.Security, openapi3.SecurityRequirement{name: nil})
			}
			if base, err := basePath(doc); err != nil || base != tc.base {
				t.Errorf("base path is %q (%v), want %q", base, err, tc.base)
			}
			if head := apiKeyHeader(doc); head != tc.head {
				t.Errorf("key header is %q, want %q", head, tc.head)
			}
		})
	}
}
