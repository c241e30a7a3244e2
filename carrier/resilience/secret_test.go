package resilience_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

const hookSecret = `whsec_"9f8e/7d6c&5b4a`

// subscription is a body as a generated client has it, with secrets at every
// depth that JSON knows.
type subscription struct {
	URL     string                       `json:"url"`
	Secret  resilience.Secret            `json:"secret"`
	Nested  *subscription                `json:"nested,omitempty"`
	List    []resilience.Secret          `json:"list,omitempty"`
	ByName  map[string]resilience.Secret `json:"byName,omitempty"`
	Any     any                          `json:"any,omitempty"`
	Raw     json.RawMessage              `json:"raw,omitempty"`
	Missing *resilience.Secret           `json:"missing,omitempty"`
}

func TestSecretIsNotPrinted(t *testing.T) {
	body := subscription{
		Secret: hookSecret, Nested: &subscription{Secret: hookSecret},
		List: []resilience.Secret{hookSecret}, ByName: map[string]resilience.Secret{"a": hookSecret}, Any: resilience.Secret(hookSecret),
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "secret", body.Secret, "body", body)
	texts := []string{log.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s"} {
		texts = append(texts, fmt.Sprintf(verb, body.Secret), fmt.Sprintf(verb, *body.Nested), fmt.Sprintf(verb, &body.List))
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		texts = append(texts, fmt.Sprintf(verb, body), fmt.Sprintf(verb, &body))
	}
	for _, text := range texts {
		for _, form := range []string{hookSecret, fmt.Sprintf("%x", hookSecret), fmt.Sprintf("%X", hookSecret), "whsec"} {
			if strings.Contains(text, form) {
				t.Errorf("shows the secret: %s", text)
			}
		}
	}
	if got := fmt.Sprint(resilience.Secret("")); got != "" {
		t.Errorf("no secret is printed as %q", got)
	}
	if got, err := json.Marshal(body.Secret); err != nil || string(got) != jsonString(t, hookSecret) {
		t.Errorf("JSON is %s, %v: the API needs it as it is", got, err)
	}
}

func jsonString(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ring encodes itself, and so may hold what it is held by.
type ring struct {
	secret resilience.Secret
	next   *ring
	list   []any
	named  map[string]any
}

func (r *ring) MarshalJSON() ([]byte, error) { return json.Marshal(string(r.secret)) }

func newRing(secret resilience.Secret) *ring {
	r := &ring{secret: secret, list: make([]any, 1), named: map[string]any{}}
	r.next, r.list[0], r.named["itself"] = r, r.list, r.named
	return r
}

func TestEchoedSecretOfARequest(t *testing.T) {
	for name, model := range map[string]any{
		"a member":       &subscription{Secret: hookSecret},
		"a nested one":   &subscription{Nested: &subscription{Secret: hookSecret}},
		"in a list":      &subscription{List: []resilience.Secret{"other-secret", hookSecret}},
		"in a map":       &subscription{ByName: map[string]resilience.Secret{"a": hookSecret}},
		"in an any":      &subscription{Any: []any{map[string]any{"deep": resilience.Secret(hookSecret)}}},
		"beside raw":     &subscription{Secret: hookSecret, Raw: json.RawMessage(`{"a":1}`)},
		"not a pointer":  subscription{Secret: hookSecret},
		"the value only": resilience.Secret(hookSecret),
		"in a circle":    newRing(hookSecret),
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/problem+json")
				w.Header().Set("X-Echo", hookSecret)
				w.WriteHeader(422)
				problem, _ := json.Marshal(map[string]any{"title": "Bad secret " + hookSecret, "detail": string(sent), "code": hookSecret})
				_, _ = w.Write(problem)
			}))
			defer srv.Close()
			d, err := resilience.New(resilience.WithBaseURL(srv.URL), resilience.WithOperations(keyedOp))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			data, err := json.Marshal(model)
			if err != nil {
				t.Fatal(err)
			}
			err = d.Call(t.Context(), keyedOp, &resilience.Request{Path: "/shipments", Body: data, ContentType: "application/json", Model: model}, nil)
			var e *resilience.Error
			if !errors.As(err, &e) || e.StatusCode != 422 || e.Problem == nil {
				t.Fatalf("error is %v", err)
			}
			whole, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{
				e.Error(), fmt.Sprintf("%+v %#v", e, e), string(e.Body), fmt.Sprint(e.Header), fmt.Sprintf("%+v", *e.Problem), string(whole),
			} {
				if strings.Contains(text, hookSecret) || strings.Contains(text, "whsec") {
					t.Errorf("shows the secret: %s", text)
				}
			}
		})
	}
}

// What is no Secret, or too short for one, is left where it is echoed.
func TestEchoOfWhatIsNoSecret(t *testing.T) {
	for _, test := range []struct {
		model subscription
		said  string
		want  string
	}{
		{subscription{URL: "https://shop.example/hooks"}, "no https://shop.example/hooks", "no https://shop.example/hooks"},
		{subscription{Secret: "1234567"}, "no 1234567", "no 1234567"},
		{subscription{Secret: "12345678"}, "no 12345678", "no [REDACTED]"},
	} {
		d := connect(t, always(422, `{"title":`+jsonString(t, test.said)+`}`))
		data, err := json.Marshal(test.model)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Call(t.Context(), keyedOp, &resilience.Request{Path: "/shipments", Body: data, ContentType: "application/json", Model: test.model}, nil)
		if got := failureOf(t, err).Problem.Title; got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
