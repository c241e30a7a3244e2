package mockcarrier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

// 503 for half a minute, then a lost answer, then a slow one: bought once, and
// the minute is over in no time.
func TestBoughtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := mockcarrier.StartInMemory(t)
		mock.Inject(mockcarrier.Delay(20 * time.Second).Times(1))
		mock.Inject(mockcarrier.ResetAfter().Times(1))
		mock.Inject(mockcarrier.Status(503).RetryAfter(30).Times(1)) // the newest strikes first

		client, err := carrier.New(mock.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(mock.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		shipment, err := client.CreateShipment(t.Context(), shipmentRequest())
		if err != nil {
			t.Fatal(err)
		}
		if bought := mock.Ledger(); len(bought) != 1 || bought[0].ShipmentID != shipment.ID {
			t.Errorf("bought %v, got %s", bought, shipment.ID)
		}
	})
}
