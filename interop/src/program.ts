// Starts the program that is under test, and ends it by closing its stdin.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Program {
  url: string; // of the API
  admin: string; // of the admin API, without the slash at the end
  certificate?: string; // the file, if there is one
  inject(...rules: object[]): Promise<void>;
  clear(): Promise<void>;
  stop(): Promise<void>;
}

export const key = "ck_test_mockcarrier";

// start returns once the program is ready. Whoever calls it stops it.
export async function start(...flags: string[]): Promise<Program> {
  const path = process.env["MOCKCARRIER"];
  if (!path) throw new Error("MOCKCARRIER is to name the program");
  const program = spawn(path, ["--port", "0", "--exit-on-stdin-close", "--log", "off", ...flags], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exit = once(program, "exit");
  const line = await Promise.race([
    once(createInterface(program.stdout), "line").then(([text]) => text as string),
    exit.then(([code]) => Promise.reject(new Error(`the program ended with ${code}`))),
  ]);
  const stop = async () => {
    program.stdin.end();
    const [code] = await exit;
    if (code !== 0) throw new Error(`the program ended with ${code}`);
  };
  const { url, admin, certificate } = JSON.parse(line) as { url: string; admin: string; certificate?: string };
  const ask = async (method: string, body?: object) => {
    const response = await fetch(`${admin}faults`, {
      method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
  };
  return {
    url, admin: admin.replace(/\/$/, ""), certificate,
    inject: (...rules) => ask("POST", rules),
    clear: () => ask("DELETE"),
    stop,
  };
}
