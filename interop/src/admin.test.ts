// The admin API by its own description, in worlds that run side by side.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import createClient, { type Client } from "openapi-fetch";
import type { paths as AdminPaths } from "./generated/admin.js";
import type { paths } from "./generated/carrier.js";
import { order } from "./order.js";
import { key, start, type Program } from "./program.js";

describe("admin API", () => {
  let program: Program;
  after(() => program.stop());
  before(async () => {
    program = await start();
  });

  // inWorld returns a client and an admin client of a world.
  const inWorld = (world: string): [Client<paths>, Client<AdminPaths>] => [
    createClient<paths>({ baseUrl: program.url, headers: { "x-api-key": key, "x-mock-world": world } }),
    createClient<AdminPaths>({ baseUrl: program.admin, headers: { "x-mock-world": world } }),
  ];

  const buy = (client: Client<paths>, idempotencyKey: string) =>
    client.POST("/shipments", { params: { header: { "Idempotency-Key": idempotencyKey } }, body: order });

  it("hands out the descriptions", async () => {
    for (const name of ["openapi", "carrier"] as const) {
      const { data } = await createClient<AdminPaths>({ baseUrl: program.admin }).GET(`/${name}.yaml`, { parseAs: "text" });
      const file = name === "openapi" ? "admin" : name;
      assert.equal(data, await readFile(new URL(`../../openapi/${file}.yaml`, import.meta.url), "utf8"));
    }
  });

  it("keeps 20 tests that run side by side apart", async () => {
    await Promise.all(Array.from({ length: 20 }, async (_, i) => {
      const n = i + 1; // how many purchases fail
      const [client, admin] = inWorld(`test-${n}`);
      const { data: rules } = await admin.POST("/faults", {
        body: { kind: "status", status: 503, header: { "Retry-After": ["1"] }, operations: ["createShipment"], first: n },
      });
      assert.equal(rules?.length, 1);
      for (let j = 0; j < n; j++) assert.equal((await buy(client, "k")).response.status, 503);
      assert.equal((await buy(client, "k")).response.status, 201);

      const { data: ledger } = await admin.GET("/ledger");
      assert.deepEqual(ledger?.map((charge) => [charge.key, charge.reference, charge.amount]), [["k", "order-1001", "6.40"]]);
      const { data: requests } = await admin.GET("/requests", { params: { query: { operation: "createShipment" } } });
      assert.equal(requests?.length, n + 1);
      assert.equal(requests?.filter((request) => request.fault?.startsWith("status 503")).length, n);
      assert.deepEqual(requests?.[0]?.header["X-Api-Key"], ["[redacted]"]);
      const { data: verdict } = await admin.GET("/verification");
      assert.deepEqual(verdict, { ok: true, report: "" });
    }));
    const { data: worlds } = await createClient<AdminPaths>({ baseUrl: program.admin }).GET("/worlds");
    assert.equal(worlds?.filter((world) => world.world.startsWith("test-") && world.charges === 1).length, 20);
  });

  it("takes a fault that loses the answer of a purchase", async () => {
    const [client, admin] = inWorld("lost");
    await admin.POST("/faults", { body: [{ kind: "reset", phase: "after", operations: ["createShipment"], first: 1 }] });
    await assert.rejects(buy(client, "k"));
    const { data } = await buy(client, "k");
    const { data: ledger } = await admin.GET("/ledger");
    assert.deepEqual(ledger?.map((charge) => charge.shipmentId), [data?.id]);
  });

  it("moves the clock", async () => {
    const [client, admin] = inWorld("clock");
    const { data: shipment } = await buy(client, "k");
    const before = await admin.GET("/health");
    const { data: moved } = await admin.POST("/clock", { body: { advance: "72h" } });
    assert.ok(Date.parse(moved?.now ?? "") - Date.parse(before.data?.now ?? "") >= 72 * 3600 * 1000);
    const { data } = await client.GET("/tracking/{trackingNumber}", {
      params: { path: { trackingNumber: shipment?.trackingNumber ?? "" } },
    });
    assert.equal(data?.status, "delivered");
  });

  it("verifies what was expected, and explains", async () => {
    const [client, admin] = inWorld("expect");
    const { error } = await admin.POST("/expectations", { body: { operation: "buyShipment" } });
    assert.equal(error?.code, "bad_expectation");
    await admin.POST("/expectations", {
      body: { operation: "createShipment", with: [{ in: "body", name: "/reference", equals: "order-1001" }], times: 2 },
    });
    await buy(client, "k");
    const { data: verdict } = await admin.GET("/verification");
    assert.equal(verdict?.ok, false);
    assert.match(verdict?.report ?? "", /1 expectation was not met/);
    const { data: explained } = await admin.POST("/explanation", {
      body: { method: "POST", path: "/v1/shipments", body: JSON.stringify({ reference: "order-7" }) },
    });
    assert.equal(explained?.operation, "createShipment");
    assert.equal(explained?.expectations?.[0]?.applies, false);
  });

  it("carries a state from one world to another", async () => {
    const [client, admin] = inWorld("from");
    const { data: shipment } = await buy(client, "k");
    const { data: state } = await admin.GET("/state");
    const [otherClient, otherAdmin] = inWorld("to");
    assert.ok(state);
    assert.equal((await otherAdmin.PUT("/state", { body: state })).response.status, 204);
    const again = await buy(otherClient, "k");
    assert.deepEqual(again.data, shipment);
    assert.equal(again.response.headers.get("idempotency-replayed"), "true");
  });

  it("ends rules and worlds, and forgets", async () => {
    const [client, admin] = inWorld("end");
    const { data: rules } = await admin.POST("/faults", { body: { kind: "status", status: 500 } });
    assert.equal((await buy(client, "k")).response.status, 500);
    const path = { id: rules?.[0]?.id ?? 0 };
    assert.equal((await admin.DELETE("/faults/{id}", { params: { path } })).response.status, 204);
    assert.equal((await admin.DELETE("/faults/{id}", { params: { path } })).error?.code, "unknown_fault");
    assert.equal((await buy(client, "k")).response.status, 201);
    assert.equal((await admin.POST("/reset")).response.status, 204);
    assert.deepEqual((await admin.GET("/ledger")).data, []);
    assert.equal((await admin.DELETE("/worlds/{world}", { params: { path: { world: "end" } } })).response.status, 204);
  });
});
