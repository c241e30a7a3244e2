// Package mockcarrier is the carrier as a test server: stateful, honest about
// idempotency, and able to fail in every way that a real carrier does.
//
// A test that proves that a shipment is bought once, although the carrier is
// down for half a minute, then loses its answer, and then is slow:
//
//	func TestBoughtOnce(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			mock := mockcarrier.StartInMemory(t)
//			mock.Inject(mockcarrier.Sequence(
//				mockcarrier.Status(503).RetryAfter(30), mockcarrier.ResetAfter(), mockcarrier.Delay(20*time.Second)))
//			client, err := carrier.New(mock.URL, carrier.WithAPIKey(mockcarrier.APIKey), carrier.WithTransport(mock.Transport()))
//			if err != nil {
//				t.Fatal(err)
//			}
//			shipment, err := client.CreateShipment(t.Context(), shipmentRequest())
//			if bought := mock.Ledger(); err != nil || len(bought) != 1 || bought[0].ShipmentID != shipment.ID {
//				t.Errorf("%v: bought %v", err, bought)
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
// test for what was expected and did not come, what came and was not expected,
// a fault that never struck, and a request that matched no operation.
// [New] is the bare [http.Handler]. The program cmd/mockcarrier is for other
// languages: it has a world for each parallel test ([Worlds], told apart by
// [WorldHeader]), a file in which its state survives restarts (-state, which holds
// a [Worlds.Snapshot]), and a page for people at [AdminPath].
//
// # What it knows
//
// The parcels BK1001TR (in transit), BK1002TR (delivered, signed for) and
// BK1003TR (out for delivery) are there from the start and stay as they are.
// Shipments that are made get the numbers BK2001TR, BK2002TR and so on, and
// travel for two days, on the carrier's clock; [Carrier.Advance] moves it, and
// [WithClock] takes another, such as a [ManualClock].
//
// Of the services, economy carries up to 20 kg a parcel, standard 70 and express
// 30. What is heavier has no rate, and neither have other services; a shipment is
// made all the same, with a warning. Rates hold for 10 minutes: for their account,
// service, countries, postal codes, insurance, and the weights and sizes of the
// parcels. Insurance costs 1 % of its sum, which is at most 50,000.
//
// Pickups and manifests are free, so that the ledger has none, and their days and
// hours are those of UTC+3, wherever the address is. A pickup is confirmed after 2
// seconds and made at the end of its window; if its instructions begin with
// FAULT-PICKUP-FAILED it comes to nothing. Manifests do not move parcels.
//
// An address is judged by the form of its postal code, and written in the
// carrier's. Each postal code has 12 service points with made-up places,
// sp_tr_34000_1 to sp_tr_34000_12; ids of another form are none. In each country
// these postal codes stand for a case:
//
//	99901 ambiguous  99902 invalid  99903 residential  99904 no service points
//
// Each key of [WithAPIKey] is an account of its own, and [APIKey] the one that
// there is by default. [ForbiddenAPIKey] is answered with 403. POST /oauth/token
// gives [ClientID] a bearer token that expires on the carrier's clock, by the
// client credentials grant; [Carrier.RevokeTokens] ends those that were issued.
//
// Requests are held to the API's description: what is missing, unknown, of the
// wrong type or beyond a limit is refused, with a pointer to the member.
//
// # What must come
//
// [Carrier.Expect] says which requests must come, how often, with which
// parameters, headers and members, and [InOrder] in which order. What comes
// otherwise fails the test at its end, with what came nearest and where it
// differs:
//
//	mock.Expect("createShipment").With(mockcarrier.Body("/reference", "order-1001")).Times(2)
//
// [Carrier.Explain] says of a request why it would be counted or not, and which
// fault would strike it. Where nothing was said everything may come, unless
// there is [WithStrict].
//
// # Faults
//
// [Carrier.Inject] puts a [Fault] in force: which requests it is for, how often
// it strikes, and what it does before, during or after the request is
// processed. The newest rule that strikes wins. What net/http can tell apart is
// apart on the wire: a reset is an RST, a close a FIN, a cut body is cut.
//
//	Status ExpiredToken HTML Redirect RedirectLoop        an answer in place of the carrier's
//	Delay (UpTo, Spread) Stall StallAfter StallBody Drip  it is slow, or never comes
//	ResetBefore ResetAfter ResetBody                      RST: nothing done, done, within the body
//	CloseBefore CloseAfter Truncate                       FIN: nothing done, done, within the body
//	Garbage BadChunk Overlong Duplicate Informational     what a parser of HTTP has to live with
//	LargeHeader ContentType BadGzip NoContentWithBody     headers that are too large, wrong, or lie
//	EmptyOK Oversize MalformedJSON                        bodies that are none
//	UnknownFields UnknownEnums Nulls ZonelessTimes        bodies that are as carriers' change
//	EndlessPages                                          a list without end
//	RefuseConnection Blackhole FailHandshake              there is no connection
//	Redeliver Unacknowledged DeliverLate                  a notification comes twice, or late
//	DeliverOutOfOrder BadSignature StaleSignature         in another order, wrongly signed
//	Sequence None                                         one after the other; all is well
//
// Rules are narrowed down by operation (On), key, reference, tracking number and
// any other part (ForKey, ForReference, ForTracking, With), and strike the first
// requests (Times), later ones (Skip), some (EveryNth, AllButEveryNth, Chance),
// for a time (Lasting, Until), or until [Carrier.ClearFaults].
//
// Tests in any language can also ask for a fault by what they send. Tracking
// numbers that begin with these letters, whatever comes behind:
//
//	MC01 label_created     MC07 exception, customs   MC15 a step further at each call
//	MC02 in_transit        MC08 return_to_sender     MC16 three parcels
//	MC03 out_for_delivery  MC09 returned             MC17 404 three times, then label_created
//	MC04 delivered         MC10 cancelled            MC18 times without a zone
//	MC05 at service point  MC11 lost                 MC19 null and empty members
//	MC06 second attempt    MC12 410                  MC20 places beyond ASCII
//	                       MC13 an unknown status    MC21 500 events
//	                       MC14 given twice          MC22 events out of order
//
//	MC40 404                     MC47 502, HTML              MC54 body cut
//	MC41 400                     MC48 200, HTML              MC55 wrong Content-Type
//	MC42 429, Retry-After: 1     MC49 200, an error inside   MC56 401 once, token expired
//	MC43 429, Retry-After: date  MC50 5 seconds late         MC57 403 for a minute
//	MC44 429, X-RateLimit-Reset  MC51 no answer              MC58 204
//	MC45 503 once                MC52 reset before           MC59 no gzip, although it says so
//	MC46 503                     MC53 reset after            MC60 204 with a Content-Type
//
// MC14 is a number that was given again after a year: its events are those of
// both parcels, and trackBatch finds both.
//
// References of new shipments, alone or with more behind a hyphen. The first
// four strike once for each idempotency key:
//
//	FAULT-RESET-AFTER-COMMIT    FAULT-ASYNC            202, ready after 2 seconds
//	FAULT-TIMEOUT-AFTER-COMMIT  FAULT-LABEL-PENDING    its label takes 2 seconds, its proof too
//	FAULT-503-BEFORE-COMMIT     FAULT-LABEL-BLANK      its label has nothing on it
//	FAULT-409-INPROGRESS        FAULT-REFUND-REJECTED  cancelled, and to be paid
//
// FAULT-503-BEFORE-COMMIT is for validateShipment too, once for each reference.
//
// # Notifications
//
// Subscriptions are told what happens to the shipments of their account, by
// requests that are signed, and repeated for three days until they are answered
// with 2xx. [Carrier.Advance] delivers what is due meanwhile, in order and each
// at its time; [Carrier.DeliverDue] delivers what is due now. They go to the
// handler of [WithWebhookHandler], also in virtual time, or over the loopback
// interface, and to no other address:
//
//	mux := http.NewServeMux() // of the service
//	mock := mockcarrier.StartInMemory(t, mockcarrier.WithWebhookHandler(mux))
//	…
//	mock.Advance(48 * time.Hour) // the parcel is delivered, and the service was told six times
//
// They are signed at the time of the clock without what Advance has added, since
// that is the subscriber's clock too. [Carrier.Deliveries] has each attempt.
// exportTrackingEvents has the same events; the finished cases are in neither.
//
// # Proof
//
// [Carrier.Requests] has each request that arrived, [Carrier.Ledger] each
// shipment that was made, whatever was answered. What an HTTP library sent again
// by itself is told from what its caller did ([Request].ResentOf). The admin API
// has the same for other languages; see [Carrier.AdminHandler].
package mockcarrier
