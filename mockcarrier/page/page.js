// The page of the mock carrier. It asks the admin API every second, and shows
// what it says. What comes from requests is written as text, never as HTML.

const every = 1000; // milliseconds between two looks
const shown = 200; // requests at most

const presets = [
  ["Unavailable", "503, Retry-After: 1; nothing is done", { kind: "status", status: 503, header: { "Retry-After": ["1"] } }],
  ["Too many requests", "429, Retry-After: 2", { kind: "status", status: 429, header: { "Retry-After": ["2"] } }],
  ["Lost answer", "it is done, then the connection is reset", { kind: "reset", phase: "after" }],
  ["Refused connection", "reset before anything is done", { kind: "reset", phase: "before" }],
  ["Slow", "the answer comes 5 s late", { kind: "delay", wait: "5s" }],
  ["Silence", "no answer comes, nothing is done", { kind: "stall" }],
  ["Done, but silent", "it is done, no answer comes", { kind: "stall", phase: "after" }],
  ["Cut body", "the body ends after 30 bytes", { kind: "truncate", bytes: 30 }],
  ["Stalled body", "30 bytes come, and no more", { kind: "stall-body", bytes: 30 }],
  ["Trickle", "10 bytes every 200 ms", { kind: "drip", bytes: 10, wait: "200ms" }],
  ["Malformed JSON", "a comma too many", { kind: "malformed-json" }],
  ["Proxy page", "200 with HTML", { kind: "html", status: 200 }],
  ["Empty", "200 without a body", { kind: "empty" }],
  ["Newer API", "unknown members and statuses", { kind: "unknown-enums" }],
];

const $ = (id) => document.getElementById(id);

// element makes an element with attributes and children, which are elements or text.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(attribute, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return made;
}

// write changes an element's text only if it differs, so that selections stay.
function write(where, text) {
  if (where.textContent !== String(text)) where.textContent = text;
}

let world = new URLSearchParams(location.search).get("world") ?? "";
let requests = [];
let charges = [];
let rules = [];
let operations = [];
let paused = false;
const open = new Set(); // the numbers of the requests whose details are open

// call asks the admin API. It returns the document, or throws an Error whose
// message is for people.
async function call(method, path, body) {
  const headers = {};
  if (world) headers["X-Mock-World"] = world;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout(5000),
    });
  } catch {
    throw new Error("The carrier cannot be reached.");
  }
  const text = await response.text();
  const document = text ? JSON.parse(text) : undefined;
  if (!response.ok) {
    throw Object.assign(new Error(document?.detail ?? `${response.status}`), { status: response.status });
  }
  return document;
}

let sayTimer;
function say(text) {
  $("said").textContent = text;
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => { $("said").textContent = ""; }, 4000);
}

function showLive(state) {
  $("live").dataset.state = state;
  write($("live"), { live: "live", lost: "unreachable", paused: "paused" }[state]);
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function timeOf(at) {
  return element("time", { datetime: at, title: at }, time.format(new Date(at)));
}

// look asks for everything once. What was asked for by the clock is not shown
// if somebody has paused it meanwhile.
async function look(byClock) {
  const asked = world;
  const [health, journal, ledger, faults] = await Promise.all([
    call("GET", "health"), call("GET", `requests?limit=${shown}`), call("GET", "ledger"), call("GET", "faults"),
  ]);
  await showWorlds();
  if (asked !== world || (byClock && paused)) return;
  write($("clock"), dateTime.format(new Date(health.now)));
  $("clock").dateTime = health.now;
  [requests, charges, rules] = [journal, ledger, faults];
  showRequests();
  showCharges();
  showRules();
}

// Only one look is under way at a time.
let looking = Promise.resolve();
function refresh(byClock = false) {
  looking = looking.then(() => look(byClock)).then(
    () => showLive(paused ? "paused" : "live"),
    () => showLive("lost"),
  );
  return looking;
}

async function loop() {
  for (;;) {
    if (!paused && !document.hidden) await refresh(true);
    await new Promise((done) => setTimeout(done, every));
  }
}

async function showWorlds() {
  let list;
  try {
    list = await call("GET", "worlds");
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    list = []; // this server has one world only
  }
  const names = list.map((w) => w.world);
  if (world && !names.includes(world)) names.push(world);
  $("world-field").hidden = names.length < 2;
  setOptions($("world"), names.map((name) => [name, name || "main"]), world);
}

// setOptions replaces the options of a select if they have changed.
function setOptions(select, options, value) {
  const now = [...select.options].map((option) => [option.value, option.text]);
  if (JSON.stringify(now) !== JSON.stringify(options)) {
    select.replaceChildren(...options.map(([v, text]) => element("option", { value: v }, text)));
  }
  if (select.value !== value) select.value = value;
}

function statusOf(request) {
  if (!request.status) return request.duration === "0s" ? ["open", "waiting"] : ["bad", "no answer"];
  if (request.status >= 500) return ["bad", request.status];
  return [request.status >= 400 ? "warn" : "good", request.status];
}

const rows = new Map(); // by the number of the request: its rows, and what they show

function showRequests() {
  const operation = $("filter-operation").value;
  const onlyFaults = $("filter-fault").checked;
  const list = requests.filter((r) => (!operation || r.operation === operation) && (!onlyFaults || r.fault));
  write($("journal-count"), requests.length === shown ? `last ${shown}` : requests.length);
  $("requests-empty").hidden = requests.length > 0;
  $("requests-none").hidden = requests.length === 0 || list.length > 0;

  const wanted = [];
  const numbers = new Set(list.map((r) => r.seq));
  for (const seq of rows.keys()) if (!numbers.has(seq)) rows.delete(seq);
  for (const request of list.toReversed()) {
    const text = JSON.stringify(request);
    let row = rows.get(request.seq);
    if (row?.text !== text) {
      row = { text, entry: entryRow(request, row?.entry), detail: undefined };
      rows.set(request.seq, row);
    }
    wanted.push(row.entry);
    if (open.has(request.seq)) {
      row.detail ??= detailRow(request);
      wanted.push(row.detail);
    }
  }
  place($("requests"), wanted);
}

// place makes the children of a parent be those given, and moves only those
// that are not in place, so that focus and selection stay.
function place(parent, children) {
  children.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
}

function entryRow(request, before) {
  const [look, status] = statusOf(request);
  const toggle = before?.querySelector("button") ?? element("button", {
    type: "button", class: "seq", "aria-expanded": "false", "aria-label": `Details of request ${request.seq}`,
  }, String(request.seq));
  toggle.onclick = () => {
    if (!open.delete(request.seq)) open.add(request.seq);
    toggle.setAttribute("aria-expanded", open.has(request.seq));
    showRequests();
  };
  const cells = [
    element("td", {}, toggle),
    element("td", { class: "nowrap" }, timeOf(request.at)),
    element("td", {},
      element("span", { class: "path" }, element("span", { class: "method" }, request.method), ` ${request.path}`),
      element("small", {}, request.operation ?? "no operation")),
    element("td", {}, element("span", { class: `status ${look}` }, String(status)),
      request.replayed ? element("small", {}, "replayed") : "",
      request.resentOf ? element("small", { title: "by the client's HTTP library, unasked" }, `sent again, was #${request.resentOf}`) : "",
      request.unexpected ? element("small", { class: "struck" }, "not expected") : ""),
    element("td", { class: request.fault ? "struck" : "" }, request.fault ?? ""),
    element("td", {}, request.key ? element("code", { class: "key", title: request.key }, request.key) : ""),
    element("td", { class: "nowrap" }, request.connection ? `${request.connection} / ${request.nth}` : ""),
    element("td", { class: "number" }, status === "waiting" ? "" : tookOf(request.duration)),
  ];
  if (!before) return element("tr", { class: "entry" }, ...cells);
  // The first cell has the button, which may have the focus, and stays.
  cells.slice(1).forEach((cell, i) => before.cells[i + 1].replaceWith(cell));
  return before;
}

// tookOf rounds a Go duration such as 1.234567ms.
function tookOf(duration) {
  return duration.replace(/(\d+\.\d)\d*(?=\D+$)/, "$1");
}

function detailRow(request) {
  const facts = [
    ["path", request.path + (request.query ? `?${request.query}` : "")],
    ["request id", request.requestId],
    ["arrived", request.at],
    ...Object.entries(request.header).sort().map(([name, values]) => [name, values.join(", ")]),
  ];
  const list = element("dl");
  for (const [name, value] of facts) list.append(element("dt", {}, name), element("dd", {}, value));
  const cell = element("td", { colspan: 8 }, list);
  for (const [name, text] of [["Body of the request", request.body], ["Body of the answer", request.answer]]) {
    if (text) cell.append(element("h3", {}, name), element("pre", { tabindex: 0, role: "region", "aria-label": name }, pretty(text)));
  }
  return element("tr", { class: "detail" }, cell);
}

function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

let chargesShown;
function showCharges() {
  const text = JSON.stringify(charges);
  if (text === chargesShown) return;
  chargesShown = text;
  const times = Map.groupBy(charges, (charge) => charge.reference);
  const totals = new Map();
  for (const charge of charges) {
    totals.set(charge.currency, (totals.get(charge.currency) ?? 0) + Math.round(charge.amount * 100));
  }
  write($("ledger-count"), charges.length);
  write($("total"), [...totals].map(([currency, cents]) => `${(cents / 100).toFixed(2)} ${currency}`).join(", ") || "0.00");
  $("charges-empty").hidden = charges.length > 0;
  $("charges").replaceChildren(...charges.toReversed().slice(0, shown).map((charge) => {
    const bought = times.get(charge.reference).length;
    return element("tr", { class: bought > 1 ? "twice" : "" },
      element("td", {}, element("code", {}, charge.shipmentId)),
      element("td", {}, charge.reference, bought > 1 ? element("small", {}, `bought ${bought} times`) : ""),
      element("td", {}, element("code", { class: "key", title: charge.key }, charge.key)),
      element("td", {}, element("code", {}, charge.trackingNumber)),
      element("td", { class: "nowrap" }, timeOf(charge.at)),
      element("td", { class: "number" }, `${charge.amount} ${charge.currency}`));
  }));
}

// rulesOf returns the rules in force that do what a preset does, whatever they are for.
function rulesOf(preset) {
  return rules.filter(({ fault }) => Object.entries({ phase: undefined, header: undefined, ...preset })
    .every(([name, value]) => JSON.stringify(fault[name]) === JSON.stringify(value)));
}

let rulesShown;
function showRules() {
  for (const [i, [, , preset]] of presets.entries()) {
    $("switches").children[i].firstElementChild.setAttribute("aria-checked", rulesOf(preset).length > 0);
  }
  const text = JSON.stringify(rules);
  if (text === rulesShown) return;
  rulesShown = text;
  write($("rules-count"), rules.length);
  write($("rules-note"), rules.length === 0 ? "None: all requests are answered as they should be." : "The newest that strikes wins.");
  $("clear").hidden = rules.length === 0;
  const focused = document.activeElement?.dataset?.rule;
  $("rules").replaceChildren(...rules.toReversed().map((rule) => {
    const end = element("button", { type: "button", "data-rule": rule.id, "aria-label": `End the rule ${rule.does}, for ${rule.for}` }, "End");
    end.onclick = () => act(`Ended: ${rule.does}.`, () => call("DELETE", `faults/${rule.id}`));
    return element("li", {},
      element("span", {}, element("strong", {}, rule.does),
        element("small", {}, `${rule.for}; struck ${rule.fired} of ${rule.seen}`)),
      end);
  }));
  if (focused) $("rules").querySelector(`[data-rule="${CSS.escape(focused)}"]`)?.focus();
}

// act does something, says what was done or why not, and shows the result.
async function act(done, what) {
  try {
    await what();
    say(done);
  } catch (problem) {
    say(problem.message);
  }
  await refresh();
}

function makeSwitches() {
  $("switches").append(...presets.map(([name, what, preset]) => {
    const button = element("button", { type: "button", role: "switch", class: "switch", "aria-checked": "false" },
      element("span", {}, name, element("small", {}, what)));
    button.onclick = () => {
      const inForce = rulesOf(preset);
      if (inForce.length > 0) {
        act(`${name} is off.`, () => Promise.all(inForce.map((rule) => call("DELETE", `faults/${rule.id}`))));
        return;
      }
      const operation = $("scope-operation").value;
      const rule = { ...preset, ...JSON.parse($("scope-often").value), optional: true };
      if (operation) rule.operations = [operation];
      act(`${name} is on, for ${operation || "all operations"}.`, () => call("POST", "faults", rule));
    };
    return element("li", {}, button);
  }));
}

function listen() {
  $("filter-operation").onchange = showRequests;
  $("filter-fault").onchange = showRequests;
  $("world").onchange = () => {
    world = $("world").value;
    open.clear();
    rows.clear();
    $("requests").replaceChildren();
    refresh();
  };
  $("pause").onclick = () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", paused);
    if (paused) showLive("paused");
    else refresh();
  };
  for (const button of document.querySelectorAll("[data-advance]")) {
    button.onclick = () => act(`The clock was moved on by ${button.textContent.slice(1)}.`,
      () => call("POST", "clock", { advance: button.dataset.advance }));
  }
  $("clear").onclick = () => {
    act("All rules have ended.", () => call("DELETE", "faults"));
    $("faults").closest("section").querySelector("select").focus(); // the button goes away
  };
  $("reset").onclick = () => $("confirm").showModal();
  $("confirm").onclose = () => {
    if ($("confirm").returnValue !== "yes") return;
    $("confirm").returnValue = "";
    open.clear();
    act("Everything was reset.", () => call("POST", "reset"));
  };
  $("custom").onsubmit = async (event) => {
    event.preventDefault();
    $("custom-error").textContent = "";
    try {
      await call("POST", "faults", JSON.parse($("custom-rule").value));
      say("The rule is in force.");
    } catch (problem) {
      $("custom-error").textContent = problem.message;
    }
    await refresh();
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !paused) refresh();
  });
}

async function start() {
  const api = `${location.origin}/v1`;
  write($("base"), api);
  write($("hint"), `curl -H 'x-api-key: ck_test_mockcarrier' ${api}/tracking/BK1001TR`);
  makeSwitches();
  listen();
  try {
    operations = await call("GET", "operations");
  } catch {
    // The loop shows that the carrier cannot be reached.
  }
  const options = operations.map(({ id }) => [id, id]);
  setOptions($("filter-operation"), [["", "all"], ...options], "");
  setOptions($("scope-operation"), [["", "all operations"], ...options], "");
  await loop();
}

start();
