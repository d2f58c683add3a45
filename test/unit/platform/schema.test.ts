/** What our schemas accept, and how faults are reported (document 1, "Errors"; document 2, "Answers"). */
import { describe, expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { FAULTS_LISTED, listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { rejectedValue } from "#core/platform/schema/rejected-value.ts";
import { isLongerThan } from "#core/platform/schema/text-formats.ts";
import { emailAddress, entityCode, mailSender } from "#core/platform/schema/text-forms.ts";

/** One character, two units of UTF-16. */
const PACKAGE = "📦";
const HALF = "\ud83d";

const faultsOf = (schema: TSchema, value: unknown, limit = FAULTS_LISTED) =>
  listFaults(compileSchema(schema).errors(value), limit).map(({ path, code }) => `${path} ${code}`);
const messagesOf = (schema: TSchema, value: unknown) =>
  listFaults(compileSchema(schema).errors(value)).map(({ message }) => message);

describe("lengths count characters, not units of UTF-16", () => {
  const text = Type.String({ maxLength: 5 });
  const schemas = [
    ["a text", text, (value: string) => value],
    ["a text or null", Type.Union([Type.Null(), text]), (value: string) => value],
    [
      "a text in one of two forms",
      Type.Union([Type.Object({ a: text }), Type.Object({ b: Type.Integer() })]),
      (value: string) => ({ a: value }),
    ],
  ] as const;

  test.each(schemas)("%s of five packages is accepted, of six it is TOO_LONG", (_, schema, of) => {
    const { check, errors } = compileSchema<TSchema>(schema);
    for (const characters of ["", "abcde", PACKAGE.repeat(5), `abc${PACKAGE.repeat(2)}`]) {
      expect(check(of(characters))).toBe(true);
      expect([...errors(of(characters))]).toEqual([]);
    }
    for (const characters of ["abcdef", PACKAGE.repeat(6), `abcd${PACKAGE.repeat(2)}`]) {
      expect(check(of(characters))).toBe(false);
      expect(faultsOf(schema, of(characters))).toEqual([expect.stringMatching(/TOO_LONG$/)]);
    }
    expect(check(5)).toBe(false);
  });

  test("a text is longer than a limit by one character", () => {
    const texts = ["abcd", PACKAGE.repeat(4), `ab${PACKAGE.repeat(2)}`];
    expect(texts.map((one) => isLongerThan(one, 4))).toEqual([false, false, false]);
    expect(texts.map((one) => isLongerThan(`${one}x`, 4))).toEqual([true, true, true]);
    expect(isLongerThan("x".repeat(100), 4)).toBe(true);
  });

  test("a schema may ask for no more than one of them at least", () => {
    for (const minLength of [0, 1]) expect(compileSchema(Type.String({ minLength }))).toBeObject();
    for (const minLength of [2, 10, 15]) {
      const schema = Type.Object({ a: Type.Array(Type.String({ minLength })) });
      expect(() => compileSchema(schema)).toThrow("minLength");
    }
  });
});

describe("faults", () => {
  const numbers = Type.Array(Type.Integer());

  test("are listed up to a limit, one of each path", () => {
    const wrong = Array(30).fill("x");
    expect(faultsOf(numbers, wrong)).toHaveLength(20);
    expect(faultsOf(numbers, wrong, 3)).toEqual(
      ["[0]", "[1]", "[2]"].map((at) => `${at} WRONG_TYPE`),
    );
    expect(faultsOf(numbers, wrong, 31)).toHaveLength(30);
    const text = Type.String({ minLength: 1, pattern: "^a", format: "calendar-date" });
    expect(faultsOf(text, "")).toEqual([" TOO_SHORT"]);
  });

  test("in a list or a map that is too large are reported as far as its limit goes", () => {
    const schema = Type.Object({
      list: Type.Array(Type.Integer(), { maxItems: 2 }),
      map: Type.Record(Type.String(), Type.Integer(), { maxProperties: 2 }),
    });
    const beyond = { list: [1, 2, "x"], map: { a: 1, b: 2, c: "x" } };
    expect(faultsOf(schema, beyond)).toEqual(["list TOO_MANY", "map TOO_MANY"]);
    const within = { list: [1, "x", 3], map: { a: 1, b: "x", c: 3 } };
    expect(faultsOf(schema, within)).toEqual([
      ...["list TOO_MANY", "list[1] WRONG_TYPE", "map TOO_MANY", "map.b WRONG_TYPE"],
    ]);
    expect(faultsOf(schema, { list: [1, 2], map: { a: 1, b: "x" } })).toEqual(["map.b WRONG_TYPE"]);
  });

  test("of a value that may have several forms are those of the form that it has", () => {
    const item = Type.Object({ a: Type.Integer(), b: Type.Union([Type.Null(), Type.Integer()]) });
    const schema = Type.Union([Type.Null(), item, Type.Array(Type.Integer())]);
    expect(faultsOf(schema, { a: "x", b: "y" })).toEqual(["a WRONG_TYPE", "b WRONG_TYPE"]);
    expect(faultsOf(schema, [1, "x"])).toEqual(["[1] WRONG_TYPE"]);
    expect(messagesOf(schema, "x")).toEqual(["Expected an object or a list or null."]);
    expect(messagesOf(schema, { a: 1, b: "y" })).toEqual(["Expected a whole number or null."]);
  });

  test("tell in words what is allowed", () => {
    const literals = Type.Union([Type.Literal("a"), Type.Literal(1), Type.Null()]);
    expect(faultsOf(literals, "b")).toEqual([" NOT_ALLOWED"]);
    expect(messagesOf(literals, "b")).toEqual(['Expected one of "a", 1, null.']);
    expect(messagesOf(Type.String({ format: "calendar-date" }), "soon")).toEqual([
      "A real date as YYYY-MM-DD.",
    ]);
    expect(messagesOf(Type.String({ pattern: "^a$", description: "an a" }), "b")).toEqual([
      "Expected: an a.",
    ]);
    expect(messagesOf(Type.String({ pattern: "^a$" }), "b")).toEqual([
      "The text is not in the documented form.",
    ]);
  });
});

describe("half of a surrogate pair", () => {
  const paths = (value: unknown, ...more: [path?: string, limit?: number]) =>
    illFormedText(value, ...more).map(({ path }) => path);

  test("is found in every text and key, wherever it stands", () => {
    const value = {
      a: HALF,
      b: ["x", HALF],
      c: { d: `x${HALF}`, e: [{ f: HALF }] },
      [`g${HALF}`]: "x",
      h: null,
      i: 1,
      j: false,
      k: PACKAGE,
    };
    expect(paths(value)).toEqual(["a", "b[1]", "c.d", "c.e[0].f", "g\ufffd"]);
    expect(paths([null, HALF])).toEqual(["[1]"]);
    expect([HALF, null, 5, PACKAGE].map((one) => paths(one))).toEqual([[""], [], [], []]);
    expect(paths({ a: HALF }, "shipments[0]")).toEqual(["shipments[0].a"]);
    expect(paths([HALF], "texts")).toEqual(["texts[0]"]);
  });

  test("is reported so many times at most", () => {
    expect(paths(Array(30).fill(HALF))).toHaveLength(20);
    expect(paths([[HALF, HALF], { a: HALF, b: HALF }], "", 3)).toEqual([
      "[0][0]",
      "[0][1]",
      "[1].a",
    ]);
  });
});

describe("the value that a fault is about", () => {
  test("is shown as far as 100 characters go", () => {
    const shown = (text: string) => rejectedValue({ a: text }, "a");
    for (const one of ["x", PACKAGE]) {
      expect(shown(one.repeat(100))).toBe(one.repeat(100));
      expect(shown(one.repeat(101))).toBe(`${one.repeat(100)}…`);
    }
  });

  test("is found by its path, and is none where the path leads through no object", () => {
    const request = { a: [{ b: 1 }], c: "text", d: null, e: false };
    expect(["a[0].b", "c", "e"].map((path) => rejectedValue(request, path))).toEqual([
      ...[1, "text", false],
    ]);
    for (const path of ["a[1].b", "c[0]", "c.length", "d.x", "d", "a", "toString", ""]) {
      expect([path, rejectedValue(request, path)]).toEqual([path, undefined]);
    }
  });
});

test("an id in a path has fifteen digits at most; what is none is the id of nothing", () => {
  expect(["1", "16", "999999999999999"].map(idOf)).toEqual([1, 16, 999_999_999_999_999]);
  const none = ["", "0", "01", "-1", "1.5", "1e3", " 1", "x", "1000000000000000"];
  for (const text of none) expect([text, idOf(text)]).toEqual([text, 0]);
});

test.each([
  ["a code", entityCode, 50, ""],
  ["an e-mail address", emailAddress, 255, "@example.com"],
  ["the sender of a mail", mailSender, 255, " <name@example.com>"],
])("%s has so many characters at most, and one at least", (_, schema, limit, end) => {
  const text = (length: number) => `${"x".repeat(length - end.length)}${end}`;
  const { check } = compileSchema(schema);
  expect([1 + end.length, limit].map((length) => check(text(length)))).toEqual([true, true]);
  expect(faultsOf(schema, text(limit + 1))).toEqual([" TOO_LONG"]);
  expect(check("")).toBe(false);
});
