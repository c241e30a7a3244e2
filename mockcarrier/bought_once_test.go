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
		mock.Inject(mockcarrier.Sequence(
			mockcarrier.Status(503).RetryAfter(30), mockcarrier.ResetAfter(), mockcarrier.Delay(20*time.Second)))
		client, err := carrier.New(mock.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(mock.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		shipment, err := client.CreateShipment(t.Context(), shipmentRequest())
		if bought := mock.Ledger(); err != nil || len(bought) != 1 || bought[0].ShipmentID != shipment.ID {
			t.Errorf("%v: bought %v", err, bought)
		}
	})
}
