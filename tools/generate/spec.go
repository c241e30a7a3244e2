package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/util"
)

// specFile is the description, below the root.
const specFile = "openapi/carrier.yaml"

// load reads the description afresh: the generator writes into it.
// References to other hosts are refused.
func load(root string) (*openapi3.T, error) {
	doc, err := util.LoadSwaggerWithOverlay(filepath.Join(root, specFile), util.LoadSwaggerWithOverlayOpts{AllowRemoteRefsFrom: []string{}})
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return nil, fmt.Errorf("%s: %w", specFile, err)
	}
	for op, where := range operations(doc) {
		if err := checkExtensions(op); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", specFile, where, err)
		}
	}
	inlineParameters(doc)
	return doc, nil
}

// operations yields every operation below paths with its method and path.
func operations(doc *openapi3.T) func(yield func(*openapi3.Operation, string) bool) {
	return func(yield func(*openapi3.Operation, string) bool) {
		for _, path := range doc.Paths.InMatchingOrder() {
			for method, op := range doc.Paths.Value(path).Operations() {
				if !yield(op, method+" "+path) {
					return
				}
			}
		}
	}
}

// checkExtensions refuses vendor extensions that the templates would make
// nonsense of.
func checkExtensions(op *openapi3.Operation) error {
	if op.OperationID == "" {
		return fmt.Errorf("operationId is missing")
	}
	for name, value := range op.Extensions {
		ok := true
		switch name {
		case "x-safety":
			ok = slices.Contains([]any{"read", "idempotent", "keyed", "unsafe"}, value)
		case "x-timeout", "x-attempt-timeout", "x-idempotency-ttl":
			text, _ := value.(string)
			d, err := time.ParseDuration(text)
			ok = err == nil && d > 0 && !strings.ContainsAny(text, "µun+-")
		case "x-stream":
			_, ok = value.(bool)
		case "x-max-body":
			n, isNumber := value.(float64)
			ok = isNumber && n > 0 && n == float64(int64(n))
		case "x-group", "x-idempotency-key-header":
			text, isText := value.(string)
			ok = isText && text != ""
		case "x-in-progress-codes", "x-key-reused-codes":
			list, isList := value.([]any)
			ok = isList && !slices.ContainsFunc(list, func(v any) bool { _, isText := v.(string); return !isText })
		}
		if !ok {
			return fmt.Errorf("%s cannot be %v", name, value)
		}
	}
	return nil
}

// inlineParameters puts shared parameters in their places, so that no types
// are made for them beside the models.
func inlineParameters(doc *openapi3.T) {
	for _, item := range doc.Paths.Map() {
		inlined(item.Parameters)
	}
	for op := range operations(doc) {
		inlined(op.Parameters)
	}
}

func inlined(parameters openapi3.Parameters) {
	for _, p := range parameters {
		p.Ref = ""
	}
}

// inlineResponses does the same with shared answers.
func inlineResponses(doc *openapi3.T) {
	for op := range operations(doc) {
		for _, r := range op.Responses.Map() {
			r.Ref = ""
		}
	}
}

// dropHeaders takes away the header parameters that are no members of the
// generated parameter types: the idempotency key, and those that OpenAPI says
// to ignore.
func dropHeaders(doc *openapi3.T) {
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			names := []string{"idempotency-key", "x-idempotency-key", "accept", "content-type", "authorization"}
			if own, ok := op.Extensions["x-idempotency-key-header"].(string); ok {
				names = append(names, strings.ToLower(own))
			}
			dropped := func(p *openapi3.ParameterRef) bool {
				return p.Value.In == openapi3.ParameterInHeader && slices.Contains(names, strings.ToLower(p.Value.Name))
			}
			op.Parameters = slices.DeleteFunc(op.Parameters, dropped)
			item.Parameters = slices.DeleteFunc(item.Parameters, dropped)
		}
	}
}
