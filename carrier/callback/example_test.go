package callback_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/callback"
	"github.com/carrier-sdk/carrier-go/carrier/resilience"
)

// Take in the notifications of any carrier that signs as this one does.
func ExampleNewReceiver() {
	type parcelNews struct{ EventID, Barcode, State string }
	const secret = resilience.Secret("whsec_Zm9vYmFyYmF6cXV4")
	receiver, err := callback.NewReceiver(
		func(_ context.Context, n parcelNews) error { fmt.Println(n.Barcode, n.State); return nil },
		func(n parcelNews) string { return n.EventID },
		callback.WithSecrets(secret), callback.WithHeader("X-Signature"))
	if err != nil {
		fmt.Println(err)
		return
	}

	// In a service: http.Handle("POST /callbacks", receiver).
	for range 2 {
		body := `{"eventId":"1","barcode":"CH100","state":"DELIVERED"}`
		req := httptest.NewRequest(http.MethodPost, "/callbacks", strings.NewReader(body))
		req.Header.Set("X-Signature", callback.Sign(time.Now(), []byte(body), secret))
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, req)
		fmt.Println(answer.Code)
	}
	// Output:
	// CH100 DELIVERED
	// 204
	// 204
}
