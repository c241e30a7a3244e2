package resilience

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	maxKeyLength  = 255
	defaultKeyTTL = 24 * time.Hour
	keyMargin     = time.Minute // a key this close to its end is not sent again
)

// keyNamespace is UUIDv5(URL, "https://carrier-sdk.example/idempotency/v1").
var keyNamespace = uuid.UUID{0x1b, 0x60, 0x6d, 0x4a, 0x16, 0xe6, 0x57, 0x13, 0x99, 0xf6, 0x88, 0x30, 0x12, 0xd3, 0x83, 0x40}

// DeriveIdempotencyKey returns the key of a business operation, so that a
// restarted process, or another replica, uses the same key for the same order:
// a UUIDv5 (RFC 9562, section 5.5) over operation, businessID and revision. A
// new revision of the same order is a new intent, and gets another key.
//
// An empty operation or businessID gives "", which no call accepts. Keys are
// not secret: who knows the ids can compute them.
func DeriveIdempotencyKey(operation, businessID string, revision int) string {
	if operation == "" || businessID == "" {
		return ""
	}
	const separator = "\x1f"
	name := escapePart(operation) + separator + escapePart(businessID) + separator + strconv.Itoa(revision)
	return uuid.NewSHA1(keyNamespace, []byte(name)).String()
}

// escapePart keeps two different pairs of parts from giving one name.
func escapePart(s string) string {
	const separator, escape = 0x1f, 0x1b
	if strings.IndexByte(s, separator) < 0 && strings.IndexByte(s, escape) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == separator || c == escape {
			b.WriteByte(escape)
			b.WriteByte(c ^ 0x40)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// validateKey accepts 1 to 255 printable ASCII characters. As a header's value
// would lose them, spaces at either end are refused.
func validateKey(key string) error {
	switch {
	case key == "":
		return invalid("the idempotency key is empty")
	case len(key) > maxKeyLength:
		return invalid("the idempotency key has %d characters, and %d are allowed", len(key), maxKeyLength)
	case key[0] == ' ' || key[len(key)-1] == ' ':
		return invalid("the idempotency key begins or ends with a space")
	}
	for i := 0; i < len(key); i++ {
		if key[i] < 0x20 || key[i] > 0x7e {
			return invalid("the idempotency key must be printable ASCII")
		}
	}
	return nil
}

// newKey returns a random key (UUIDv4).
func newKey() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", invalid("no random idempotency key: %v", err)
	}
	return id.String(), nil
}

// keyValue is the key as the header carries it: raw, or as the String of a
// structured field (RFC 9651, section 4.1.6), which an expired IETF draft wants.
func keyValue(key string, quoted bool) string {
	if !quoted {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// replayed reports whether the carrier marks the answer as that of an earlier
// request with the same key.
func replayed(h http.Header) bool {
	for _, name := range replayMarks {
		if v := h[name]; len(v) > 0 && strings.EqualFold(v[0], "true") {
			return true
		}
	}
	return false
}

var replayMarks = []string{"Idempotency-Replayed", "Idempotent-Replayed", "Idempotency-Replay"}

// netHTTPKeyHeaders are those by which net/http takes a POST for repeatable.
var netHTTPKeyHeaders = []string{"Idempotency-Key", "X-Idempotency-Key"}
