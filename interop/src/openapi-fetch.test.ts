// openapi-fetch with the types that openapi-typescript makes from our
// description. That this file compiles is half of the test.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./generated/carrier.js";
import { order, type ShipmentRequest } from "./order.js";
import { key, start, type Program } from "./program.js";

describe("openapi-fetch", () => {
  let program: Program;
  after(() => program.stop());
  let client: Client<paths>;
  before(async () => {
    program = await start();
    client = createClient<paths>({ baseUrl: program.url, headers: { "x-api-key": key } });
  });

  const buy = (idempotencyKey: string, body: ShipmentRequest) =>
    client.POST("/shipments", { params: { header: { "Idempotency-Key": idempotencyKey } }, body });

  it("tracks a parcel", async () => {
    const { data, error, response } = await client.GET("/tracking/{trackingNumber}", {
      params: { path: { trackingNumber: "BK1001TR" } },
    });
    assert.equal(error, undefined);
    assert.equal(data?.status, "in_transit");
    assert.deepEqual(data.events?.map((event) => event.location), ["Istanbul", "Istanbul hub"]);
    assert.ok(!Number.isNaN(Date.parse(data.events?.[0]?.at ?? "")));

    const again = await client.GET("/tracking/{trackingNumber}", {
      params: { path: { trackingNumber: "BK1001TR" } }, headers: { "If-None-Match": response.headers.get("etag") },
    });
    assert.equal(again.response.status, 304);
  });

  it("has the error of an unknown parcel", async () => {
    const { data, error, response } = await client.GET("/tracking/{trackingNumber}", {
      params: { path: { trackingNumber: "BK9999TR" } },
    });
    assert.equal(data, undefined);
    assert.equal(response.status, 404);
    assert.equal(error?.code, "tracking_not_found");
    assert.equal(error?.requestId, response.headers.get("x-request-id"));
  });

  it("tracks several parcels, of which one is unknown", async () => {
    const { data } = await client.POST("/tracking/batch", { body: { trackingNumbers: ["BK1002TR", "BK9999TR"] } });
    assert.equal(data?.results?.[0]?.tracking?.status, "delivered");
    assert.equal(data?.results?.[1]?.error?.code, "tracking_not_found");
  });

  it("buys once, however often it asks", async () => {
    const first = await buy("openapi-fetch-1", order);
    assert.equal(first.response.status, 201);
    assert.match(first.data?.id ?? "", /^shp_/);
    const second = await buy("openapi-fetch-1", order);
    assert.deepEqual(second.data, first.data);
    assert.equal(second.response.headers.get("idempotency-replayed"), "true");
    const reused = await buy("openapi-fetch-1", { ...order, reference: "order-1002" });
    assert.equal(reused.response.status, 422);
    assert.equal(reused.error?.code, "idempotency_key_reused");
  });

  it("says which member is wrong", async () => {
    const { error, response } = await buy("openapi-fetch-2", { ...order, parcels: [{ weight: { value: 0, unit: "kg" } }] });
    assert.equal(response.status, 422);
    assert.deepEqual(error?.errors?.map((e) => e.pointer), ["/parcels/0/weight/value"]);
  });

  it("finds, cancels and lists what it bought", async () => {
    for (const n of [1, 2, 3]) await buy(`openapi-fetch-list-${n}`, { ...order, reference: "list" });
    const references: string[] = [];
    let cursor: string | undefined;
    do {
      const { data } = await client.GET("/shipments", { params: { query: { reference: "list", limit: 2, cursor } } });
      references.push(...(data?.items ?? []).map((item) => item.id ?? ""));
      cursor = data?.nextCursor ?? undefined;
    } while (cursor);
    assert.equal(new Set(references).size, 3);

    const path = { shipmentId: references[0] ?? "" };
    const found = await client.GET("/shipments/{shipmentId}", { params: { path } });
    assert.equal(found.data?.status, "created");
    const cancelled = await client.POST("/shipments/{shipmentId}/cancel", { params: { path } });
    assert.equal(cancelled.data?.status, "cancelled");
  });

  it("fetches a label as bytes", async () => {
    const { data: shipment } = await buy("openapi-fetch-label", order);
    const { data } = await client.GET("/shipments/{shipmentId}/label", {
      params: { path: { shipmentId: shipment?.id ?? "" }, query: { format: "pdf" } }, parseAs: "arrayBuffer",
    });
    assert.equal(Buffer.from(data as ArrayBuffer).subarray(0, 5).toString(), "%PDF-");
  });

  it("is stopped by the compiler where the description says no", () => {
    // @ts-expect-error: a number where text belongs
    const wrongType: ShipmentRequest = { ...order, reference: 1001 };
    // @ts-expect-error: a unit that there is not
    const wrongUnit: ShipmentRequest = { ...order, parcels: [{ weight: { value: 1, unit: "stone" } }] };
    // @ts-expect-error: parcels are missing
    const missing: ShipmentRequest = { reference: "x", service: "standard", from: order.from, to: order.to };
    // @ts-expect-error: no such path
    const path: keyof paths = "/parcels";
    assert.ok(wrongType && wrongUnit && missing && path);
  });
});
