// Package mockcarrier is the carrier as a test server: stateful, honest about
// idempotency, and able to fail in every way that a real carrier does.
//
// A test that proves that a shipment is bought once, although the carrier is
// down for half a minute, then loses its answer, and then is slow:
//
//	func TestBoughtOnce(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			mock := mockcarrier.StartInMemory(t)
//			mock.Inject(mockcarrier.Delay(20 * time.Second).Times(1))
//			mock.Inject(mockcarrier.ResetAfter().Times(1))
//			mock.Inject(mockcarrier.Status(503).RetryAfter(30).Times(1)) // the newest strikes first
//
//			client, err := carrier.New(mock.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(mock.Transport()))
//			if err != nil {
//				t.Fatal(err)
//			}
//			shipment, err := client.CreateShipment(t.Context(), shipmentRequest())
//			if err != nil {
//				t.Fatal(err)
//			}
//			if bought := mock.Ledger(); len(bought) != 1 || bought[0].ShipmentID != shipment.ID {
//				t.Errorf("bought %v, got %s", bought, shipment.ID)
//			}
//		})
//	}
//
// # Where it runs
//
// [Start] serves it on a free port of the loopback interface, [StartInMemory]
// on a network in memory that is as TCP is. The second runs in virtual time
// inside a testing/synctest bubble, where a minute of waiting takes none; start
// it inside the bubble. Both close it when the test ends, and then fail the
// test for a fault that never struck and a request that matched no operation.
// [New] is the bare [http.Handler]. The program cmd/mockcarrier is for other
// languages.
//
// # What it knows
//
// The parcels BK1001TR (in transit), BK1002TR (delivered, signed for) and
// BK1003TR (out for delivery) are there from the start and stay as they are.
// Shipments that are made get the numbers BK2001TR, BK2002TR and so on, and
// travel for two days, on the carrier's clock; [Carrier.Advance] moves it.
//
// Each key of [WithAPIKey] is an account of its own, and [APIKey] the one that
// there is by default. [ForbiddenAPIKey] is answered with 403.
//
// # Faults
//
// [Carrier.Inject] puts a [Fault] in force: which requests it is for, how often
// it strikes, and what it does before, during or after the request is
// processed. The newest rule that strikes wins. What net/http can tell apart is
// apart on the wire: a reset is an RST, a close a FIN, a cut body is cut.
//
// Tests in any language can also ask for a fault by what they send. Tracking
// numbers that begin with these letters, whatever comes behind:
//
//	MC01 label_created     MC07 exception, customs   MC16 three parcels
//	MC02 in_transit        MC08 return_to_sender     MC17 404 three times
//	MC03 out_for_delivery  MC09 returned             MC18 times without a zone
//	MC04 delivered         MC10 cancelled            MC19 null and empty members
//	MC05 at service point  MC11 lost                 MC20 places beyond ASCII
//	MC06 second attempt    MC12 410                  MC21 500 events
//	                       MC13 an unknown status    MC22 events out of order
//
//	MC40 404                     MC47 502, HTML              MC54 body cut
//	MC41 400                     MC48 200, HTML              MC55 wrong Content-Type
//	MC42 429, Retry-After: 1     MC49 200, an error inside   MC56 401 once
//	MC43 429, Retry-After: date  MC50 5 seconds late         MC57 403 for a minute
//	MC44 429, X-RateLimit-Reset  MC51 no answer              MC58 204
//	MC45 503 once                MC52 reset before           MC59 no gzip, although it says so
//	MC46 503                     MC53 reset after            MC60 204 with a Content-Type
//
// References of new shipments, once for each idempotency key, alone or with
// more behind a hyphen: FAULT-RESET-AFTER-COMMIT, FAULT-TIMEOUT-AFTER-COMMIT,
// FAULT-503-BEFORE-COMMIT.
//
// # Proof
//
// [Carrier.Requests] has each request that arrived, [Carrier.Ledger] each
// shipment that was made, whatever was answered. The admin API has the same for
// other languages; see [Carrier.AdminHandler].
package mockcarrier
