package main

import (
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/contrast.js
var contrastScript string

// clickOn is an expression that clicks a button or the like by its words.
func clickOn(selector, words string) string {
	return fmt.Sprintf(`(() => {
		const found = [...document.querySelectorAll(%q)].filter((e) => e.checkVisibility() && e.textContent.includes(%q));
		if (found.length !== 1) throw new Error(found.length + " of " + %q);
		found[0].click();
		return true;
	})()`, selector, words, selector+" "+words)
}

// says is an expression that is true once an element can be seen that has these words.
func says(selector, words string) string {
	return fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e !== null && e.checkVisibility() && e.innerText.includes(%q); })()`, selector, words)
}

// A person looks on while a test runs, and makes the carrier fail.
func TestPage(t *testing.T) {
	b := openBrowser(t)
	a, cmd, _ := launch(t, nil, "--port", "0")
	b.look(1440, 900, "light")
	b.open(a.Admin)
	b.await(says("#live", "live"))
	b.await(says("#requests-empty", "No request has arrived"))
	b.await(says("#base", a.URL))
	b.picture("page-empty")

	// Journal and ledger.
	buy(t, a, "key-1")
	get(t, a.URL+"/tracking/BK1001TR", "ck_test_mockcarrier")
	get(t, a.URL+"/nothing", "ck_test_mockcarrier")
	b.await(`document.querySelectorAll("#requests tr.entry").length === 3`)
	b.await(says("#requests", "POST /v1/shipments"))
	b.await(says("#requests", "no operation"))
	b.await(says("#charges", "shp_2001"))
	b.await(says("#total", "6.40 EUR"))

	// The newest is the first; its details open and stay open as more comes.
	if first := fmt.Sprint(b.eval(`document.querySelector("#requests tr").innerText`)); !strings.Contains(first, "/v1/nothing") {
		t.Errorf("the first is %s", first)
	}
	b.eval(clickOn("button.seq", "1"))
	b.await(says("#requests tr.detail pre", `"reference": "order-1001"`))
	b.await(says("#requests tr.detail dl", "[redacted]"))
	b.eval(`document.querySelector("button.seq[aria-expanded=true]").focus()`)

	// The same reference twice is what one looks for.
	buy(t, a, "key-2")
	b.await(says("#charges", "bought 2 times"))
	b.await(`document.querySelectorAll("#requests tr.entry").length === 4 && document.querySelectorAll("#requests tr.detail").length === 1`)
	if b.eval(`document.activeElement.textContent`) != "1" {
		t.Error("the focus is lost as the journal grows")
	}

	// What requests hold is text.
	hostile := strings.Replace(order, "order-1001", `<img src=x onerror=alert(1)>`, 1)
	if resp, body, err := send(t, "POST", a.URL+"/shipments", hostile, "Idempotency-Key", "<script>alert(2)</script>"); err != nil || resp.StatusCode != 201 {
		t.Fatal(body, err)
	}
	b.await(says("#charges", "<img src=x onerror=alert(1)>"))
	b.await(says("#charges", "<script>alert(2)</script>"))
	if n := b.eval(`document.querySelectorAll("main img, main script").length`); n != 0.0 {
		t.Errorf("%v elements come from a request", n)
	}

	// A fault is switched on, strikes, and is switched off.
	b.eval(`document.querySelector("#scope-operation").value = "createShipment"`)
	b.eval(`document.querySelector("#scope-often").selectedIndex = 1`)
	b.eval(clickOn("button.switch", "Unavailable"))
	b.await(says("#rules", "createShipment, first 1; struck 0 of 0"))
	b.await(`document.querySelector("button.switch").getAttribute("aria-checked") === "true"`)
	if resp, _ := buy(t, a, "key-3"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("got %s", resp.Status)
	}
	b.await(says("#rules", "struck 1 of 1"))
	b.await(says("#requests", "status 503, Retry-After: 1"))
	b.await(`document.querySelectorAll("#requests .status.bad").length === 1`)
	b.eval(`(document.querySelector("#filter-fault").click(), true)`)
	b.await(`document.querySelectorAll("#requests tr.entry").length === 1`)
	b.eval(`(document.querySelector("#filter-fault").click(), true)`)
	b.eval(clickOn("button.switch", "Unavailable"))
	b.await(`document.querySelectorAll("#rules li").length === 0 && !document.querySelector("#clear").checkVisibility()`)

	// Every switch can be switched on.
	b.eval(`document.querySelector("#scope-operation").value = "getStatus"`)
	b.eval(`document.querySelectorAll("button.switch").forEach((button) => button.click())`)
	b.await(`[...document.querySelectorAll("button.switch")].every((button) => button.getAttribute("aria-checked") === "true")`)
	b.await(`document.querySelectorAll("#rules li").length === document.querySelectorAll("button.switch").length`)
	b.eval(clickOn("#rules li:first-child button", "End"))
	b.await(`document.querySelectorAll("#rules li").length === document.querySelectorAll("button.switch").length - 1`)
	b.eval(clickOn("#clear", "End all"))
	b.await(`document.querySelectorAll("#rules li").length === 0`)

	// A rule of one's own, wrong at first.
	b.eval(`document.querySelector("details").open = true`)
	b.eval(`document.querySelector("#custom-rule").value = '{"kind":"flood"}'`)
	b.eval(clickOn("#custom button", "Put in force"))
	b.await(says("#custom-error", `no fault is of kind "flood"`))
	b.eval(`document.querySelector("#custom-rule").value = '{"kind":"status","status":418,"operations":["getStatus"]}'`)
	b.eval(clickOn("#custom button", "Put in force"))
	b.await(says("#rules", "status 418"))
	b.await(`document.querySelector("#custom-error").textContent === ""`)

	// The clock.
	before := b.eval(`Date.parse(document.querySelector("#clock").dateTime)`).(float64)
	b.eval(clickOn("[data-advance]", "+1 day"))
	b.await(fmt.Sprintf(`Date.parse(document.querySelector("#clock").dateTime) >= %f + 86400000`, before))

	// Paused, nothing moves.
	b.eval(clickOn("#pause", "Pause"))
	b.await(says("#live", "paused"))
	b.eval(`new Promise((done) => setTimeout(done, 500))`) // the look that follows the click on +1 day
	get(t, a.URL+"/status", "ck_test_mockcarrier")
	b.eval(`new Promise((done) => setTimeout(done, 1500))`)
	if b.eval(says("#requests", "/v1/status")) == true {
		t.Error("the page goes on although it is paused")
	}
	b.eval(clickOn("#pause", "Pause"))
	b.await(says("#requests", "/v1/status"))

	// Another world.
	buy(t, a, "key-1", "X-Mock-World", "checkout-7")
	b.await(`document.querySelector("#world-field").checkVisibility() && document.querySelector("#world").options.length === 2`)
	b.eval(`(() => { const world = document.querySelector("#world"); world.value = "checkout-7"; world.dispatchEvent(new Event("change")); })()`)
	b.await(`document.querySelectorAll("#requests tr.entry").length === 1 && document.querySelectorAll("#charges tr").length === 1`)
	b.await(`document.querySelectorAll("#rules li").length === 0`)
	b.open(a.Admin + "?world=checkout-7")
	b.await(`document.querySelectorAll("#requests tr.entry").length === 1 && document.querySelector("#world").value === "checkout-7"`)

	// Reset asks first.
	b.eval(clickOn("#reset", "Reset"))
	b.await(`document.querySelector("#confirm").open && document.activeElement.textContent === "Keep"`)
	b.eval(clickOn("#confirm button", "Keep"))
	b.await(`!document.querySelector("#confirm").open`)
	if n := charges(t, a, "X-Mock-World", "checkout-7"); n != 1 {
		t.Errorf("%d charges after a reset that was not wanted", n)
	}
	b.eval(clickOn("#reset", "Reset"))
	b.eval(clickOn("#confirm button", "Reset"))
	b.await(says("#charges-empty", "Nothing was bought"))
	if charges(t, a, "X-Mock-World", "checkout-7") != 0 || charges(t, a) != 3 {
		t.Error("another world was reset")
	}

	if list := b.complaints(); len(list) > 0 && !onlyRefusals(list) {
		t.Errorf("the console says %s", list)
	}
	for _, url := range b.requested() {
		if !strings.HasPrefix(url, a.Admin) && url != "about:blank" {
			t.Errorf("the page asks for %s", url)
		}
	}

	// The carrier goes away.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b.await(says("#live", "unreachable"))
}

// onlyRefusals says whether all that the console has is that the rule of kind
// flood was answered with 400.
func onlyRefusals(list []string) bool {
	return !slices.ContainsFunc(list, func(entry string) bool { return !strings.Contains(entry, "status of 400") })
}

// The page can be read, and used without a mouse, in light and dark.
func TestPageIsAccessible(t *testing.T) {
	b := openBrowser(t)
	a, _, _ := launch(t, nil, "--port", "0")
	buy(t, a, "key-1")
	buy(t, a, "key-2")
	for _, fault := range []string{
		`{"kind":"status","status":503,"header":{"Retry-After":["1"]},"operations":["createShipment"],"first":2}`,
		`{"kind":"reset","phase":"after","operations":["getLabel"]}`,
		`{"kind":"delay","wait":"5s","operations":["getLabel"],"probability":0.5}`,
	} {
		if resp, body, err := send(t, "POST", a.Admin+"faults", fault); err != nil || resp.StatusCode != 201 {
			t.Fatal(body, err)
		}
	}
	for i, path := range []string{"/tracking/BK1001TR", "/tracking/BK9999TR", "/shipments?limit=2", "/nothing", "/shipments/shp_2001"} {
		get(t, a.URL+path, "ck_test_mockcarrier")
		buy(t, a, fmt.Sprint("key-", i+2))
	}
	b.look(1440, 900, "light")
	b.open(a.Admin)
	b.await(`document.querySelectorAll("#requests tr.entry").length === 12`)
	b.eval(`document.querySelector("details").open = true`)
	b.eval(`document.querySelectorAll("button.seq")[2].click()`)
	b.await(`document.querySelectorAll("#requests tr.detail").length === 1`)

	for _, scheme := range []string{"light", "dark"} {
		b.look(1440, 900, scheme)
		if list := b.eval(contrastScript).([]any); len(list) > 0 {
			t.Errorf("%s: too little contrast: %v", scheme, list)
		}
		b.picture("page-" + scheme)
	}
	for _, width := range []int{1440, 1024, 768, 390, 320} {
		b.look(width, 900, "light")
		if wide := b.eval(`document.documentElement.scrollWidth`).(float64); int(wide) > width {
			t.Errorf("at a width of %d the page is %v wide", width, wide)
		}
		if width == 390 {
			b.picture("page-narrow")
		}
	}
	b.look(1440, 900, "light")

	roles := map[string]int{}
	for _, element := range b.accessible() {
		roles[element.role]++
		switch element.role {
		case "button", "link", "switch", "checkbox", "combobox", "textbox", "region", "table", "dialog", "image":
			if element.name == "" {
				t.Errorf("a %s has no name", element.role)
			}
		}
	}
	for _, role := range []string{"switch", "combobox", "table", "columnheader", "main", "banner", "status", "heading", "caption"} {
		if roles[role] == 0 {
			t.Errorf("there is no %s", role)
		}
	}
	if n := b.eval(`document.querySelectorAll("h1").length`); n != 1.0 {
		t.Errorf("%v first headings", n)
	}
	if lang := b.eval(`document.documentElement.lang`); lang != "en" {
		t.Errorf("the language is %v", lang)
	}

	// With the keyboard alone: every control is reached, in order, and shows the
	// focus; a switch is switched on and off.
	b.eval(`document.body.tabIndex = -1; document.body.focus()`)
	reached := map[string]bool{}
	switched := false
	for range 80 {
		b.press("Tab")
		at := fmt.Sprint(b.eval(`(() => {
			const e = document.activeElement;
			if (e === document.body) return "the end";
			if (getComputedStyle(e).outlineStyle === "none") return "no outline: " + e.outerHTML;
			return e.id || e.className || e.getAttribute("aria-label") || e.textContent;
		})()`))
		if strings.HasPrefix(at, "no outline") {
			t.Error(at)
		}
		if at == "the end" {
			break
		}
		reached[at] = true
		if at == "switch" && !switched {
			switched = true
			for _, key := range []string{"Space", "Enter"} {
				was := fmt.Sprint(b.eval(`document.activeElement.getAttribute("aria-checked")`))
				b.press(key)
				b.await(fmt.Sprintf(`document.activeElement.className === "switch" && document.activeElement.getAttribute("aria-checked") !== %q`, was))
			}
		}
	}
	for _, want := range []string{"skip", "pause", "reset", "filter-operation", "filter-fault", "scope-operation", "scope-often", "switch", "clear", "custom-rule", "seq"} {
		if !reached[want] {
			t.Errorf("the keyboard does not reach %q, only %v", want, reached)
		}
	}
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the console says %s", list)
	}
}

// What a page of another origin tries in somebody's browser comes to nothing.
func TestPageOfAnotherOrigin(t *testing.T) {
	a, _, _ := launch(t, nil, "--port", "0")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(a.origin(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>attacker</title><body></body>"))
	}))
	defer attacker.Close()
	// The names resolve to this machine: one is the attacker's own, the other was
	// rebound to the carrier after its page had loaded.
	b := openBrowser(t, "--host-resolver-rules=MAP attacker.example 127.0.0.1, MAP rebound.example 127.0.0.1")
	buy(t, a, "key-1")

	for _, origin := range []string{attacker.URL, strings.Replace(attacker.URL, "127.0.0.1", "attacker.example", 1)} {
		b.open(origin)
		for name, attempt := range map[string]string{
			"reads the ledger":     `fetch(A + "ledger").then((r) => r.text(), () => "refused")`,
			"reads it, opaquely":   `fetch(A + "ledger", {mode: "no-cors"}).then((r) => r.text().then((text) => text || "refused"), () => "refused")`,
			"resets by fetch":      `fetch(A + "reset", {method: "POST", mode: "no-cors"}).then(() => "refused", () => "refused")`,
			"injects plain text":   `fetch(A + "faults", {method: "POST", mode: "no-cors", body: '{"kind":"stall"}'}).then(() => "refused", () => "refused")`,
			"injects JSON":         `fetch(A + "faults", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"kind":"stall"}'}).then((r) => r.text(), () => "refused")`,
			"injects by a beacon":  `Promise.resolve(navigator.sendBeacon(A + "faults", '{"kind":"stall"}')).then(() => "refused")`,
			"names another world":  `fetch(A + "ledger", {headers: {"X-Mock-World": "evil"}}).then((r) => r.text(), () => "refused")`,
			"deletes":              `fetch(A + "faults", {method: "DELETE"}).then((r) => r.text(), () => "refused")`,
			"includes as a script": `new Promise((done) => { const s = document.createElement("script"); s.src = A + "requests"; s.onload = () => done("loaded"); s.onerror = () => done("refused"); document.body.append(s); })`,
			"frames the page":      `new Promise((done) => { const f = document.createElement("iframe"); f.src = A; f.onload = () => { try { done(f.contentDocument ? "readable" : "refused"); } catch { done("refused"); } }; document.body.append(f); })`,
			"posts a form into a frame": `new Promise((done) => {
				const frame = document.createElement("iframe"); frame.name = "hidden"; document.body.append(frame);
				const form = document.createElement("form"); form.method = "POST"; form.action = A + "reset"; form.target = "hidden"; document.body.append(form);
				frame.onload = () => done("refused"); setTimeout(frame.onload, 2000); form.submit(); })`,
		} {
			if got := b.eval(`(() => { const A = ` + fmt.Sprintf("%q", a.Admin) + `; return ` + attempt + `; })()`); got != "refused" {
				t.Errorf("a page of %s %s: %v", origin, name, got)
			}
		}
	}
	b.open("http://rebound.example:" + port + "/__mock/")
	if text := fmt.Sprint(b.eval(`document.body.innerText`)); !strings.Contains(text, "foreign_host") {
		t.Errorf("after rebinding: %s", text)
	}
	for _, path := range []string{"ledger", "requests", "state"} {
		if status := b.eval(`fetch("/__mock/` + path + `").then((r) => r.status)`); status != 403.0 {
			t.Errorf("after rebinding, %s: %v", path, status)
		}
	}
	if charges(t, a) != 1 {
		t.Error("the carrier was reset")
	}
	if _, body := get(t, a.Admin+"faults", ""); strings.TrimSpace(body) != "[]" {
		t.Errorf("in force are %s", body)
	}
	if _, body := get(t, a.Admin+"worlds", ""); strings.Contains(body, "evil") {
		t.Errorf("there are the worlds %s", body)
	}
}
