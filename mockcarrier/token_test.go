package mockcarrier_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

const formType = "application/x-www-form-urlencoded"

// token asks for one, below the base URL. The SDK does so at its root.
func (a api) token(t *testing.T, form string, headers ...string) (reply, map[string]any) {
	t.Helper()
	r := a.do(t, "POST", "/oauth/token", form,
		append([]string{"-X-Api-Key", "", "-Content-Type", "", "Content-Type", formType}, headers...)...)
	var document map[string]any
	if err := json.Unmarshal([]byte(r.body), &document); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return r, document
}

func (a api) newToken(t *testing.T) string {
	t.Helper()
	r, document := a.token(t, "grant_type=client_credentials&client_id="+mockcarrier.ClientID+"&client_secret="+mockcarrier.ClientSecret)
	token, _ := document["access_token"].(string)
	if r.StatusCode != 200 || token == "" {
		t.Fatalf("got %s %s", r.Status, r.body)
	}
	return token
}

func TestTokens(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, frozen(), mockcarrier.WithTokenLife(90*time.Second+1)))
	basic := func(id, secret string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
		return r.Header.Get("Authorization")
	}
	r, document := a.token(t, "grant_type=client_credentials&scope=tracking+labels", "Authorization", basic(mockcarrier.ClientID, mockcarrier.ClientSecret))
	if document["token_type"] != "Bearer" || document["expires_in"] != float64(91) || document["scope"] != "tracking labels" ||
		r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Request-Id") == "" {
		t.Errorf("got %s %v", r.body, r.Header)
	}
	token := document["access_token"].(string)
	with := func(token string) reply {
		return a.get(t, "/status", "-X-Api-Key", "", "Authorization", "Bearer "+token)
	}
	with(token).want(t, 200)
	a.Advance(90*time.Second + 1)
	expired := with(token)
	expired.want(t, 401, "token_expired")
	if got := expired.Header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) || !strings.Contains(got, "expired") {
		t.Errorf("WWW-Authenticate %s", got)
	}
	with("at_nonsense").want(t, 401, "invalid_token")

	one, two := a.newToken(t), a.newToken(t)
	if one == two || one == token {
		t.Error("two tokens are the same")
	}
	a.RevokeTokens()
	with(one).want(t, 401, "invalid_token")
	with(a.newToken(t)).want(t, 200)

	// The token's account is that of the first key.
	a.buy(t, "k", order).want(t, 201)
	bearer := []string{"-X-Api-Key", "", "Authorization", "bearer " + a.newToken(t)}
	a.get(t, "/shipments/shp_2001", bearer...).want(t, 200)
	if again := a.buy(t, "k", order, bearer...); again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s %v", again.Status, again.Header)
	}
	// A key goes before a token, and other schemes are none.
	a.get(t, "/status", "Authorization", "Bearer nonsense").want(t, 200)
	a.get(t, "/status", "-X-Api-Key", "", "Authorization", basic("a", "b")).want(t, 401, "missing_api_key")
}

func TestTokensThatAreRefused(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithOAuth2Client("id with space", "s:e/c"), mockcarrier.WithOAuth2Client("two", "2")))
	for name, tc := range map[string]struct {
		form    string
		headers []string
		status  int
		code    string
	}{
		"good":             {"grant_type=client_credentials&client_id=two&client_secret=2", nil, 200, ""},
		"good, basic":      {"grant_type=client_credentials", []string{"Authorization", "Basic aWQrd2l0aCtzcGFjZTpzJTNBZSUyRmM="}, 200, ""},
		"the default":      {"grant_type=client_credentials&client_id=" + mockcarrier.ClientID + "&client_secret=" + mockcarrier.ClientSecret, nil, 401, "invalid_client"},
		"no client":        {"grant_type=client_credentials", nil, 401, "invalid_client"},
		"wrong secret":     {"grant_type=client_credentials&client_id=two&client_secret=3", nil, 401, "invalid_client"},
		"bad basic":        {"grant_type=client_credentials", []string{"Authorization", "Basic JTp4"}, 401, "invalid_client"},
		"no grant":         {"client_id=two&client_secret=2", nil, 400, "invalid_request"},
		"another grant":    {"grant_type=password&client_id=two&client_secret=2", nil, 400, "unsupported_grant_type"},
		"both ways":        {"grant_type=client_credentials&client_id=two&client_secret=2", []string{"Authorization", "Basic dHdvOjI="}, 400, "invalid_request"},
		"a parameter more": {"grant_type=client_credentials&grant_type=x&client_id=two&client_secret=2", nil, 400, "invalid_request"},
		"no form":          {"grant_type=client_credentials&client_id=two&client_secret=2", []string{"-Content-Type", "", "Content-Type", "application/json"}, 400, "invalid_request"},
		"bad form":         {"%", nil, 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			r, document := a.token(t, tc.form, tc.headers...)
			if code, _ := document["error"].(string); r.StatusCode != tc.status || code != tc.code {
				t.Errorf("got %s %s", r.Status, r.body)
			}
			if challenge := r.Header.Get("WWW-Authenticate"); (challenge != "") != (tc.status == 401 && len(tc.headers) > 0) {
				t.Errorf("WWW-Authenticate %q", challenge)
			}
		})
	}
	a.token(t, `{"client_id":"two","client_secret":"first=second&third"}`, "-Content-Type", "", "Content-Type", "application/json")
	var text []byte
	for _, r := range a.Requests() {
		line, _ := json.Marshal(r)
		text = fmt.Appendf(text, "%s %s\n", line, r.Body)
	}
	for _, secret := range []string{"client_secret=2", "dHdvOjI", "client_secret=3", "first", "second", "third"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in the journal", secret)
		}
	}
	if !strings.Contains(string(text), "grant_type=password") {
		t.Error("the form is not in the journal")
	}
}

func TestTokenEndpointInRulesAndExpectations(t *testing.T) {
	a := newAPI(mockcarrier.StartInMemory(t, mockcarrier.WithStrict(), mockcarrier.WithExpiresInAsText()))
	a.Inject(mockcarrier.Status(503).MayNotFire()) // all requests, which those for tokens are not
	good := "grant_type=client_credentials&client_id=" + mockcarrier.ClientID + "&client_secret=" + mockcarrier.ClientSecret
	if _, document := a.token(t, good); document["expires_in"] != "3600" {
		t.Errorf("got %v", document)
	}
	e := a.Expect(mockcarrier.TokenOperation)
	a.Inject(mockcarrier.Status(429).RetryAfter(2).On(mockcarrier.TokenOperation).Times(1))
	if r, _ := a.token(t, good); r.StatusCode != 429 || r.Header.Get("Retry-After") != "2" {
		t.Errorf("got %s", r.Status)
	}
	if journal := a.Requests(); e.Came() != 1 || journal[1].Operation != mockcarrier.TokenOperation || journal[1].Fault == "" {
		t.Errorf("%d came, %+v", e.Came(), journal[1])
	}
	a.ClearFaults()
	req, _ := http.NewRequest("GET", a.URL+"/oauth/token", nil)
	explained, err := a.Explain(req)
	if err != nil || explained.Operation != "" {
		t.Errorf("got %v %v", explained, err)
	}
}

// The SDK renews its token before it expires, and when it is refused.
func TestTokensOfTheSDK(t *testing.T) {
	for _, opts := range [][]mockcarrier.Option{nil, {mockcarrier.WithExpiresInAsText()}} {
		synctest.Test(t, func(t *testing.T) {
			s := mockcarrier.StartInMemory(t, append(opts, mockcarrier.WithTokenLife(10*time.Minute))...)
			client, err := carrier.New(s.URL, carrier.WithTransport(s.Transport()),
				resilience.WithOAuth2(mockcarrier.ClientID, mockcarrier.ClientSecret, resilience.OAuth2Config{TokenURL: "/oauth/token"}))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			track := func() {
				t.Helper()
				if _, err := client.GetTracking(t.Context(), "BK1001TR"); err != nil {
					t.Error(err)
				}
			}
			for range 30 {
				track()
				time.Sleep(time.Minute)
			}
			s.RevokeTokens()
			track()
			s.Inject(mockcarrier.ExpiredToken().On("getTracking").Times(1))
			track()
			issued := map[string]int{}
			for _, r := range s.Requests() {
				issued[fmt.Sprint(r.Operation, r.Status)]++
			}
			if n := issued[mockcarrier.TokenOperation+"200"]; n < 5 || n > 7 || issued["getTracking401"] != 2 {
				t.Errorf("got %v", issued)
			}
		})
	}
	t.Run("a wrong secret", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := mockcarrier.StartInMemory(t)
			client, err := carrier.New(s.URL, carrier.WithTransport(s.Transport()),
				resilience.WithOAuth2(mockcarrier.ClientID, "wrong", resilience.OAuth2Config{TokenURL: "/oauth/token", SecretInBody: true}))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.GetTracking(t.Context(), "BK1001TR"); !errors.Is(err, carrier.ErrUnauthorized) {
				t.Errorf("got %v", err)
			}
		})
	})
}
