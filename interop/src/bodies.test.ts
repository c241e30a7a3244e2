// Bodies that are generated from the description: what it allows is bought,
// what it does not is refused, with a pointer to the member.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { key, start, type Program } from "./program.js";
import { breaks, schemaOf, valid, type Broken } from "./schema.js";

// FC_SEED repeats a run that has failed.
const parameters = { numRuns: 200, seed: Number(process.env["FC_SEED"] ?? 1) };

interface Problem {
  code: string;
  errors?: { pointer?: string; code: string; message: string }[];
}

describe("generated bodies", () => {
  let program: Program;
  before(async () => {
    program = await start();
  });
  after(() => program.stop());

  let sent = 0;
  async function post(path: string, body: unknown): Promise<{ status: number; problem: Problem }> {
    const response = await fetch(program.url + path, {
      method: "POST", body: JSON.stringify(body),
      headers: { "x-api-key": key, "content-type": "application/json", "idempotency-key": `generated-${++sent}` },
    });
    const problem = (await response.json()) as Problem;
    return { status: response.status, problem };
  }

  for (const [path, name, status] of [["/shipments", "ShipmentRequest", 201], ["/tracking/batch", "BatchRequest", 200]] as const) {
    // A rate and a service point cannot be made up.
    const whole = schemaOf(name);
    const schema = { ...whole, properties: Object.fromEntries(Object.entries(whole.properties ?? {})
      .filter(([member]) => !["rateId", "servicePointId"].includes(member))) };

    it(`${path} takes what is valid`, () => fc.assert(fc.asyncProperty(valid(schema), async (body) => {
      const answer = await post(path, body);
      assert.equal(answer.status, status, JSON.stringify(answer.problem));
    }), parameters));

    it(`${path} refuses what breaks a rule, and points at it`, async () => {
      const rules = new Map<string, number>();
      const broken: fc.Arbitrary<Broken> = valid(schema).chain((body) => fc.constantFrom(...breaks(schema, body)));
      await fc.assert(fc.asyncProperty(broken, async ({ rule, pointer, body }) => {
        rules.set(rule, (rules.get(rule) ?? 0) + 1);
        const { status, problem } = await post(path, body);
        assert.equal(status, 422, JSON.stringify(problem));
        assert.ok(problem.errors?.some((error) => (error.pointer ?? "") === pointer), `${rule} at ${pointer}: ${JSON.stringify(problem)}`);
      }), { ...parameters, endOnFailure: true });
      for (const rule of ["type", "required", "additionalProperties", "maxItems"]) {
        if (name === "ShipmentRequest") assert.ok(rules.has(rule), `none breaks ${rule}: ${JSON.stringify([...rules])}`);
      }
    });
  }
});
