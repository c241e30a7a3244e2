package resilience_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// secretsOf are credentials as carriers have them, and what of each is secret.
var secretsOf = map[string]struct{ header, value, secret string }{
	"an API key":     {"X-Api-Key", "sk_live_51H8xYzQq", "sk_live_51H8xYzQq"},
	"odd characters": {"X-Api-Key", `ab"c<d>&e/f+g=h'i k\l`, `ab"c<d>&e/f+g=h'i k\l`},
	"a bearer token": {"Authorization", "Bearer tok_9f8e7d6c5b4a", "tok_9f8e7d6c5b4a"},
	"basic":          {"Authorization", "Basic dXNlcjpwYXNzd29yZDEyMw==", "dXNlcjpwYXNzd29yZDEyMw=="},
	"the password":   {"Authorization", "Basic dXNlcjpwYXNzd29yZDEyMw==", "password123"},
}

// echoes are the forms in which a server may say a secret again.
var echoes = map[string]func(string) string{
	"as it is":         func(s string) string { return s },
	"JSON":             jsonOf,
	"JSON of PHP":      func(s string) string { return strings.ReplaceAll(jsonOf(s), "/", `\/`) },
	"JSON, HTML safe":  func(s string) string { b, _ := json.Marshal(s); return string(b[1 : len(b)-1]) },
	"query":            url.QueryEscape,
	"path":             url.PathEscape,
	"query, lower hex": func(s string) string { return lowerHex(url.QueryEscape(s)) },
	"HTML":             html.EscapeString,
	"base64":           func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, raw":      func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 of URLs":   func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 of URLs, raw": func(s string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(s))
	},
}

// jsonOf writes s as most encoders do: without Go's escapes for HTML.
func jsonOf(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
}

func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// leaks fails the test if a text holds the secret, in any form.
func leaks(t *testing.T, where, text, secret string) {
	t.Helper()
	for form, echo := range echoes {
		if e := echo(secret); strings.Contains(text, e) {
			t.Errorf("%s shows the secret (%s):\n%s", where, form, text)
			return
		}
	}
	var decoded any // what JSON hides behind its escapes
	if json.Unmarshal([]byte(text), &decoded) == nil && strings.Contains(fmt.Sprint(decoded), secret) {
		t.Errorf("%s shows the secret once it is decoded:\n%s", where, text)
	}
}

// texts are all the textual forms of a value.
func texts(v any) map[string]string {
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	if b, err := json.Marshal(v); err == nil {
		out["json"] = string(b)
	}
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"slog text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"slog JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("x", "value", v)
		out[name] = b.String()
	}
	return out
}

// leaksAnywhere looks at a value, its fields, and all that it wraps.
func leaksAnywhere(t *testing.T, where string, v any, secret string) {
	t.Helper()
	for form, text := range texts(v) {
		leaks(t, where+" "+form, text, secret)
	}
	switch v := v.(type) {
	case interface{ Unwrap() []error }:
		for _, err := range v.Unwrap() {
			leaksAnywhere(t, where+" > wrapped", err, secret)
		}
	case interface{ Unwrap() error }:
		if err := v.Unwrap(); err != nil {
			leaksAnywhere(t, where+" > wrapped", err, secret)
		}
	}
	if e, ok := v.(*resilience.Error); ok {
		leaks(t, where+".Body", string(e.Body), secret)
		leaks(t, where+".RequestID", e.RequestID, secret)
		for name, values := range e.Header {
			leaks(t, where+".Header "+name, strings.Join(values, "\n"), secret)
		}
		if p := e.Problem; p != nil {
			leaksAnywhere(t, where+".Problem", *p, secret)
			for name, raw := range p.Extensions {
				leaks(t, where+".Problem.Extensions "+name, string(raw), secret)
			}
		}
	}
}

// A secret that the carrier echoes is nowhere to be seen: not in any text of an
// error, not in what it wraps, not in its fields, hooks, info or logs.
func TestEchoedSecrets(t *testing.T) {
	for kind, credential := range secretsOf {
		for form, echo := range echoes {
			t.Run(kind+"/"+form, func(t *testing.T) {
				said := echo(credential.secret)
				inJSON := said // what stands in a JSON string as it is
				if !strings.HasPrefix(form, "JSON") {
					inJSON = jsonOf(said)
				}
				header := http.Header{
					"X-Request-Id": {"r-" + said}, "X-Echo": {"you sent " + said, said},
					"Set-Cookie": {"key=" + credential.secret}, "Location": {"https://other.example/?key=" + said},
				}
				problem := fmt.Sprintf(`{"type":"p/%[1]s","title":"t %[1]s","detail":"d %[1]s","instance":"i %[1]s","code":"%[1]s","requestId":"%[1]s",
					"errors":[{"pointer":"/%[1]s","code":"%[1]s","message":"m %[1]s"}],"echo":{"deep":["x %[1]s"],"%[1]s":1}}`, inJSON)
				foreign := fmt.Sprintf(`{"error":{"code":"%[1]s","message":"m %[1]s"},"transactionId":"%[1]s"}`, inJSON)
				acts := map[string]act{
					"problem details":           {Status: 400, Header: header, Body: problem},
					"a carrier's own":           {Status: 401, Header: withType(header, "application/json"), Body: foreign},
					"HTML":                      {Status: 502, Header: withType(header, "text/html"), Body: "<p>Your key " + said + " is odd"},
					"at the cut":                {Status: 404, Header: withType(header, "text/plain"), Body: strings.Repeat("x", 4<<10-len(said)/2) + said + strings.Repeat("y", 100)},
					"just before the cut":       {Status: 404, Header: withType(header, "text/plain"), Body: strings.Repeat("x", 4<<10-len(said)) + said},
					"a media type":              {Status: 200, Header: withType(header, "text/"+strings.Repeat("x", 60)+said+"; key="+said), Body: said},
					"not JSON":                  {Status: 200, Header: header, Body: `{"a":` + said},
					"JSON of another kind":      {Status: 200, Header: header, Body: `"` + inJSON + `"`},
					"a cut answer":              {Status: 200, Header: header, Body: `{"a":"` + said + `",`, BodyErr: errors.New("cut after " + said)},
					"an error of the transport": {Err: fmt.Errorf("malformed HTTP response %q: %s", said, said)},
					"an error with the URL":     {Err: &url.Error{Op: "Get", URL: "https://api.carrier.example/?key=" + said, Err: errors.New("no")}},
				}
				for name, a := range acts {
					var log bytes.Buffer
					var attempts []resilience.Attempt
					see := func(a resilience.Attempt) { attempts = append(attempts, a) }
					d := onStage(t, playing(a), resilience.WithCredential(credential.header, credential.value), resilience.WithUserAgent("x"),
						resilience.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
						atOnce(resilience.RetryPolicy{
							MaxAttempts: 2, OnRetry: func(a resilience.Attempt, _ time.Duration) { see(a) },
							Retryable: func(a resilience.Attempt) bool { see(a); return true },
						}))
					var info resilience.CallInfo
					err := callThing(t.Context(), d, opOf("read"), resilience.WithCallInfo(&info))
					if err == nil {
						t.Fatalf("%s: no error", name)
					}
					leaksAnywhere(t, name+": error", err, credential.secret)
					leaksAnywhere(t, name+": wrapped error", fmt.Errorf("tracking: %w", err), credential.secret)
					leaksAnywhere(t, name+": info", info, credential.secret)
					for _, a := range attempts {
						leaksAnywhere(t, name+": attempt", a, credential.secret)
						leaksAnywhere(t, name+": attempt's error", a.Err, credential.secret)
						for header, values := range a.Header {
							leaks(t, name+": attempt's header "+header, strings.Join(values, "\n"), credential.secret)
						}
					}
					leaks(t, name+": log", log.String(), credential.secret)
					if e := errorOf(t, err); e.Header.Get("Set-Cookie") != "" || info.Header.Get("Set-Cookie") != "" {
						t.Errorf("%s: Set-Cookie is on the error or in info", name)
					}
				}
			})
		}
	}
}

// JSON can say anything in escapes of its own. What is decoded shows it.
func TestSecretsBehindEscapes(t *testing.T) {
	for kind, credential := range secretsOf {
		escaped := ""
		for _, c := range []byte(credential.secret) {
			escaped += fmt.Sprintf(`\u%04x`, c)
		}
		body := fmt.Sprintf(`{"title":"t","detail":"d %[1]s","code":"c%[1]s","requestId":"%[1]s","errors":[{"pointer":"/%[1]s","code":"%[1]s","message":"%[1]s"}],"echo":{"%[1]s":["%[1]s"]},"kept":"\u0041"}`, escaped)
		for name, a := range map[string]act{
			"problem details":      {Status: 400, Body: body},
			"JSON of another kind": {Status: 200, Body: `["` + escaped + `"]`},
		} {
			d := onStage(t, playing(a), resilience.WithCredential(credential.header, credential.value))
			var info resilience.CallInfo
			e := errorOf(t, callThing(t.Context(), d, opOf("read"), resilience.WithCallInfo(&info)))
			leaksAnywhere(t, kind+", "+name, e, credential.secret)
			leaksAnywhere(t, kind+", "+name+", info", info, credential.secret)
			if strings.Contains(string(e.Body), escaped) {
				t.Errorf("%s, %s: the body has it: %s", kind, name, e.Body)
			}
			if e.StatusCode == 400 && (e.Problem.Title != "t" || string(e.Problem.Extensions["kept"]) != `"\u0041"`) {
				t.Errorf("%s: what is no secret is gone: %+v", kind, e.Problem)
			}
		}
	}
}

func withType(h http.Header, contentType string) http.Header {
	h = h.Clone()
	h.Set("Content-Type", contentType)
	return h
}

// What was cut, by the network or by a limit, does not end in half a secret.
func TestHalfASecret(t *testing.T) {
	const secret = "sk_live_0123456789abcdefghijklmnopqrstuvwxyz"
	for half := 8; half < len(secret); half++ {
		part := secret[:half]
		for name, test := range map[string]struct {
			act     act
			options []resilience.Option
		}{
			"a body that the network cut":   {act{Status: 500, Body: "key " + part, BodyErr: io.ErrUnexpectedEOF}, nil},
			"a result that the network cut": {act{Status: 200, Body: `{"key":"` + part, BodyErr: io.ErrUnexpectedEOF}, nil},
			"a result over the limit": {act{Status: 200, Body: strings.Repeat("x", 200) + secret, CloseDelimited: true},
				[]resilience.Option{resilience.WithMaxResponseBytes(int64(200 + half))}},
			"a result over the limit by its length": {act{Status: 200, Body: strings.Repeat("x", 4<<10-half) + secret},
				[]resilience.Option{resilience.WithMaxResponseBytes(4 << 10)}},
			"an id over the limit":           {act{Status: 500, Header: http.Header{"X-Request-Id": {strings.Repeat("x", 128-half) + secret}}}, nil},
			"an error over the limit":        {act{Err: errors.New(strings.Repeat("x", 300-half) + secret)}, nil},
			"a media type over the limit":    {act{Status: 200, Header: http.Header{"Content-Type": {"text/" + strings.Repeat("x", 75-half) + secret}}}, nil},
			"a body over what is read of it": {act{Status: 500, Header: http.Header{"Content-Type": {"text/plain"}}, Body: strings.Repeat("x", 256<<10-half) + secret, CloseDelimited: true}, nil},
		} {
			if strings.Contains(name, "media type") && half > 75 {
				continue
			}
			d := onStage(t, playing(test.act), append(test.options, resilience.WithCredential("X-Api-Key", secret), resilience.WithoutRetry())...)
			e := errorOf(t, callThing(t.Context(), d, opOf("read")))
			for where, text := range map[string]string{"text": e.Error(), "body": string(e.Body), "id": e.RequestID} {
				if strings.Contains(text, part[:8]) {
					t.Fatalf("%s: %d characters of the secret are in the %s: %q", name, half, where, text[max(0, len(text)-80):])
				}
			}
		}
	}
}

// A secret that is said in one line of many bodies leaves the rest readable.
func TestRedactionLeavesTheRest(t *testing.T) {
	const secret = "sk_live_51H8xYzQq"
	d := onStage(t, playing(act{Status: 400, Header: http.Header{"X-Echo": {"a " + secret + " b"}}, Body: `{"title":"key ` + secret + ` is wrong","code":"bad_key","hint":[1,"x"]}`}),
		resilience.WithCredential("X-Api-Key", secret))
	e := errorOf(t, callThing(t.Context(), d, opOf("read")))
	if want := `{"title":"key [REDACTED] is wrong","code":"bad_key","hint":[1,"x"]}`; string(e.Body) != want {
		t.Errorf("the body is %s, want %s", e.Body, want)
	}
	if e.Problem.Title != "key [REDACTED] is wrong" || e.Problem.Code != "bad_key" || string(e.Problem.Extensions["hint"]) != `[1,"x"]` || e.Header.Get("X-Echo") != "a [REDACTED] b" {
		t.Errorf("problem %+v, header %v", e.Problem, e.Header)
	}
}

// Nobody who prints a client or its options sees what they hold.
func TestClientShowsNothing(t *testing.T) {
	const secret = "sk_live_51H8xYzQq"
	credential := resilience.WithCredential("X-Api-Key", secret)
	d := doerFor(t, resilience.WithBaseURL(origin), credential)
	for name, v := range map[string]any{"the Doer": d, "a struct around it": struct{ D *resilience.Doer }{d}, "the option": credential, "a list of options": []resilience.Option{credential}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			leaks(t, name+" "+verb, fmt.Sprintf(verb, v), secret)
		}
	}
	if got := fmt.Sprintf("%+v", d); got != "resilience.Doer" {
		t.Errorf("the Doer is shown as %q", got)
	}
	hc := d.HTTPClient()
	leaks(t, "its http.Client", fmt.Sprintf("%+v %#v", hc, hc.Transport), secret)
}

// A refused option does not repeat what it was given.
func TestRefusedOptionsShowNothing(t *testing.T) {
	for name, o := range map[string]resilience.Option{
		"a credential with a new line": resilience.WithCredential("X-Api-Key", "sk_live_51H8\nxYzQq"),
		"a credential with spaces":     resilience.WithCredential("X-Api-Key", " sk_live_51H8xYzQq"),
		"a base URL with a password":   resilience.WithBaseURL("https://user:sk_live_51H8xYzQq@h/v1"),
		"a base URL that is none":      resilience.WithBaseURL("https://user:sk_live_51H8xYzQq@h:x/%zz"),
		"a header":                     resilience.WithHeader("X-Other", "sk_live_51H8xYzQq\x00"),
	} {
		_, err := resilience.New(o)
		isExactly(t, err, "ErrInvalidRequest")
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err)), "sk_live") {
			t.Errorf("%s: the error repeats it: %v", name, err)
		}
	}
}

// Do hides no less than Call, nor does HTTPClient, whose errors name the URL.
func TestDoShowsNoSecret(t *testing.T) {
	const secret = "sk_live_51H8xYzQq"
	d := onStage(t, playing(act{Status: 400, Body: `{"title":"` + secret + `"}`}), resilience.WithCredential("X-Api-Key", secret), resilience.WithStatusErrors())
	_, err := d.Do(httpRequestOf(t.Context(), origin+"/v1", opOf("read")))
	leaksAnywhere(t, "Do", err, secret)
	_, err = d.HTTPClient().Do(httpRequestOf(t.Context(), origin+"/v1", opOf("read")))
	leaksAnywhere(t, "HTTPClient", err, secret)
	if e := errorOf(t, err); e.StatusCode != 400 {
		t.Errorf("through HTTPClient: %v", err)
	}
}

// A text has no URL with a query, no header and no body in it.
func TestTextsHaveNoURL(t *testing.T) {
	req, err := http.NewRequestWithContext(context.Background(), "GET", "http://127.0.0.1:1/things/a1?token=hush", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Secret", "hush")
	for _, options := range [][]resilience.Option{nil, {resilience.WithBaseURL("http://127.0.0.1:1")}} {
		_, err = doerFor(t, append(options, resilience.WithoutRetry())...).Do(req)
		if err == nil || strings.Contains(fmt.Sprintf("%+v", err), "hush") || strings.Contains(err.Error(), "?") {
			t.Errorf("the text is %q", err)
		}
	}
}

// What holds a secret shows a word in its place, however it is written down.
func TestValuesShowNothing(t *testing.T) {
	const secret = "sk_live_51H8xYzQq"
	stream := resilience.Stream{ReadCloser: io.NopCloser(strings.NewReader(secret)), Header: http.Header{"X-Request-Id": {"r1"}}}
	for name, test := range map[string]struct {
		value any
		text  string
	}{
		"a token":                     {resilience.Token{Value: secret, Type: secret}, "resilience.Token"},
		"a pointer to a token":        {&resilience.Token{Value: secret}, "resilience.Token"},
		"a stream":                    {stream, "resilience.Stream"},
		"a pointer to a stream":       {&stream, "resilience.Stream"},
		"a redirect":                  {&resilience.RedirectError{Location: "https://h.example/x?sig=" + secret}, "redirect to another origin, not followed"},
		"a redirect to its origin":    {&resilience.RedirectError{Location: "https://h.example/x?sig=" + secret, SameOrigin: true}, "redirect, not followed"},
		"a redirect that leads to no": {&resilience.RedirectError{}, "redirect without a valid target"},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			if got := fmt.Sprintf(verb, test.value); got != test.text {
				t.Errorf("%s: %s writes %q, want %q", name, verb, got, test.text)
			}
		}
		for form, text := range texts(test.value) {
			if form != "json" { // which is of the fields that are public
				leaks(t, name+", "+form, text, secret)
			}
		}
	}
	got, err := json.Marshal(map[string]any{"token": resilience.Token{Value: secret}})
	if want := `{"token":"resilience.Token"}`; err != nil || string(got) != want {
		t.Errorf("JSON of a token is %s, %v; want %s", got, err, want)
	}
}

// A token that has been replaced can still be echoed by a late answer. The last
// sixteen are known, however often the source gives the same one.
func TestRecentTokensAreRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept = 16
		n := 0
		source := resilience.WithTokenSource(func(context.Context) (resilience.Token, error) {
			n++
			return resilience.Token{Value: tokenName(min(n, kept+1)), Expires: time.Now().Add(10 * time.Second)}, nil
		})
		echo := 0
		d := connect(t, answering(func(*http.Request) (*http.Response, error) {
			if echo == 0 {
				return newAnswer(200, `{}`), nil
			}
			return newAnswer(400, `{"title":"you sent `+tokenName(echo)+`"}`), nil
		}), source)
		for range 2 * kept {
			if _, err := track(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if n != 2*kept {
			t.Fatalf("%d tokens were fetched, want %d", n, 2*kept)
		}
		for echo = 1; echo <= kept+1; echo++ {
			_, err := track(t.Context(), d)
			title, want := failureOf(t, err).Problem.Title, "you sent "
			if echo == 1 {
				want += tokenName(1) // the oldest is forgotten
			}
			if shown := strings.Contains(title, tokenName(echo)); shown != (echo == 1) || !strings.HasPrefix(title, want) {
				t.Errorf("token %d of %d is shown as %q", echo, kept+1, title)
			}
		}
	})
}

// Only basic authentication is decoded: what another scheme's token would be in
// base64 is no secret.
func TestOtherSchemesAreNotDecoded(t *testing.T) {
	said := "the printer is out of labels"
	for _, scheme := range []string{"Bearer", "Token"} {
		d := onStage(t, playing(act{Status: 400, Body: `{"title":"` + said + `"}`}),
			resilience.WithCredential("Authorization", scheme+" "+base64.StdEncoding.EncodeToString([]byte(said))))
		if e := errorOf(t, callThing(t.Context(), d, opOf("read"))); e.Problem.Title != said {
			t.Errorf("%s: got %q, want %q", scheme, e.Problem.Title, said)
		}
	}
	d := onStage(t, playing(act{Status: 400, Body: `{"title":"` + said + `"}`}), resilience.WithCredential("Authorization", "Basic !"+said[:3]))
	if e := errorOf(t, callThing(t.Context(), d, opOf("read"))); e.Problem.Title != said {
		t.Errorf("basic that is no base64: got %q, want %q", e.Problem.Title, said)
	}
}

// Of two secrets that begin alike, the longer is taken out whole, and none that
// is empty is looked for.
func TestSecretsThatBeginAlike(t *testing.T) {
	const short, long = "sk_live_51H8", "sk_live_51H8-and-more"
	for name, opts := range map[string][]resilience.Option{
		"the short one first": {resilience.WithCredential("X-Short", short), resilience.WithCredential("X-Long", long)},
		"the long one first":  {resilience.WithCredential("X-Long", long), resilience.WithCredential("X-Short", short)},
		"and an empty one":    {resilience.WithCredential("X-Long", long), resilience.WithBasicAuth(short, "")},
	} {
		d := onStage(t, playing(act{Status: 400, Body: `{"title":"not ` + long + `, nor ` + short + `"}`}), opts...)
		if got, want := errorOf(t, callThing(t.Context(), d, opOf("read"))).Problem.Title, "not [REDACTED], nor [REDACTED]"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A secret keeps its capitals where its escapes are written small.
func TestCapitalSecretInSmallEscapes(t *testing.T) {
	const secret = "AB/CD+EF/GH"
	d := onStage(t, playing(act{Status: 400, Body: `{"title":"you sent ` + lowerHex(url.QueryEscape(secret)) + `"}`}), resilience.WithCredential("X-Api-Key", secret))
	if got := errorOf(t, callThing(t.Context(), d, opOf("read"))).Problem.Title; got != "you sent [REDACTED]" {
		t.Errorf("got %q", got)
	}
}

// Three characters at a cut are in every text; four may be a secret's.
func TestShortestHalfOfASecret(t *testing.T) {
	const secret = "sk_live_0123456789abcdefghijklmnopqrstuvwxyz"
	for _, test := range []struct{ body, want string }{
		{"key " + secret[:3], "key " + secret[:3]},
		{"key " + secret[:4], "key [REDACTED]"},
		{"key " + secret[:len(secret)-1], "key [REDACTED]"},
		{strings.Repeat("x", 5000) + secret[:20], strings.Repeat("x", 4<<10-len("[REDACTED]")) + "[REDACTED]"},
	} {
		d := onStage(t, playing(act{Status: 500, Body: test.body, BodyErr: io.ErrUnexpectedEOF}), resilience.WithCredential("X-Api-Key", secret), resilience.WithoutRetry())
		if e := errorOf(t, callThing(t.Context(), d, opOf("read"))); string(e.Body) != test.want {
			t.Errorf("%q: %d bytes, %q", test.body, len(e.Body), e.Body)
		}
	}
}

// An id that comes from outside is printed as far as it can be.
func TestPrintableIDs(t *testing.T) {
	for id, want := range map[string]string{
		"a b~!": "a b~!", "a\x7fb": "ab", "gr\u00fc\u00df": "gr", strings.Repeat("x", 128): strings.Repeat("x", 128), strings.Repeat("x", 129): strings.Repeat("x", 128),
	} {
		d := onStage(t, playing(act{Status: 400, Header: http.Header{"X-Request-Id": {id}}}))
		if e := errorOf(t, callThing(t.Context(), d, opOf("read"))); e.RequestID != want {
			t.Errorf("%q is shown as %q, want %q", id, e.RequestID, want)
		}
	}
}

// Nor if the transport's own error has one: it may be an http.Client underneath.
func TestTextOfATransportThatNamesTheURL(t *testing.T) {
	rt := answering(func(r *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Get", URL: r.URL.String() + "?token=hush", Err: io.ErrUnexpectedEOF}
	})
	_, err := track(t.Context(), connect(t, rt, resilience.WithoutRetry()))
	is(t, err, io.ErrUnexpectedEOF)
	if text := err.Error(); strings.Contains(text, "hush") || strings.Contains(text, "https://") {
		t.Errorf("%q", text)
	}
}
