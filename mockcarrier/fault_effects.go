package mockcarrier

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// strike does what a fault does in its phase. The answer is the one that would
// have come; it is empty before processing. It says whether the request is done
// with: a delay only takes time, the rest stands in place of the answer.
func (x *exchange) strike(f Fault, a answer) bool {
	if f.Kind != KindDelay {
		a = x.whole(a)
	}
	switch f.Kind {
	case KindDelay, KindStall, KindReset, KindClose, KindGarbage: // no answer to note
	case KindStatus, KindHTML, KindRedirect:
		a = x.answerOf(f)
		x.quota, x.replayed = nil, false // it is not the carrier that answers
		x.note(a)
	default:
		a = f.spoil(a)
		x.note(a)
	}
	size := int64(len(a.Body))
	switch f.Kind {
	case KindDelay:
		x.wait(f.Wait)
		return false
	case KindStall:
		x.stall()
	case KindReset, KindClose:
		x.cut(f.Kind == KindReset)
	case KindStallBody:
		x.writeHead(a, size)
		_, _ = x.w.Write(a.Body[:min(f.Bytes, size)])
		x.flush()
		x.stall()
	case KindDrip:
		x.drip(a, f.Bytes, f.Wait)
	case KindTruncate:
		x.sendRaw(a, f.Framing, min(f.Bytes, max(0, size-1)), 1, false)
	case KindResetBody:
		x.sendRaw(a, ByLength, min(f.Bytes, max(0, size-1)), 1, true)
	case KindDuplicate:
		x.sendRaw(a, ByLength, size, 2, false)
	case KindGarbage, KindBadChunk, KindOverlong, KindNoContentBody:
		x.sendBroken(f, a)
	case KindOversize:
		x.sendPadded(a, f.Bytes, f.Framing)
	case KindInformational:
		x.inform(f)
		x.send(a)
	default:
		x.send(a)
	}
	return true
}

// wait lasts d. It goes on when the client has gone, as a carrier's work does,
// but not when the carrier closes.
func (x *exchange) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.carrier.running.closing:
		panic(http.ErrAbortHandler)
	}
}

// stall lasts until the client goes away or the carrier closes.
func (x *exchange) stall() {
	select {
	case <-x.r.Context().Done():
	case <-x.carrier.running.closing:
	}
	panic(http.ErrAbortHandler)
}

func (x *exchange) drip(a answer, piece int64, wait time.Duration) {
	x.writeHead(a, int64(len(a.Body)))
	for rest := a.Body; len(rest) > 0; {
		x.flush()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-x.r.Context().Done():
		case <-x.carrier.running.closing:
		}
		timer.Stop()
		n := min(piece, int64(len(rest)))
		if _, err := x.w.Write(rest[:n]); err != nil || x.r.Context().Err() != nil || x.carrier.running.closed() {
			panic(http.ErrAbortHandler)
		}
		rest = rest[n:]
	}
}

func (x *exchange) inform(f Fault) {
	for range max(1, f.Count) {
		header := x.w.Header()
		for name, values := range f.Header {
			header[name] = values
		}
		x.w.WriteHeader(f.Status)
		for name := range f.Header {
			header.Del(name)
		}
	}
}

// answerOf returns the answer that a fault gives in place of the carrier's.
func (x *exchange) answerOf(f Fault) answer {
	var a answer
	switch {
	case f.Kind == KindHTML:
		a = answer{Status: f.Status, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: []byte(f.Body)}
		if f.Body == "" {
			title := html.EscapeString(http.StatusText(f.Status))
			a.Body = []byte("<!DOCTYPE html>\n<html><head><title>" + title + "</title></head>\n<body><h1>" + title + "</h1></body></html>\n")
		}
	case f.Body != "":
		a = answer{Status: f.Status, Header: http.Header{"Content-Type": {contentTypeOf(f)}}, Body: []byte(f.Body)}
	case f.Status >= http.StatusBadRequest:
		a = refuseStatus(f.Status).coded(f.Code).answer(x.requestID)
	default:
		a = answer{Status: f.Status, Header: http.Header{}}
	}
	for name, values := range f.Header {
		a.Header[name] = values
	}
	if f.RetryDate != nil {
		a.Header.Add("Retry-After", x.carrier.now().Add(*f.RetryDate).UTC().Format(http.TimeFormat))
	}
	if _, ok := a.Header["Location"]; f.Kind == KindRedirect && !ok {
		a.Header.Set("Location", x.r.URL.RequestURI())
	}
	return a
}

func contentTypeOf(f Fault) string {
	switch {
	case !json.Valid([]byte(f.Body)):
		return "text/plain; charset=utf-8"
	case f.Status >= http.StatusBadRequest:
		return problemType
	}
	return jsonType
}

// spoil returns the answer with the fault in its headers or its body, where that
// is where it belongs.
func (f Fault) spoil(a answer) answer {
	a.Header = a.Header.Clone()
	switch f.Kind {
	case KindMalformedJSON:
		a.Body = malformedJSON(a.Body)
	case KindContentType:
		a.Header.Del("Content-Type")
		if f.Body != "" {
			a.Header.Set("Content-Type", f.Body)
		}
	case KindBadGzip:
		a.Header.Set("Content-Encoding", "gzip")
	case KindLargeHeader:
		a.Header.Set("X-Padding", strings.Repeat("x", int(f.Bytes)))
	case KindEmpty:
		a.Status, a.Body = http.StatusOK, nil
	case KindNoContentBody:
		a.Status = http.StatusNoContent
	case KindUnknownFields:
		a.Body = rewriteJSON(a.Body, addUnknown)
	case KindUnknownEnums:
		a.Body = rewriteJSON(a.Body, unknownStatus)
	case KindNulls:
		a.Body = rewriteJSON(a.Body, nullValues)
	case KindZonelessTimes:
		a.Body = zone.ReplaceAll(a.Body, []byte(`$1"`))
	case KindEndlessPages:
		a.Body = rewriteJSON(a.Body, goOn)
	}
	return a
}

// malformedJSON puts a comma before the last brace or bracket, which a lenient
// eye overlooks; a body without one is cut in half.
func malformedJSON(body []byte) []byte {
	trimmed := bytes.TrimRight(body, " \n")
	if n := len(trimmed); n > 1 && (trimmed[n-1] == '}' || trimmed[n-1] == ']') {
		return append(append(bytes.Clone(trimmed[:n-1]), ','), trimmed[n-1])
	}
	return body[:len(body)/2]
}

// rewriteJSON returns the document with change applied to each object, inner
// ones first. What is no JSON stays as it is.
func rewriteJSON(body []byte, change func(map[string]any)) []byte {
	document, ok := decodeJSON(body)
	if !ok {
		return body
	}
	eachObject(document, change)
	out, err := json.Marshal(document)
	if err != nil {
		return body
	}
	return out
}

func eachObject(value any, change func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			eachObject(member, change)
		}
		change(value)
	case []any:
		for _, item := range value {
			eachObject(item, change)
		}
	}
}

func addUnknown(object map[string]any) {
	object["newSince2030"] = map[string]any{"deep": []any{1, "two", nil, true}}
	object["x-vendor"] = "unknown"
}

func unknownStatus(object map[string]any) {
	for name, value := range object {
		if _, ok := value.(string); ok && (name == "status" || strings.HasSuffix(name, "Status") || name == "state") {
			object[name] = "handed_to_a_drone"
		}
	}
}

func nullValues(object map[string]any) {
	for name, value := range object {
		switch value.(type) {
		case map[string]any, []any:
		default:
			object[name] = nil
		}
	}
}

// goOn gives a page that is the last one a cursor, which leads to an empty page.
func goOn(object map[string]any) {
	if _, isPage := object["items"].([]any); isPage && object["nextCursor"] == nil {
		object["nextCursor"] = endCursor
	}
}

// zone finds RFC 3339 times within JSON strings, whole strings only.
var zone = regexp.MustCompile(`("\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:\d\d)"`)
