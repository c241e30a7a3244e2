package mockcarrier

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// normalJSON returns v as a document of JSON is decoded here.
func normalJSON(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	document, _ := decodeJSON(data)
	return document, nil
}

// difference is where two documents are not the same.
type difference struct {
	pointer   string
	got, want string
}

func (d difference) String() string {
	at := d.pointer
	if at == "" {
		at = "the whole"
	}
	return fmt.Sprintf("%s: got %s, want %s", at, d.got, d.want)
}

const nothing = "nothing"

// compareJSON returns where got differs from want. With open, got may have more
// members and elements than want. Numbers are compared by their value.
func compareJSON(pointer string, want, got any, open bool) []difference {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return compareObjects(pointer, want, got, open)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return compareArrays(pointer, want, got, open)
		}
	case json.Number:
		if got, ok := got.(json.Number); ok && sameNumber(want, got) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return []difference{{pointer, textOf(got), textOf(want)}}
}

func compareObjects(pointer string, want, got map[string]any, open bool) []difference {
	var found []difference
	for _, name := range slices.Sorted(maps.Keys(want)) {
		at := pointer + "/" + escapePointer.Replace(name)
		if member, ok := got[name]; ok {
			found = append(found, compareJSON(at, want[name], member, open)...)
		} else {
			found = append(found, difference{at, nothing, textOf(want[name])})
		}
	}
	if !open {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[name]; !ok {
				found = append(found, difference{pointer + "/" + escapePointer.Replace(name), textOf(got[name]), nothing})
			}
		}
	}
	return found
}

func compareArrays(pointer string, want, got []any, open bool) []difference {
	var found []difference
	for i := range max(len(want), len(got)) {
		at := pointer + "/" + strconv.Itoa(i)
		switch {
		case i >= len(got):
			found = append(found, difference{at, nothing, textOf(want[i])})
		case i < len(want):
			found = append(found, compareJSON(at, want[i], got[i], open)...)
		case !open:
			found = append(found, difference{at, textOf(got[i]), nothing})
		}
	}
	return found
}

func sameNumber(a, b json.Number) bool {
	x, ok := new(big.Rat).SetString(string(a))
	y, alsoOK := new(big.Rat).SetString(string(b))
	return ok && alsoOK && x.Cmp(y) == 0
}

// memberAt returns what a JSON pointer (RFC 6901) points at.
func memberAt(document any, pointer string) (any, bool) {
	if pointer == "" {
		return document, true
	}
	for _, name := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		name = unescapePointer.Replace(name)
		switch inner := document.(type) {
		case map[string]any:
			member, ok := inner[name]
			if !ok {
				return nil, false
			}
			document = member
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(inner) {
				return nil, false
			}
			document = inner[i]
		default:
			return nil, false
		}
	}
	return document, true
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// textOf writes a value as JSON, cut after a while.
func textOf(v any) string {
	const most = 60
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if text := string(data); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(string(data[:most]), "") + "…"
}
