package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// DefaultTolerance is how far the time of a signature may be away.
const DefaultTolerance = 5 * time.Minute

// maxSignatures is how many signatures of a header are looked at. More make it
// malformed.
const maxSignatures = 16

// For errors.Is: why [Verify] refuses.
var (
	// ErrMalformed: there is no header, or it is not "t=UNIX,v1=HEX".
	ErrMalformed = errors.New("callback: the signature is missing or malformed")
	// ErrSignature: none of the signatures is right for any of the secrets.
	ErrSignature = errors.New("callback: the signature is wrong")
	// ErrExpired: a signature is right, and its time is too far away: somebody
	// repeats an old notification, or a clock is wrong.
	ErrExpired = errors.New("callback: the signature is too old, or of the future")
)

// Verify returns nil if one of the header's signatures is right for one of the
// secrets, and its time is at most tolerance before or behind now; 0 stands for
// [DefaultTolerance], and a negative tolerance takes any time. Without a secret,
// nothing is right; an empty secret counts as none.
//
// How long it takes tells nothing of the secrets, and neither does an error.
func Verify(header string, body []byte, now time.Time, tolerance time.Duration, secrets ...resilience.Secret) error {
	signed, err := parse(header)
	if err != nil {
		return err
	}
	right := false
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		want := sum(signed.text, body, secret)
		for _, got := range signed.sums {
			right = hmac.Equal(got, want) || right
		}
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	away := now.Sub(signed.at)
	switch {
	case !right:
		return ErrSignature
	case tolerance > 0 && away.Abs() > tolerance:
		return fmt.Errorf("%w: %v away", ErrExpired, away.Round(time.Second))
	}
	return nil
}

// Sign returns the header for a body that is sent at t, with a signature for
// each of the secrets. It is for tests, and for those who send.
func Sign(t time.Time, body []byte, secrets ...resilience.Secret) string {
	at := strconv.FormatInt(t.Unix(), 10)
	header := "t=" + at
	for _, secret := range secrets {
		header += ",v1=" + hex.EncodeToString(sum(at, body, secret))
	}
	return header
}

func sum(at string, body []byte, secret resilience.Secret) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}

// signature is what a header says.
type signature struct {
	text string // of the time, as it is written
	at   time.Time
	sums [][]byte
}

// parse reads a header. Parts of other names are left for later versions.
func parse(header string) (signature, error) {
	var s signature
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		switch name {
		case "t":
			at, ok := parseTime(value)
			if !ok || s.text != "" {
				return s, ErrMalformed
			}
			s.text, s.at = value, at
		case "v1":
			got, err := hex.DecodeString(value)
			if err != nil || len(got) != sha256.Size || len(s.sums) == maxSignatures {
				return s, ErrMalformed
			}
			s.sums = append(s.sums, got)
		}
	}
	if s.text == "" || len(s.sums) == 0 {
		return s, ErrMalformed
	}
	return s, nil
}

// parseTime reads whole seconds since 1970, in digits alone.
func parseTime(text string) (time.Time, bool) {
	const most = 11 // digits, which end in the year 5138
	if len(text) > most || strings.Trim(text, "0123456789") != "" {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}
