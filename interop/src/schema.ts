// Makes bodies from the schemas of our description: valid ones, and ones that
// break one rule, with a pointer to where.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { parse } from "yaml";

export interface Schema {
  $ref?: string;
  allOf?: Schema[];
  type?: "object" | "array" | "string" | "number" | "integer" | "boolean";
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  enum?: string[];
  "x-extensible-enum"?: boolean;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
}

const description = parse(readFileSync(new URL("../../openapi/carrier.yaml", import.meta.url), "utf8")) as {
  components: { schemas: Record<string, Schema> };
};

// schemaOf returns a schema of the description by its name.
export function schemaOf(name: string): Schema {
  const schema = description.components.schemas[name];
  if (!schema) throw new Error(`there is no schema ${name}`);
  return schema;
}

// resolve follows references, and joins what stands beside one.
function resolve(schema: Schema): Schema {
  if (schema.$ref) return resolve(schemaOf(schema.$ref.replace("#/components/schemas/", "")));
  if (schema.allOf) {
    const { allOf, ...own } = schema;
    return Object.assign({}, ...allOf.map(resolve), own);
  }
  return schema;
}

const lengthOf = (text: string) => [...text].length; // in code points

// valid makes values that a schema allows.
export function valid(of: Schema): fc.Arbitrary<unknown> {
  const schema = resolve(of);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case "object": {
      const properties = Object.entries(schema.properties ?? {});
      return fc.record(Object.fromEntries(properties.map(([name, property]) => [name, valid(property)])), {
        requiredKeys: schema.required ?? [],
      });
    }
    case "array": {
      const lengths = { minLength: schema.minItems ?? 0, maxLength: Math.min(schema.maxItems ?? 3, 3) };
      const items = valid(schema.items ?? {});
      return schema.uniqueItems ? fc.uniqueArray(items, lengths) : fc.array(items, lengths);
    }
    case "string": {
      const { minLength = 0, maxLength = 40 } = schema;
      if (schema.pattern) {
        return fc.stringMatching(new RegExp(schema.pattern, "u"))
          .map((text) => [...text].slice(0, maxLength).join(""))
          .filter((text) => lengthOf(text) >= minLength && new RegExp(schema.pattern ?? "", "u").test(text));
      }
      return fc.string({ unit: "grapheme", minLength, maxLength }).filter((text) => lengthOf(text) <= maxLength);
    }
    case "number":
      return fc.double({
        min: schema.minimum, minExcluded: schema.exclusiveMinimum, max: schema.maximum, maxExcluded: schema.exclusiveMaximum,
        noNaN: true, noDefaultInfinity: true,
      });
    case "integer":
      return fc.integer({ min: schema.minimum, max: schema.maximum });
    case "boolean":
      return fc.boolean();
  }
  throw new Error(`what is ${JSON.stringify(schema)}?`);
}

// Broken is a body that breaks one rule.
export interface Broken {
  rule: string;
  pointer: string;
  body: unknown;
}

// breaks returns all bodies that differ from a valid one in one place, where
// they break a rule of the schema.
export function breaks(of: Schema, value: unknown, pointer = ""): Broken[] {
  const schema = resolve(of);
  const list: Broken[] = [];
  const broken = (rule: string, body: unknown, at = pointer) => list.push({ rule, pointer: at, body });
  broken("type", schema.type === "string" ? 7 : "text");
  if (schema.enum) {
    if (!schema["x-extensible-enum"]) broken("enum", "no_such_word");
    return list;
  }
  if (schema.type === "object") {
    const object = value as Record<string, unknown>;
    for (const name of schema.required ?? []) {
      const { [name]: _, ...rest } = object;
      broken("required", rest, `${pointer}/${name}`);
    }
    if (schema.additionalProperties === false) broken("additionalProperties", { ...object, colour: "red" }, `${pointer}/colour`);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (!(name in object)) continue;
      for (const inner of breaks(property, object[name], `${pointer}/${name}`)) {
        list.push({ ...inner, body: { ...object, [name]: inner.body } });
      }
    }
  }
  if (schema.type === "array") {
    const array = value as unknown[];
    const tooMany = (schema.maxItems ?? Infinity) + 1;
    if (tooMany < 1000 && !schema.uniqueItems && array.length > 0) broken("maxItems", Array(tooMany).fill(array[0]));
    if (schema.minItems) broken("minItems", array.slice(0, schema.minItems - 1));
    array.forEach((item, i) => {
      for (const inner of breaks(schema.items ?? {}, item, `${pointer}/${i}`)) {
        list.push({ ...inner, body: array.with(i, inner.body) });
      }
    });
  }
  if (schema.type === "string") {
    const { minLength = 0, maxLength = Infinity, pattern } = schema;
    if (maxLength < 1000) broken("maxLength", "A".repeat(maxLength + 1));
    if (minLength > 0) broken("minLength", "");
    const unlike = ["\u0001", "!", "a b", "AAAA-AA-AA", "\u00e9\u00e9"].find((text) =>
      pattern && !new RegExp(pattern, "u").test(text) && lengthOf(text) >= minLength && lengthOf(text) <= maxLength);
    if (unlike) broken("pattern", unlike);
  }
  if (schema.type === "number" || schema.type === "integer") {
    if (schema.minimum !== undefined) broken("minimum", schema.exclusiveMinimum ? schema.minimum : schema.minimum - 1);
    if (schema.maximum !== undefined) broken("maximum", schema.exclusiveMaximum ? schema.maximum : schema.maximum + 1);
  }
  return list;
}
