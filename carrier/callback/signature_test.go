package callback_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

const (
	secret = resilience.Secret("whsec_Zm9vYmFyYmF6cXV4")
	body   = `{"id":"evt_9001"}`
	// good and empty are what openssl makes of "1772442900." and the body, with
	// the secret and with none.
	good  = "c518bbd9e6311af954025be48af4d7bdd425af85988ffb4a26bcd64014a844e5"
	empty = "c7a6b88aa32d56ce7219f630945168461ee41cb87ef616a1c152d5fc56a79b57"
)

var signedAt = time.Unix(1772442900, 0)

func TestVerify(t *testing.T) {
	content, err := os.ReadFile("testdata/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, Header, Tolerance, Want string
		Secrets                       []resilience.Secret
		Now                           int64
	}
	if err := json.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("GOOD", good, "UPPER", strings.ToUpper(good), "WRONG", empty, "EMPTY", empty)
	reasons := map[string]error{"malformed": callback.ErrMalformed, "signature": callback.ErrSignature, "expired": callback.ErrExpired, "": nil}
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			now, tolerance := signedAt, time.Duration(0)
			if tc.Now != 0 {
				now = time.Unix(tc.Now, 0)
			}
			if tc.Tolerance != "" {
				if tolerance, err = time.ParseDuration(tc.Tolerance); err != nil {
					t.Fatal(err)
				}
			}
			err := callback.Verify(fill.Replace(tc.Header), []byte(body), now, tolerance, tc.Secrets...)
			for reason, sentinel := range reasons {
				if reason != "" && errors.Is(err, sentinel) != (reason == tc.Want) {
					t.Errorf("got %v, want %q", err, tc.Want)
				}
			}
			if (err == nil) != (tc.Want == "") {
				t.Errorf("got %v, want %q", err, tc.Want)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "whsec") || strings.Contains(err.Error(), good[:8])) {
				t.Errorf("the error tells too much: %v", err)
			}
			if other := callback.Verify(fill.Replace(tc.Header), []byte(body+" "), now, tolerance, tc.Secrets...); other == nil {
				t.Error("another body is taken")
			}
		})
	}
}

func TestVerifyLooksAtSomeSignaturesOnly(t *testing.T) {
	for n, want := range map[int]error{15: nil, 16: callback.ErrMalformed, 100_000: callback.ErrMalformed} {
		header := "t=1772442900" + strings.Repeat(",v1="+empty, n) + ",v1=" + good
		if err := callback.Verify(header, []byte(body), signedAt, 0, secret); !errors.Is(err, want) {
			t.Errorf("%d before: %v, want %v", n, err, want)
		}
	}
}

func TestSign(t *testing.T) {
	if got, want := callback.Sign(signedAt, []byte(body), secret), "t=1772442900,v1="+good; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	two := callback.Sign(signedAt.Add(time.Millisecond), []byte(body), "whsec_another_secret", secret)
	if !strings.HasSuffix(two, ",v1="+good) || strings.Count(two, "v1=") != 2 {
		t.Errorf("got %s", two)
	}
}

// Whatever the header and the body are, what is not signed is refused, and what
// is signed is taken.
func FuzzVerify(f *testing.F) {
	for _, header := range []string{"", "t=1772442900,v1=" + good, "t=1,t=2,v1=00", ",,=,t=99999999999,v1=" + strings.ToUpper(good), "t=\x00"} {
		f.Add(header, []byte(body))
	}
	f.Fuzz(func(t *testing.T, header string, content []byte) {
		err := callback.Verify(header, content, signedAt, -1, secret)
		if at := regexp.MustCompile(`t=(\d{1,11})`).FindStringSubmatch(header); err == nil {
			seconds, _ := strconv.ParseInt(at[1], 10, 64)
			_, sum, _ := strings.Cut(callback.Sign(time.Unix(seconds, 0), content, secret), "v1=")
			if !strings.Contains(strings.ToLower(header), sum) {
				t.Errorf("%q is taken, without %s", header, sum)
			}
		}
		if err == nil && callback.Verify(header, append([]byte("x"), content...), signedAt, -1, secret) == nil {
			t.Errorf("%q is taken for two bodies", header)
		}
		if err != nil && !errors.Is(err, callback.ErrMalformed) && !errors.Is(err, callback.ErrSignature) {
			t.Errorf("%q: %v", header, err)
		}
		if err := callback.Verify(callback.Sign(signedAt, content, "whsec_another_secret", secret), content, signedAt, 0, secret); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	})
}
