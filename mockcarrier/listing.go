package mockcarrier

import (
	"encoding/base64"
	"net/http"
)

// listing is an answer with a list, which is written even if it is empty.
type listing[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// writeModel writes an answer that the generated types have no form for.
func writeModel(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", jsonType)
	_, err := w.Write(append(encode(v), '\n'))
	return err
}

// VisitListShipmentsResponse writes the list.
func (l listing[T]) VisitListShipmentsResponse(w http.ResponseWriter) error { return writeModel(w, l) }

// VisitSearchTrackingResponse writes the list.
func (l listing[T]) VisitSearchTrackingResponse(w http.ResponseWriter) error { return writeModel(w, l) }

// VisitListServicePointsResponse writes the list.
func (l listing[T]) VisitListServicePointsResponse(w http.ResponseWriter) error {
	return writeModel(w, l)
}

// VisitListSubscriptionsResponse writes the list.
func (l listing[T]) VisitListSubscriptionsResponse(w http.ResponseWriter) error {
	return writeModel(w, l)
}

// endCursor leads to an empty page; [KindEndlessPages] gives it.
const endCursor = "ZW5k"

// cursorBehind returns the cursor of the page behind an item, which it names,
// so that what is made meanwhile moves nothing.
func cursorBehind(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// lastBefore returns the item that a cursor names; "" if it is none.
func lastBefore(cursor string) string {
	name, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return ""
	}
	return string(name)
}

func noCursor() *refusal {
	return malformed("cursor", "format", "must be the nextCursor of a page")
}
