// curl, in the clear and over TLS, and what it makes of the faults.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { order } from "./order.js";
import { key, start, type Program } from "./program.js";

// curl returns its exit code and what it prints.
function curl(...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise((done) => {
    execFile("curl", ["--silent", "--show-error", "--header", `x-api-key: ${key}`, ...args], { encoding: "latin1" },
      (error, out) => done({ code: typeof error?.code === "number" ? error.code : 0, out }));
  });
}

function version(): string {
  try {
    return execFileSync("curl", ["--version"], { encoding: "utf8" });
  } catch {
    return "";
  }
}

const installed = version();

describe("curl", { skip: installed ? false : "curl is not installed" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "carrier-"));
  let program: Program;
  let secure: Program;
  before(async () => {
    program = await start();
    secure = await start("--tls", "--tls-cert", join(folder, "carrier.pem"));
  });
  after(async () => {
    await program.stop();
    await secure.stop();
    rmSync(folder, { recursive: true });
  });

  const buy = (idempotencyKey: string, ...args: string[]) =>
    curl("--json", JSON.stringify(order), "--header", `idempotency-key: ${idempotencyKey}`, ...args, `${program.url}/shipments`);

  it("buys once, and gets the same bytes again", async () => {
    const first = await buy("curl-1", "--write-out", "%{http_code}");
    assert.match(first.out, /"id":"shp_.*201$/s);
    const again = await buy("curl-1", "--include");
    assert.match(again.out, /^Idempotency-Replayed: true\r$/m);
    assert.equal(again.out.split("\r\n\r\n")[1], first.out.replace(/201$/, ""));
  });

  it("resumes a label where it was cut", async () => {
    const { out } = await buy("curl-2");
    const url = `${(JSON.parse(out) as { labels: { url: string }[] }).labels[0]?.url}`;
    const whole = await curl(url);
    assert.match(whole.out, /^%PDF-/);
    const part = await curl("--range", "100-199", "--include", url);
    assert.match(part.out, /^HTTP\/1.1 206 /);
    assert.equal(part.out.split("\r\n\r\n").slice(1).join("\r\n\r\n"), whole.out.slice(100, 200));
  });

  it("trusts the certificate that the program has written, and no other", async () => {
    assert.ok(secure.certificate);
    const trusted = await curl("--cacert", secure.certificate, "--write-out", " %{http_code} %{http_version}", `${secure.url}/tracking/BK1001TR`);
    assert.match(trusted.out, installed.includes("HTTP2") ? / 200 2$/ : / 200 1.1$/);
    assert.equal((await curl(`${secure.url}/status`)).code, 60);
  });

  const faults: [name: string, rule: object, code: number, args?: string[]][] = [
    ["reset", { kind: "reset" }, 56],
    ["close", { kind: "close" }, 52],
    ["cut, by length", { kind: "truncate", bytes: 20 }, 18],
    ["cut, in chunks", { kind: "truncate", bytes: 20, framing: "chunked" }, 18],
    ["cut, by the end of the connection", { kind: "truncate", bytes: 20, framing: "close" }, 0],
    ["stall", { kind: "stall" }, 28, ["--max-time", "0.3"]],
    ["stall in the body", { kind: "stall-body", bytes: 20 }, 28, ["--max-time", "0.3"]],
    ["garbage", { kind: "garbage" }, 1],
    ["bad size of a chunk", { kind: "bad-chunk" }, 56],
    ["no gzip, although it says so", { kind: "bad-gzip" }, 61, ["--compressed"]],
    ["503", { kind: "status", status: 503 }, 22, ["--fail"]],
    ["503 once, with its own retry", { kind: "status", status: 503, header: { "Retry-After": ["0"] } }, 0, ["--fail", "--retry", "1", "--retry-delay", "0"]],
  ];
  for (const [name, rule, code, args = []] of faults) {
    it(`ends with ${code}: ${name}`, async () => {
      await program.clear();
      await program.inject({ ...rule, first: 1 });
      assert.equal((await curl(...args, `${program.url}/tracking/BK1001TR`)).code, code);
    });
  }

  it("is kept from the admin API by another host name", async () => {
    const { out } = await curl("--header", "Host: attacker.example", `${program.admin}/ledger`);
    assert.match(out, /"code":"foreign_host"/);
  });
});
