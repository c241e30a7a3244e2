package main

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/go-resty/resty/v2"
	"github.com/gojek/heimdall/v7"
	heimdallhttp "github.com/gojek/heimdall/v7/httpclient"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/carrier-sdk/carrier-go/internal/undertest"
	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// What each library is set up with, as far as it has an option for it: the
// defaults of carrier-go, but for the attempt time limit, which the suite sets.
const (
	attempts       = 3
	baseDelay      = 100 * time.Millisecond
	maxDelay       = 5 * time.Second
	attemptTimeout = conformance.AttemptTimeout
)

// library makes clients; each case of the suite has one of its own.
type library struct {
	name string // as the table has it
	new  func(baseURL string) conformance.Client
}

var libraries = []library{
	{"carrier-go", func(base string) conformance.Client { return undertest.New(base) }},
	{"net/http", func(base string) conformance.Client {
		c := &http.Client{Transport: newTransport()}
		return &adapter{base, func(r *http.Request, _ []byte) (*http.Response, error) { return c.Do(r) }, c.CloseIdleConnections}
	}},
	{"go-retryablehttp", newRetryable},
	{"resty", newResty},
	{"heimdall", newHeimdall},
	{"failsafe-go", newFailsafe},
	{"azcore", newAzcore},
	{"openai-go", newOpenAI},
}

// newTransport is net/http's default one, not shared with other clients.
func newTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

func newRetryable(base string) conformance.Client {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = attempts-1, baseDelay, maxDelay
	c.HTTPClient.Timeout = attemptTimeout
	return &adapter{base, func(r *http.Request, _ []byte) (*http.Response, error) {
		req, err := retryablehttp.FromRequest(r)
		if err != nil {
			return nil, err
		}
		return c.Do(req)
	}, c.HTTPClient.CloseIdleConnections}
}

func newResty(base string) conformance.Client {
	c := resty.New().SetRetryCount(attempts - 1).SetRetryWaitTime(baseDelay).SetRetryMaxWaitTime(maxDelay).
		SetTimeout(attemptTimeout).SetDoNotParseResponse(true).SetLogger(silent{}).
		AddRetryCondition(func(r *resty.Response, err error) bool {
			return err != nil || r.StatusCode() == http.StatusTooManyRequests || r.StatusCode() >= 500
		})
	return &adapter{base, func(r *http.Request, body []byte) (*http.Response, error) {
		req := c.R().SetContext(r.Context())
		req.Header = r.Header
		if body != nil {
			req.SetBody(body)
		}
		resp, err := req.Execute(r.Method, r.URL.String())
		if resp == nil {
			return nil, err
		}
		return resp.RawResponse, err
	}, c.GetClient().CloseIdleConnections}
}

// silent drops what resty logs.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

func newHeimdall(base string) conformance.Client {
	inner := &http.Client{Transport: newTransport(), Timeout: attemptTimeout}
	c := heimdallhttp.NewClient(heimdallhttp.WithHTTPClient(inner), heimdallhttp.WithRetryCount(attempts-1),
		heimdallhttp.WithRetrier(heimdall.NewRetrier(heimdall.NewExponentialBackoff(baseDelay, maxDelay, 2, baseDelay))))
	return &adapter{base, func(r *http.Request, _ []byte) (*http.Response, error) { return c.Do(r) }, inner.CloseIdleConnections}
}

// newFailsafe has retry, breaker and timeout, composed as its documentation does.
func newFailsafe(base string) conformance.Client {
	transport := newTransport()
	retry := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).WithBackoff(baseDelay, maxDelay).WithJitterFactor(0.5).Build()
	breaker := circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(r *http.Response, err error) bool { return err != nil || r != nil && r.StatusCode >= 500 }).
		WithFailureThreshold(5).WithDelay(300 * time.Millisecond).Build()
	c := &http.Client{Transport: failsafehttp.NewRoundTripper(transport,
		failsafe.Policy[*http.Response](retry), breaker, timeout.New[*http.Response](attemptTimeout))}
	return &adapter{base, func(r *http.Request, _ []byte) (*http.Response, error) { return c.Do(r) }, transport.CloseIdleConnections}
}

func newAzcore(base string) conformance.Client {
	transport := newTransport()
	pipeline := azruntime.NewPipeline("compare", "v1.0.0", azruntime.PipelineOptions{}, &policy.ClientOptions{
		Transport: &http.Client{Transport: transport},
		Retry:     policy.RetryOptions{MaxRetries: attempts - 1, TryTimeout: attemptTimeout, RetryDelay: baseDelay, MaxRetryDelay: maxDelay},
	})
	return &adapter{base, func(r *http.Request, body []byte) (*http.Response, error) {
		req, err := azruntime.NewRequest(r.Context(), r.Method, r.URL.String())
		if err != nil {
			return nil, err
		}
		for name, values := range r.Header {
			req.Raw().Header[name] = values
		}
		if body != nil {
			if err := req.SetBody(streaming.NopCloser(bytes.NewReader(body)), "application/json"); err != nil {
				return nil, err
			}
		}
		return pipeline.Do(req)
	}, transport.CloseIdleConnections}
}

func newOpenAI(base string) conformance.Client {
	transport := newTransport()
	c := openai.NewClient(option.WithBaseURL(base+"/"), option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(attempts-1), option.WithRequestTimeout(attemptTimeout))
	return &adapter{base, func(r *http.Request, body []byte) (*http.Response, error) {
		var resp *http.Response
		opts := []option.RequestOption{option.WithHeaderDel("Authorization"), option.WithResponseInto(&resp)}
		for name := range r.Header {
			opts = append(opts, option.WithHeader(name, r.Header.Get(name)))
		}
		if body != nil {
			opts = append(opts, option.WithRequestBody("application/json", body))
		}
		var raw *http.Response
		err := c.Execute(r.Context(), r.Method, strings.TrimPrefix(r.URL.String(), base+"/"), nil, &raw, opts...)
		if raw == nil {
			raw = resp
		}
		return raw, err
	}, transport.CloseIdleConnections}
}
