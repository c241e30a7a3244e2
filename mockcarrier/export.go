package mockcarrier

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/server"
)

const (
	ndjsonType = "application/x-ndjson"
	// exportSince is how far an export goes back that is not told from where.
	exportSince = 24 * time.Hour
	// exportPiece is about how many bytes of an export are sent at a time.
	exportPiece = 16 << 10
)

// ExportTrackingEvents answers with what has happened to the parcels of the
// account's shipments until now. The finished cases are nobody's shipments.
func (h handlers) ExportTrackingEvents(ctx context.Context, req server.ExportTrackingEventsRequestObject) (server.ExportTrackingEventsResponseObject, error) {
	if r := parameters(api.NewExportTrackingEventsRequest(req.Params)); r != nil {
		return nil, r
	}
	x, now := exchangeOf(ctx), h.now()
	after, r := exportBehind(x.r.URL.Query(), now)
	if r != nil {
		return nil, r
	}
	return &export{x, h.world.feed(x.account, after), now}, nil
}

// exportBehind returns what an export begins behind.
func exportBehind(query url.Values, now time.Time) (position, *refusal) {
	if query.Has("cursor") {
		after, err := parseCursor(query.Get("cursor"))
		if err != nil {
			return position{}, malformed("cursor", "format", "must be the cursor of a line")
		}
		return after, nil
	}
	if !query.Has("since") {
		return position{At: now.Add(-exportSince)}, nil
	}
	// The run-time of the generated code binds no struct from a query.
	since, err := time.Parse(time.RFC3339, query.Get("since"))
	if err != nil {
		return position{}, malformed("since", "format", "must be a date-time")
	}
	return position{At: since}, nil
}

// cursor names a position, for [parseCursor].
func (p position) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%09d.%d.%d", p.At.Unix(), p.At.Nanosecond(), p.Turn, p.Parcel))
}

func parseCursor(cursor string) (position, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return position{}, err
	}
	var seconds, nanos int64
	var p position
	_, err = fmt.Sscanf(string(text), "%d.%d.%d.%d", &seconds, &nanos, &p.Turn, &p.Parcel)
	p.At = time.Unix(seconds, nanos)
	if err == nil && p.cursor() != cursor {
		err = errors.New("it is written otherwise")
	}
	return p, err
}

// export is a stream of events.
type export struct {
	x     *exchange
	feed  *feed
	until time.Time
}

// VisitExportTrackingEventsResponse leaves it to the exchange to write the
// events, since they are sent as they are made.
func (e *export) VisitExportTrackingEventsResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", ndjsonType)
	e.x.stream = e.write
	return nil
}

// write writes the events, some at a time.
func (e *export) write(w io.Writer) error {
	var piece []byte
	for {
		h, ok := e.feed.peek()
		if ok = ok && !h.at.At.After(e.until); ok {
			e.feed.pass()
			piece = appendLine(piece, h)
		}
		if len(piece) >= exportPiece || !ok && len(piece) > 0 {
			if _, err := w.Write(piece); err != nil {
				return err
			}
			piece = piece[:0]
		}
		if !ok {
			return nil
		}
	}
}

func appendLine(lines []byte, h happening) []byte {
	event := h.event()
	line, err := json.Marshal(api.ExportedEvent{
		Cursor: h.at.cursor(), TrackingNumber: h.number(), ShipmentID: h.shipment.id, Reference: h.shipment.request.Reference, Event: &event,
	})
	if err != nil {
		panic(err) // they always encode
	}
	return append(append(lines, line...), '\n')
}
