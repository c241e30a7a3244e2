package mockcarrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

// validateBody checks the body of each operation that has one, against the
// limits that are generated from the spec, and refuses members that it does not
// have.
func validateBody(next server.StrictHandlerFunc, _ string) server.StrictHandlerFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		field := reflect.ValueOf(request).FieldByName("Body")
		if field.IsValid() {
			if refused := checkBody(exchangeOf(ctx), field.Interface()); refused != nil {
				return nil, refused
			}
		}
		return next(ctx, w, r, request)
	}
}

func checkBody(x *exchange, decoded any) *refusal {
	if !isJSON(x.r.Header.Get("Content-Type")) {
		return unsupportedMediaType()
	}
	if !json.Valid(x.body) {
		return malformedBody("There is something after the JSON document.")
	}
	fields := unknownMembers("", x.body, reflect.TypeOf(decoded))
	if v, ok := decoded.(interface{ Validate() error }); ok {
		var broken resilience.FieldErrors
		if errors.As(v.Validate(), &broken) {
			fields = append(fields, broken...)
		}
	}
	if len(fields) > 0 {
		return invalid(fields)
	}
	return nil
}

// unreadable refuses a body that could not be decoded.
func unreadable(x *exchange, err error) *refusal {
	var wrongType *json.UnmarshalTypeError
	switch {
	case !isJSON(x.r.Header.Get("Content-Type")):
		return unsupportedMediaType()
	case errors.As(err, &wrongType):
		return invalid(resilience.FieldErrors{{
			Pointer: pointerOf(wrongType.Field), Rule: "type", Message: "cannot be of the type " + wrongType.Value,
		}})
	}
	return malformedBody("The body is no JSON document.")
}

func malformedBody(detail string) *refusal {
	return refuse(http.StatusBadRequest, "malformed_json", "Malformed JSON", "%s", detail)
}

func unsupportedMediaType() *refusal {
	return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Unsupported media type",
		"The body must be application/json.")
}

func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && (mediaType == jsonType || strings.HasSuffix(mediaType, "+json"))
}

// pointerOf turns encoding/json's path of a member, "parcels.weight", into a
// pointer. It has no indices.
func pointerOf(path string) string {
	if path == "" {
		return ""
	}
	return "/" + strings.ReplaceAll(path, ".", "/")
}

// unknownMembers returns the members of a document that its Go type does not
// have. Names are case-sensitive, as JSON has them.
func unknownMembers(pointer string, raw json.RawMessage, t reflect.Type) resilience.FieldErrors {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var found resilience.FieldErrors
	switch t.Kind() {
	case reflect.Struct:
		var members map[string]json.RawMessage
		if reflect.PointerTo(t).Implements(unmarshaler) || json.Unmarshal(raw, &members) != nil {
			return nil
		}
		known := memberTypes(t)
		for _, name := range sortedNames(members) {
			at := pointer + "/" + escapePointer.Replace(name)
			if memberType, ok := known[name]; ok {
				found = append(found, unknownMembers(at, members[name], memberType)...)
			} else {
				found.Add(at, "additionalProperties", "is unknown")
			}
		}
	case reflect.Slice:
		var items []json.RawMessage
		if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) || json.Unmarshal(raw, &items) != nil {
			return nil
		}
		for i, item := range items {
			found = append(found, unknownMembers(resilience.Index(pointer, i), item, t.Elem())...)
		}
	}
	return found
}

var (
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	escapePointer = strings.NewReplacer("~", "~0", "/", "~1")
)

func memberTypes(t reflect.Type) map[string]reflect.Type {
	known := make(map[string]reflect.Type, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = t.Field(i).Type
	}
	return known
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
