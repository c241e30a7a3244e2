package mockcarrier

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier/api"
	"github.com/carrier-sdk/carrier-go/mockcarrier/internal/idempotency"
)

// stateVersion changes when older programs could not read the state.
const stateVersion = 1

// state is what outlives a carrier. Journal and faults do not.
type state struct {
	Version     int             `json:"version"`
	Started     time.Time       `json:"started"`
	ClockOffset string          `json:"clockOffset"` // a Go duration
	Shipments   []savedShipment `json:"shipments"`
	Ledger      []Charge        `json:"ledger"`
	Keys        []savedKey      `json:"idempotencyKeys"`

	// Older states do not have these.
	Rates     []rate     `json:"rates,omitempty"`
	LastRate  int        `json:"lastRate,omitempty"`
	Pickups   []pickup   `json:"pickups,omitempty"`
	Manifests []manifest `json:"manifests,omitempty"`

	Turns         int                  `json:"turns,omitempty"`
	Proofs        map[string]time.Time `json:"proofs,omitempty"`
	Subscriptions []savedSubscription  `json:"subscriptions,omitempty"`
}

type savedShipment struct {
	Account     string              `json:"account"` // see accountName
	ID          string              `json:"id"`
	Seq         int                 `json:"seq"`
	Number      string              `json:"trackingNumber"`
	Parcels     []string            `json:"parcels"`
	Key         string              `json:"idempotencyKey"`
	Request     api.ShipmentRequest `json:"request"`
	Charge      api.Money           `json:"charge"`
	Made        time.Time           `json:"made"`
	Ready       time.Time           `json:"ready"`
	Turn        int                 `json:"turn,omitempty"`
	CancelledAt *time.Time          `json:"cancelledAt,omitempty"`
	CancelTurn  int                 `json:"cancelTurn,omitempty"`
	Refund      bool                `json:"refund,omitempty"`
}

type savedKey struct {
	Account     string      `json:"account"`
	Key         string      `json:"key"`
	Fingerprint string      `json:"fingerprint"` // in hexadecimal
	Began       time.Time   `json:"began"`
	Status      int         `json:"status"`
	Header      http.Header `json:"header"`
	Body        []byte      `json:"body"`
}

// Snapshot returns the state of the carrier as JSON, for [Carrier.Restore]:
// shipments, ledger, rates, pickups, manifests, subscriptions, idempotency keys
// with their answers, and the offset of the clock. API keys are not in it, only
// hashes of them; the secrets of subscriptions are, since notifications go on to
// be signed. The admin API leaves them out: what is restored from its answer has
// its subscriptions suspended. What is made by a request that is still being processed is left out, as
// its key is.
//
// It may be taken at any time. The same state gives the same bytes.
func (c *Carrier) Snapshot() []byte { return append(encode(c.state()), '\n') }

func (c *Carrier) state() *state {
	s := &state{Version: stateVersion, ClockOffset: time.Duration(c.offset.Load()).String(), Keys: []savedKey{}}
	// In this order, each key that is saved has what was made with it.
	answered := map[[2]string]bool{}
	for _, e := range c.keys.Entries() {
		answered[[2]string{e.Account, e.Key}] = true
		s.Keys = append(s.Keys, savedKey{
			Account: c.accountName(e.Account), Key: e.Key, Fingerprint: hex.EncodeToString(e.Fingerprint[:]),
			Began: e.Began, Status: e.Answer.Status, Header: e.Answer.Header, Body: e.Answer.Body,
		})
	}
	c.world.save(s)
	c.subscriptions.save(s)
	s.leaveOut(func(account, key string) bool {
		return !answered[[2]string{account, key}] && c.keys.Knows(account, key)
	})
	s.renameAccounts(c.accountName)
	return s
}

// Restore replaces the state of the carrier by that of a [Carrier.Snapshot].
// Journal and faults stay. What it cannot read is an error, and then nothing
// has changed.
func (c *Carrier) Restore(snapshot []byte) error {
	s, err := parseState(snapshot)
	if err != nil {
		return fmt.Errorf("mockcarrier: state: %w", err)
	}
	c.restore(s)
	return nil
}

// restore is Restore for a state that was checked.
func (c *Carrier) restore(s *state) {
	accounts := map[string]string{}
	for _, key := range c.config.apiKeys {
		accounts[c.accountName(key)] = key
	}
	account := func(name string) string {
		if known, ok := accounts[name]; ok {
			return known
		}
		return name
	}
	var keys []idempotency.Entry
	for _, k := range s.Keys {
		e := idempotency.Entry{
			Account: account(k.Account), Key: k.Key, Began: k.Began,
			Answer: idempotency.Answer{Status: k.Status, Header: k.Header, Body: k.Body},
		}
		_, _ = hex.Decode(e.Fingerprint[:], []byte(k.Fingerprint))
		keys = append(keys, e)
	}
	s.renameAccounts(account)
	offset, _ := time.ParseDuration(s.ClockOffset)
	c.subscriptions.reset()
	c.setOffset(offset)
	c.world.load(s)
	c.keys.Restore(keys)
	c.subscriptions.load(s)
	if c.subscriptions.any() {
		c.deliverByItself()
	}
}

// leaveOut takes away what was made by requests in progress.
func (s *state) leaveOut(inProgress func(account, key string) bool) {
	gone := map[string]bool{}
	s.Shipments = slices.DeleteFunc(s.Shipments, func(made savedShipment) bool {
		gone[made.ID] = inProgress(made.Account, made.Key)
		return gone[made.ID]
	})
	s.Ledger = slices.DeleteFunc(s.Ledger, func(charge Charge) bool { return gone[charge.ShipmentID] })
	s.Subscriptions = slices.DeleteFunc(s.Subscriptions, func(sub savedSubscription) bool { return inProgress(sub.Account, sub.Key) })
	s.Pickups = slices.DeleteFunc(s.Pickups, func(p pickup) bool { return inProgress(p.Account, p.Key) })
	s.Manifests = slices.DeleteFunc(s.Manifests, func(m manifest) bool { return inProgress(m.Account, m.Key) })
	for i, m := range s.Manifests {
		s.Manifests[i].ShipmentIDs = slices.DeleteFunc(slices.Clone(m.ShipmentIDs), func(id string) bool { return gone[id] })
	}
}

// renameAccounts gives each account another name.
func (s *state) renameAccounts(name func(string) string) {
	for i := range s.Shipments {
		s.Shipments[i].Account = name(s.Shipments[i].Account)
	}
	for i := range s.Rates {
		s.Rates[i].Account = name(s.Rates[i].Account)
	}
	for i := range s.Pickups {
		s.Pickups[i].Account = name(s.Pickups[i].Account)
	}
	for i := range s.Manifests {
		s.Manifests[i].Account = name(s.Manifests[i].Account)
	}
	for i := range s.Subscriptions {
		s.Subscriptions[i].Account = name(s.Subscriptions[i].Account)
	}
}

// accountName is what stands for an account where its API key must not.
func (c *Carrier) accountName(account string) string {
	if !slices.Contains(c.config.apiKeys, account) {
		return account // it is none, or one that was saved and is not known any more
	}
	sum := sha256.Sum256([]byte(account))
	return "account_" + hex.EncodeToString(sum[:8])
}

// parseState reads a state, and checks what others rely on.
func parseState(snapshot []byte) (*state, error) {
	var s state
	var version struct{ Version int }
	if err := json.Unmarshal(snapshot, &version); err != nil {
		return nil, err
	}
	if version.Version != stateVersion {
		return nil, fmt.Errorf("it is of version %d, and this program reads version %d", version.Version, stateVersion)
	}
	if err := decodeStrictly(snapshot, &s); err != nil {
		return nil, err
	}
	return &s, s.check()
}

func (s *state) check() error {
	if _, err := time.ParseDuration(s.ClockOffset); err != nil {
		return fmt.Errorf("clockOffset %q is no duration", s.ClockOffset)
	}
	known := map[string]bool{}
	last := 0
	for i, made := range s.Shipments {
		complain := func(what string) error { return fmt.Errorf("shipments[%d]: %s", i, what) }
		if err := checkID(shipmentID, made.ID, made.Seq, last); err != nil {
			return complain(err.Error())
		}
		switch numbers := parcelNumbers(made.Seq, len(made.Request.Parcels)); {
		case len(numbers) == 0 || !slices.Equal(made.Parcels, numbers):
			return complain("its parcels are not those of its request and seq")
		case made.Number != numbers[0]:
			return complain("its tracking number is not that of its first parcel")
		case !isCount(made.Turn) || !isCount(made.CancelTurn):
			return complain("its turn is none")
		}
		known[made.ID], last = true, made.Seq
	}
	if !isCount(s.Turns) || !isCount(s.LastRate) {
		return errors.New("turns or lastRate is none")
	}
	for i, charge := range s.Ledger {
		if !known[charge.ShipmentID] {
			return fmt.Errorf("ledger[%d]: there is no shipment %q", i, charge.ShipmentID)
		}
	}
	if err := errors.Join(s.checkOrders(known), s.checkSubscriptions()); err != nil {
		return err
	}
	for i, k := range s.Keys {
		print, err := hex.DecodeString(k.Fingerprint)
		switch {
		case k.Key == "":
			return fmt.Errorf("idempotencyKeys[%d]: it is empty", i)
		case err != nil || len(print) != len(idempotency.Fingerprint{}):
			return fmt.Errorf("idempotencyKeys[%d]: its fingerprint is none", i)
		case k.Status < 200 || k.Status > 599:
			return fmt.Errorf("idempotencyKeys[%d]: its status is none", i)
		case k.Header == nil:
			return fmt.Errorf("idempotencyKeys[%d]: its header is missing", i)
		}
	}
	return nil
}

// mostCount is the highest number of anything in a state; what is made later has
// higher ones.
const mostCount = 1_000_000_000

func isCount(n int) bool { return n >= 0 && n <= mostCount }

// checkID checks the id of something that comes behind what has the seq last.
// Ids that are made later are then others.
func checkID(of idOf, id string, seq, last int) error {
	switch {
	case seq <= last || !isCount(seq):
		return errors.New("seq does not rise, or is too high")
	case id != of(seq):
		return errors.New("its id is not that of its seq")
	}
	return nil
}

// checkOrders checks what is there beside the shipments, which are known by id.
func (s *state) checkOrders(shipments map[string]bool) error {
	last := 0
	for i, r := range s.Rates {
		if err := checkID(rateID, r.ID, r.Seq, last); err != nil || r.Seq > s.LastRate {
			return fmt.Errorf("rates[%d]: %w", i, cmp.Or(err, errors.New("seq is above lastRate")))
		}
		last = r.Seq
	}
	last = 0
	for i, p := range s.Pickups {
		if err := checkID(pickupID, p.ID, p.Seq, last); err != nil {
			return fmt.Errorf("pickups[%d]: %w", i, err)
		}
		last = p.Seq
	}
	last = 0
	for i, m := range s.Manifests {
		if err := checkID(manifestID, m.ID, m.Seq, last); err != nil {
			return fmt.Errorf("manifests[%d]: %w", i, err)
		}
		for _, id := range m.ShipmentIDs {
			if !shipments[id] {
				return fmt.Errorf("manifests[%d]: there is no shipment %q, or it is on two manifests", i, id)
			}
			shipments[id] = false
		}
		last = m.Seq
	}
	return nil
}

// save writes the world into a state. The accounts are as they are.
func (w *world) save(s *state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Started = w.started
	s.Ledger = append([]Charge{}, w.charges...)
	s.Rates, s.LastRate = slices.Clone(w.rates), w.lastRate
	for _, p := range w.pickups {
		s.Pickups = append(s.Pickups, *p)
	}
	for _, m := range w.manifests {
		s.Manifests = append(s.Manifests, *m)
	}
	s.Turns, s.Proofs = w.turns, maps.Clone(w.proofs)
	s.Shipments = make([]savedShipment, len(w.shipments))
	for i, made := range w.shipments {
		saved := savedShipment{
			Account: made.account, ID: made.id, Seq: made.seq, Number: made.number, Parcels: made.parcels,
			Key: made.key, Request: made.request, Charge: made.charge, Made: made.made, Ready: made.ready, Refund: made.refund,
			Turn: made.turn, CancelTurn: made.cancelTurn,
		}
		if !made.cancelledAt.IsZero() {
			at := made.cancelledAt
			saved.CancelledAt = &at
		}
		s.Shipments[i] = saved
	}
}

// load replaces the world by that of a state.
func (w *world) load(s *state) {
	shipments := make([]*shipment, len(s.Shipments))
	byID, byNumber := make(map[string]*shipment), make(map[string]*shipment)
	for i, saved := range s.Shipments {
		made := &shipment{
			account: saved.Account, id: saved.ID, seq: saved.Seq, number: saved.Number, parcels: saved.Parcels,
			key: saved.Key, request: saved.Request, charge: saved.Charge, made: saved.Made, ready: saved.Ready, refund: saved.Refund,
			turn: saved.Turn, cancelTurn: saved.CancelTurn,
		}
		if saved.CancelledAt != nil {
			made.cancelledAt = *saved.CancelledAt
		}
		shipments[i], byID[made.id] = made, made
		for _, number := range made.parcels {
			byNumber[number] = made
		}
	}
	pickups := make([]*pickup, len(s.Pickups))
	for i := range s.Pickups {
		pickups[i] = &s.Pickups[i]
	}
	manifests := make([]*manifest, len(s.Manifests))
	for i := range s.Manifests {
		manifests[i] = &s.Manifests[i]
		for _, id := range s.Manifests[i].ShipmentIDs {
			byID[id].manifest = s.Manifests[i].ID
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started, w.charges = s.Started, s.Ledger
	w.shipments, w.byID, w.byNumber = shipments, byID, byNumber
	w.rates, w.lastRate, w.pickups, w.manifests = s.Rates, s.LastRate, pickups, manifests
	w.proofs = s.Proofs
	w.restoreTurns(s.Turns)
}
