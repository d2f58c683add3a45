/** How a schema is published: as JSON Schema 2020-12 that says what the validators do. */
import { describe, expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { JsonValue, jsonValue } from "#core/platform/schema/json-value.ts";
import { namedComponents, publishedSchema } from "#core/platform/schema/published-schema.ts";

const nullable = { nullIsAbsent: true };

describe("where a null member counts as absent", () => {
  const published = (member: TSchema) => {
    const schema = publishedSchema(Type.Object({ a: Type.Optional(member) }), nullable);
    return (schema["properties"] as Record<string, unknown>)["a"];
  };

  test("an optional one of several types takes null, and says so once", () => {
    const types = [{ type: "string" }, { type: "integer" }];
    const forms = [Type.String(), Type.Integer()];
    const withNull = { anyOf: [...types, { type: "null" }] };
    expect(published(Type.Union(forms))).toEqual(withNull);
    expect(published(Type.Union([...forms, Type.Null()]))).toEqual(withNull);
    expect(published(Type.Unknown())).toEqual({});
  });

  test("one schema may say so of itself, and of what it holds", () => {
    const inner = Type.Object({ a: Type.Optional(Type.String()) });
    const schema = Type.Object({
      plain: Type.Array(inner),
      own: Type.Optional(Type.Array({ ...inner, ...nullable })),
    });
    const items = (type: unknown) => ({
      type: "array",
      items: { type: "object", properties: { a: { type } } },
    });
    expect(publishedSchema(schema)["properties"]).toEqual({
      plain: items("string"),
      own: items(["string", "null"]),
    });
  });
});

describe("values to choose from", () => {
  const literals = [Type.Literal("x"), Type.Literal("y")];

  test("are an enum where all are texts", () => {
    expect(publishedSchema(Type.Union(literals))).toEqual({ type: "string", enum: ["x", "y"] });
    expect(publishedSchema(Type.Union([...literals, Type.Null()]))).toEqual({
      type: ["string", "null"],
      enum: ["x", "y", null],
    });
  });

  test("stay forms where one is no text, or says more of itself", () => {
    for (const other of [
      Type.Integer(),
      Type.String(),
      Type.Literal("z", { description: "last" }),
    ]) {
      const { anyOf } = publishedSchema(Type.Union([...literals, other]));
      expect(anyOf).toEqual([
        { const: "x", type: "string" },
        { const: "y", type: "string" },
        JSON.parse(JSON.stringify(other)),
      ]);
    }
  });
});

describe("a map", () => {
  test("with a longest key has keys of one character at least", () => {
    const schema = Type.Record(Type.String({ pattern: "^.{1,64}$" }), Type.String(), {
      keyLength: 64,
      additionalProperties: false,
    });
    expect(publishedSchema(schema)).toEqual({
      type: "object",
      propertyNames: { minLength: 1, maxLength: 64 },
      additionalProperties: { type: "string" },
    });
  });

  test("without one has its keys' pattern, and its values are published like others", () => {
    const date = Type.String({ format: "calendar-date" });
    const { patternProperties } = publishedSchema(Type.Record(Type.String(), date));
    expect(patternProperties).toEqual({ "^(.*)$": publishedSchema(date) });
    expect(publishedSchema(Type.Object({}))).toEqual({ type: "object", properties: {} });
  });
});

test("a place that uses a named schema keeps its own description", () => {
  const money = Type.Object({ amount: Type.Number() }, { description: "what was paid" });
  const components = namedComponents({ Money: money });
  const published = publishedSchema({ ...money, description: "what is owed" }, { components });
  expect(published).toEqual({ $ref: "#/components/schemas/Money", description: "what is owed" });
  const { description: _, ...plain } = money;
  const silent = publishedSchema(plain as typeof money, { components });
  expect(Object.entries(silent)).toEqual([["$ref", "#/components/schemas/Money"]]);
  expect(components.published.get("Money")).not.toHaveProperty("description");
});

test("any JSON is a component that refers to itself, described where it is used", () => {
  expect(publishedSchema(jsonValue("as it was sent"))).toEqual({
    ...JSON.parse(JSON.stringify(JsonValue)),
    description: "as it was sent",
  });
  const components = namedComponents({ JsonValue });
  const $ref = "#/components/schemas/JsonValue";
  expect(publishedSchema(jsonValue(), { components })).toEqual({ $ref });
  expect(publishedSchema(jsonValue("as it was sent"), { components })).toEqual({
    $ref,
    description: "as it was sent",
  });
});
