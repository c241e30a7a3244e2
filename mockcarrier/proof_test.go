package mockcarrier_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

func TestProofOfDelivery(t *testing.T) {
	a := newAPI(mockcarrier.Start(t, frozen()))
	a.buy(t, "k", order).want(t, 201)
	a.get(t, "/tracking/BK2001TR/proof-of-delivery").want(t, 409, "not_delivered")
	a.Advance(48 * time.Hour)
	for _, tc := range []struct {
		number string
		status int
		code   string
	}{
		{"BK2001TR", 200, ""}, {"BK1002TR", 200, ""}, {"MC04", 200, ""}, {"MC06X", 200, ""}, {"MC22", 200, ""},
		{"BK1001TR", 409, "not_delivered"}, {"BK1003TR", 409, "not_delivered"}, {"MC09", 409, "not_delivered"}, {"MC14", 409, "not_delivered"},
		{"BK9999TR", 404, "tracking_not_found"}, {"MC12", 410, "tracking_expired"}, {"BK", 400, "malformed_parameter"},
	} {
		a.get(t, "/tracking/"+tc.number+"/proof-of-delivery").want(t, tc.status, tc.code)
	}
	a.get(t, "/tracking/BK1002TR/proof-of-delivery?format=zpl").want(t, 400, "malformed_parameter")
}

// A proof is a document like a label: in parts, and by version.
func TestProofOfDeliveryInParts(t *testing.T) {
	a := newAPI(mockcarrier.Start(t, frozen()))
	for format, tc := range map[string]struct{ contentType, magic string }{
		"pdf": {"application/pdf", "%PDF-1."}, "png": {"image/png", "\x89PNG"},
	} {
		path := "/tracking/BK1002TR/proof-of-delivery?format=" + format
		whole := a.get(t, path)
		whole.want(t, 200)
		etag := whole.Header.Get("ETag")
		if whole.Header.Get("Content-Type") != tc.contentType || !strings.HasPrefix(whole.body, tc.magic) || etag == "" {
			t.Errorf("%s: got %v", format, whole.Header)
		}
		if format == "pdf" && !strings.Contains(whole.body, "(BK1002TR) Tj") {
			t.Error("the number is not on it")
		}
		if again := a.get(t, path); again.body != whole.body {
			t.Errorf("%s: it is another each time", format)
		}
		a.get(t, path, "If-None-Match", etag).want(t, 304)
		part := a.get(t, path, "Range", "bytes=10-19", "If-Range", etag)
		part.want(t, 206)
		if want := fmt.Sprintf("bytes 10-19/%d", len(whole.body)); part.body != whole.body[10:20] || part.Header.Get("Content-Range") != want {
			t.Errorf("%s: got %q of %v", format, part.body, part.Header)
		}
		if other := a.get(t, path, "Range", "bytes=10-19", "If-Range", `"other"`); other.StatusCode != 200 || other.body != whole.body {
			t.Errorf("%s: a part of something else", format)
		}
		a.get(t, path, "Range", "bytes=999999-").want(t, 416)
		for _, ranges := range []string{"", "bytes=10-19"} {
			same := a.get(t, path, "Range", ranges)
			if head := a.do(t, "HEAD", path, "", "Range", ranges); head.StatusCode != same.StatusCode || head.ContentLength != int64(len(same.body)) || head.body != "" {
				t.Errorf("%s: HEAD has %d and %d bytes, GET %d and %d", format, head.StatusCode, head.ContentLength, same.StatusCode, len(same.body))
			}
		}
	}
}

// It is made when it is first asked for, also if somebody has restarted the
// carrier meanwhile.
func TestProofOfDeliveryTakesItsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		opts      []mockcarrier.Option
		reference string
		takes     int
	}{
		"by option":    {[]mockcarrier.Option{mockcarrier.WithLabelTime(3 * time.Second)}, "order-1", 3},
		"by reference": {nil, "FAULT-LABEL-PENDING", 2},
		"by both":      {[]mockcarrier.Option{mockcarrier.WithLabelTime(3 * time.Second)}, "FAULT-LABEL-PENDING-1", 5},
	} {
		t.Run(name, func(t *testing.T) {
			const path = "/tracking/BK2001TR/proof-of-delivery"
			a := newAPI(mockcarrier.Start(t, append(tc.opts, frozen())...))
			a.buy(t, "k", orderFor(tc.reference)).want(t, 201)
			a.Advance(100 * time.Hour)
			pending := a.get(t, path)
			if body := pending.want(t, 202); body["status"] != "pending" || pending.Header.Get("Retry-After") != fmt.Sprint(tc.takes) {
				t.Errorf("got %v %s", pending.Header, pending.body)
			}
			a.Advance(time.Second)
			b := newAPI(mockcarrier.Start(t, append(tc.opts, frozen())...))
			if err := b.Restore(a.Snapshot()); err != nil {
				t.Fatal(err)
			}
			if left := b.get(t, path).Header.Get("Retry-After"); left != fmt.Sprint(tc.takes-1) {
				t.Errorf("%s s are left, of %d", left, tc.takes)
			}
			b.Advance(time.Duration(tc.takes-1) * time.Second)
			b.get(t, path).want(t, 200)
		})
	}
}
