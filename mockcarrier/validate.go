package mockcarrier

import (
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

// bodyTypes are the Go types of the bodies that operations take, by the names
// of the methods of the generated interface.
type bodyTypes map[string]reflect.Type

func newBodyTypes() bodyTypes {
	types := bodyTypes{}
	methods := reflect.TypeFor[server.StrictServerInterface]()
	for i := range methods.NumMethod() {
		m := methods.Method(i)
		if field, ok := m.Type.In(1).FieldByName("Body"); ok {
			types[m.Name] = field.Type
		}
	}
	return types
}

// of returns the type of an operation's body. Methods are called as operations
// are, in upper camel case.
func (t bodyTypes) of(operation *resilience.Operation) reflect.Type {
	return t[strings.ToUpper(operation.ID[:1])+operation.ID[1:]]
}

// middleware checks the body of each operation that has one: against the limits
// that are generated from the spec, and for members that it does not have.
func (t bodyTypes) middleware(next server.StrictHandlerFunc, method string) server.StrictHandlerFunc {
	if t[method] == nil {
		return next
	}
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		decoded := reflect.ValueOf(request).FieldByName("Body").Interface()
		if refused := t.check(exchangeOf(ctx), decoded); refused != nil {
			return nil, refused
		}
		return next(ctx, w, r, request)
	}
}

// check refuses a body that could be decoded.
func (t bodyTypes) check(x *exchange, decoded any) *refusal {
	fields, refused := t.structure(x)
	if refused != nil {
		return refused
	}
	if v, ok := decoded.(interface{ Validate() error }); ok {
		var broken resilience.FieldErrors
		if errors.As(v.Validate(), &broken) {
			fields = append(fields, beside(fields, broken)...)
		}
	}
	if len(fields) > 0 {
		return invalid(fields)
	}
	return nil
}

// unreadable refuses a body that could not be decoded.
func (t bodyTypes) unreadable(x *exchange) *refusal {
	fields, refused := t.structure(x)
	switch {
	case refused != nil:
		return refused
	case len(fields) > 0:
		return invalid(fields)
	}
	return malformedBody("The body cannot be read.")
}

// structure refuses what is no JSON, and returns which members are missing,
// unknown, of the wrong type or null.
func (t bodyTypes) structure(x *exchange) (resilience.FieldErrors, *refusal) {
	if !isJSON(x.r.Header.Get("Content-Type")) {
		return nil, unsupportedMediaType()
	}
	document, ok := x.subject.json()
	if !ok {
		return nil, malformedBody("The body is not one JSON document.")
	}
	var fields resilience.FieldErrors
	examine("", document, t.of(x.operation), &fields)
	return fields, nil
}

// beside returns those of the broken rules that are about other members than
// what was found already.
func beside(found, broken resilience.FieldErrors) resilience.FieldErrors {
	return slices.DeleteFunc(broken, func(b resilience.FieldError) bool {
		return slices.ContainsFunc(found, func(f resilience.FieldError) bool {
			return b.Pointer == f.Pointer || strings.HasPrefix(b.Pointer, f.Pointer+"/")
		})
	})
}

func malformedBody(detail string) *refusal {
	return refuse(http.StatusBadRequest, "malformed_json", "Malformed JSON", "%s", detail)
}

func unsupportedMediaType() *refusal {
	return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Unsupported media type",
		"The body must be application/json.")
}

func isJSON(contentType string) bool {
	if contentType == jsonType {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && (mediaType == jsonType || strings.HasSuffix(mediaType, "+json"))
}

// examine compares a document with the Go type that it is decoded into, member
// by member. Names are case-sensitive, as JSON has them.
func examine(pointer string, value any, t reflect.Type, found *resilience.FieldErrors) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wrong := func(want string) { found.Add(pointer, "type", "must be "+want+", and is "+kindOf(value)) }
	switch {
	case value == nil:
		wrong(wantedKind(t))
	case reflect.PointerTo(t).Implements(unmarshaler):
	case t.Kind() == reflect.Struct:
		object, ok := value.(map[string]any)
		if !ok {
			wrong("an object")
			return
		}
		known := membersOf(t)
		for _, name := range sortedNames(object) {
			at := pointer + "/" + escapePointer.Replace(name)
			if m, ok := known[name]; ok {
				examine(at, object[name], m.Type, found)
			} else {
				found.Add(at, "additionalProperties", "is unknown")
			}
		}
		for _, name := range sortedNames(known) {
			if _, given := object[name]; !given && known[name].required {
				found.Add(pointer+"/"+escapePointer.Replace(name), "required", "is required")
			}
		}
	case t.Kind() == reflect.Slice:
		items, ok := value.([]any)
		if !ok {
			wrong("an array")
			return
		}
		for i, item := range items {
			examine(resilience.Index(pointer, i), item, t.Elem(), found)
		}
	default:
		text, err := json.Marshal(value)
		if err != nil || json.Unmarshal(text, reflect.New(t).Interface()) != nil {
			wrong(wantedKind(t))
		}
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return "a string"
	case bool:
		return "a truth value"
	}
	return "a number"
}

func wantedKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

var (
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	escapePointer = strings.NewReplacer("~", "~0", "/", "~1")
)

// member is one of a generated type. Those that the spec requires are written
// even if they are empty.
type member struct {
	reflect.Type
	required bool
}

func membersOf(t reflect.Type) map[string]member {
	known := make(map[string]member, t.NumField())
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = member{t.Field(i).Type, options == ""}
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
