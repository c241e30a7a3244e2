// Each fault as undici sees it. What it sees is in the table.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Agent, request } from "undici";
import { key, start, type Program } from "./program.js";

// seen is where an exchange ends, and how: with the status and the parsed body,
// or with an error before the headers, in the body, or in its JSON.
type Seen = { at: "headers" | "body" | "json"; error: string } | { at: "end"; status: number };

const rows: [name: string, rule: object, seen: Seen, path?: string][] = [
  ["reset before the headers", { kind: "reset", phase: "before" }, { at: "headers", error: "ECONNRESET" }],
  ["reset, answer lost", { kind: "reset", phase: "after" }, { at: "headers", error: "ECONNRESET" }],
  ["close before the headers", { kind: "close", phase: "before" }, { at: "headers", error: "UND_ERR_SOCKET" }],
  ["close, answer lost", { kind: "close", phase: "after" }, { at: "headers", error: "UND_ERR_SOCKET" }],
  ["reset in the body", { kind: "reset-body", bytes: 20 }, { at: "body", error: "ECONNRESET" }],
  ["cut, by length", { kind: "truncate", bytes: 20 }, { at: "body", error: "UND_ERR_SOCKET" }],
  ["cut, in chunks", { kind: "truncate", bytes: 20, framing: "chunked" }, { at: "body", error: "UND_ERR_SOCKET" }],
  ["cut, by the end of the connection", { kind: "truncate", bytes: 20, framing: "close" }, { at: "json", error: "SyntaxError" }],
  ["bad size of a chunk", { kind: "bad-chunk" }, { at: "body", error: "HTTPParserError" }],
  ["garbage", { kind: "garbage" }, { at: "headers", error: "HTTPParserError" }],
  ["body longer than its length", { kind: "overlong" }, { at: "json", error: "SyntaxError" }],
  ["bytes of the answer twice", { kind: "duplicate" }, { at: "end", status: 200 }],
  ["no answer", { kind: "stall" }, { at: "headers", error: "UND_ERR_HEADERS_TIMEOUT" }],
  ["no answer, but done", { kind: "stall", phase: "after" }, { at: "headers", error: "UND_ERR_HEADERS_TIMEOUT" }],
  ["stall in the body", { kind: "stall-body", bytes: 20 }, { at: "body", error: "UND_ERR_BODY_TIMEOUT" }],
  ["late", { kind: "delay", wait: "50ms" }, { at: "end", status: 200 }],
  ["slow", { kind: "drip", bytes: 50, wait: "5ms" }, { at: "end", status: 200 }],
  ["HTML with 502", { kind: "html", status: 502 }, { at: "json", error: "SyntaxError" }],
  ["HTML with 200", { kind: "html", status: 200 }, { at: "json", error: "SyntaxError" }],
  ["malformed JSON", { kind: "malformed-json" }, { at: "json", error: "SyntaxError" }],
  ["empty 200", { kind: "empty" }, { at: "json", error: "SyntaxError" }],
  ["a header of 2 MiB", { kind: "large-header", bytes: 2 << 20 }, { at: "headers", error: "UND_ERR_HEADERS_OVERFLOW" }],
  ["no gzip, although it says so", { kind: "bad-gzip" }, { at: "end", status: 200 }], // undici leaves it to its caller
  ["103 twice", { kind: "informational", status: 103, count: 2 }, { at: "end", status: 200 }],
  ["204 with a body", { kind: "204-with-body" }, { at: "body", error: "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" }],
  ["503", { kind: "status", status: 503 }, { at: "end", status: 503 }],
  ["redirect", { kind: "redirect", status: 307, header: { Location: ["/elsewhere"] } }, { at: "json", error: "SyntaxError" }],
  ["unknown members", { kind: "unknown-fields" }, { at: "end", status: 200 }],
  ["unknown statuses", { kind: "unknown-enums" }, { at: "end", status: 200 }],
  ["times without a zone", { kind: "zoneless-times" }, { at: "end", status: 200 }],
  ["nulls", { kind: "nulls" }, { at: "end", status: 200 }],
  ["another media type", { kind: "content-type", body: "text/plain" }, { at: "end", status: 200 }],
  ["a body of 1 MiB", { kind: "oversize", bytes: 1 << 20 }, { at: "end", status: 200 }],
  ["connection refused", { kind: "refuse" }, { at: "headers", error: "ECONNRESET" }],
  ["MC45: 503 once", {}, { at: "end", status: 503 }, "/tracking/MC45INTEROP"],
  ["MC52: reset", {}, { at: "headers", error: "ECONNRESET" }, "/tracking/MC52INTEROP"],
  ["MC54: cut", {}, { at: "body", error: "UND_ERR_SOCKET" }, "/tracking/MC54INTEROP"],
  ["MC58: 204", {}, { at: "json", error: "SyntaxError" }, "/tracking/MC58INTEROP"],
];

// codeOf returns what tells an error of undici from others.
function codeOf(error: unknown): string {
  const { code, name } = error as { code?: string; name: string };
  return code ?? name;
}

describe("faults as undici sees them", () => {
  let program: Program;
  before(async () => {
    program = await start();
  });
  after(() => program.stop());

  async function ask(path: string, patience: number): Promise<Seen> {
    const dispatcher = new Agent({ headersTimeout: patience, bodyTimeout: patience });
    try {
      let response;
      try {
        response = await request(program.url + path, { dispatcher, headers: { "x-api-key": key } });
      } catch (error) {
        return { at: "headers", error: codeOf(error) };
      }
      let text;
      try {
        text = await response.body.text();
      } catch (error) {
        return { at: "body", error: codeOf(error) };
      }
      try {
        JSON.parse(text);
      } catch (error) {
        return { at: "json", error: codeOf(error) };
      }
      return { at: "end", status: response.statusCode };
    } finally {
      await dispatcher.destroy();
    }
  }

  for (const [name, rule, seen, path] of rows) {
    it(name, async () => {
      await program.clear();
      if ("kind" in rule) await program.inject({ ...rule, first: 1 });
      const stalls = "error" in seen && seen.error.endsWith("_TIMEOUT");
      assert.deepEqual(await ask(path ?? "/tracking/BK1001TR", stalls ? 300 : 10_000), seen);
      await program.clear();
      assert.deepEqual(await ask("/tracking/BK1001TR", 10_000), { at: "end", status: 200 });
    });
  }
});
