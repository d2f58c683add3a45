/** Draws values around the edges of a published JSON Schema: at every bound, one past it, and of the wrong kind. */
export type Schema = { readonly [keyword: string]: unknown };

/** A source of choices that a seed repeats (mulberry32). */
export interface Dice {
  /** A whole number under `limit`. */
  readonly below: (limit: number) => number;
  readonly pick: <T>(list: readonly T[]) => T;
}

export function dice(seed: number): Dice {
  let state = seed;
  function below(limit: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((((mixed ^ (mixed >>> 14)) >>> 0) * limit) / 2 ** 32) | 0;
  }
  return { below, pick: (list) => list[below(list.length)] as (typeof list)[number] };
}

export interface Draws {
  /** Values of a schema: valid ones, and ones with an edge at one or more places. */
  readonly draw: (schema: Schema, g: Dice) => unknown;
}

/** Larger lists and texts are not drawn. */
const SIZE_LIMIT = 2_100;
/** One in so many of the values that a value holds is an edge. */
const EDGE_EVERY = [8, 30, 120, 1_000_000] as const;

/** Texts that patterns and formats tell apart. */
const TEXTS = [
  ...[
    "IT",
    "it",
    "ITA",
    "I",
    "1T",
    "EUR",
    "20121",
    "2012",
    "201211",
    "x",
    "review-request",
    "=",
    "a=b",
  ],
  ...[
    "a@b.it",
    "a b@c.it",
    "@b.it",
    `whsec_${"0a".repeat(32)}`,
    `${"AB:".repeat(31)}CD`,
    "10:30",
    "24:00",
  ],
  ...[
    "2026-11-20",
    "2026-02-29",
    "2024-02-29",
    "2100-02-29",
    "2026-13-01",
    "20261120",
    "1999-12-31",
  ],
  ...["2026-11-20T10:00:00+01:00", "2026-11-20T10:00:00", "2026-11-20T10:00:00+0100"],
  ...[
    "2026-11-20T10:00:00+01",
    "2026-11-20 10:00:00+01:00",
    "2026-11-20 10:00:00",
    "2026-11-20t10:00z",
    "2026-11-20T10:00:00,5Z",
  ],
  ...[
    "2026-11-20T23:59:60Z",
    "2026-11-20T24:00:00Z",
    "2026-02-30T10:00:00Z",
    "2099-12-31T23:59:59.123456789-23:59",
  ],
  ...[
    "2100-01-01T00:00:00Z",
    "1999-12-31T23:59:59Z",
    "2026-11-20T10:00:00.1234567890Z",
    "2024-02-29T00:00:00Z",
  ],
  ...[
    "https://a.example/x?y#z",
    "HTTP://A.example",
    "ftp://a.example",
    "//a.example",
    "https://",
    "https://a b",
  ],
  ...[
    "http://[::1]:80/",
    "http://u:p@a.example:99999/",
    "http://a.example:123456",
    "https://à.example/è",
    "http://a%/",
  ],
  ...[
    "https://a.example/\u00a0",
    "https://a.example/\u0001",
    "https://a.example/📦",
    "evt_x",
    "1.0",
    "1.",
    "10000.0",
  ],
  ...["a\nb", " a", "a ", "\u0000", "à", "📦", "it", "en"],
];

const WRONG_KINDS: readonly unknown[] = [null, true, 0, 1.5, "", "x", [], {}, [null], { x: 1 }];

/**
 * @param resolve the schema that a `$ref` names
 * @param judge whether a value is valid
 */
export function schemaDraws(
  resolve: (ref: string) => Schema,
  judge: (schema: Schema, value: unknown) => boolean,
): Draws {
  const plain = (schema: unknown): Schema => {
    const { $ref } = schema as Schema;
    return typeof $ref === "string" ? plain(resolve($ref)) : (schema as Schema);
  };

  let edgeEvery: number = EDGE_EVERY[0];

  function draw(given: unknown, g: Dice): unknown {
    const schema = plain(given);
    if (g.below(edgeEvery) === 0) return edge(schema, g);
    const { anyOf, properties, type, items, minItems = 0 } = schema;
    if (anyOf !== undefined && properties === undefined) {
      return draw(g.pick(anyOf as unknown[]), g);
    }
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"])) return g.pick(schema["enum"]);
    switch (Array.isArray(type) ? g.pick(type) : type) {
      case "object":
        return drawObject(schema, g);
      case "array":
        return listOf((minItems as number) + g.below(2), () => draw(items ?? {}, g));
      case "string":
        return drawText(schema, g);
      case "integer":
      case "number":
        return g.pick(edgesOfNumber(schema).filter((one) => judge(schema, one)));
      case "boolean":
        return g.below(2) === 0;
      case "null":
        return null;
      default:
        return g.pick(WRONG_KINDS);
    }
  }

  function drawObject(schema: Schema, g: Dice): Record<string, unknown> {
    const { properties = {}, required = [], patternProperties = {} } = schema;
    const forms = [schema["if"], schema["else"]] as readonly (Schema | undefined)[];
    const form = g.pick(forms)?.["required"] ?? [];
    const needed = [required, form].flat() as string[];
    const members = Object.entries(properties as Record<string, unknown>)
      .filter(([name]) => needed.includes(name) || g.below(3) === 0)
      .map(([name, member]) => [name, draw(member, g)]);
    const maps = Object.entries(patternProperties as Record<string, unknown>).flatMap(
      ([form, one]) =>
        TEXTS.filter((text) => new RegExp(form, "u").test(text)).map((key) => [key, draw(one, g)]),
    );
    const keys = schema["propertyNames"] ? [drawText(plain(schema["propertyNames"]), g)] : [];
    const more = keys.map((key) => [key, draw(schema["additionalProperties"], g)]);
    return Object.fromEntries([...members, ...maps, ...more]);
  }

  const drawText = textDraws(judge);

  /** What lies on a bound, one past it, or is of another kind. */
  function edge(schema: Schema, g: Dice): unknown {
    const { type, items, minItems = 0, maxItems = 3 } = schema as Bounded;
    const kinds: unknown[] = [type].flat();
    const edges: unknown[] = [...WRONG_KINDS];
    if (kinds.includes("string"))
      edges.push(...TEXTS, ...edgesOfText(schema, g), ...edgesOfText(schema, g));
    if (kinds.includes("integer") || kinds.includes("number")) edges.push(...edgesOfNumber(schema));
    if (kinds.includes("array")) {
      const item = draw(items ?? {}, g);
      edges.push(...lengthsAround(minItems, maxItems).map((length) => listOf(length, () => item)));
    }
    if (kinds.includes("object")) {
      const keyLength = (plain(schema["propertyNames"] ?? {})["maxLength"] as number) ?? 1;
      const member = () => draw(schema["additionalProperties"], g);
      edges.push(...edgesOfObject(schema, drawObject(schema, g), member, keyLength, g));
    }
    return g.pick(edges);
  }

  return {
    draw(schema, g) {
      edgeEvery = g.pick(EDGE_EVERY);
      return draw(schema, g);
    },
  };
}

interface Bounded {
  readonly type?: unknown;
  readonly items?: unknown;
  readonly minItems?: number;
  readonly maxItems?: number;
}

function lengthsAround(least: number, most: number): number[] {
  const lengths = [least - 1, least, most, most + 1];
  return lengths.filter((length) => length >= 0 && length <= SIZE_LIMIT);
}

/** Texts that a schema allows, among those that are known and those on its bounds. */
function textDraws(judge: (schema: Schema, value: unknown) => boolean) {
  const known = new Map<Schema, readonly string[]>();
  return (schema: Schema, g: Dice): string => {
    const isValid = (text: string) => judge({ ...schema, type: "string" }, text);
    const texts = known.get(schema) ?? TEXTS.filter(isValid);
    known.set(schema, texts);
    const edges = schema["pattern"] === undefined ? edgesOfText(schema, g).filter(isValid) : [];
    if (texts.length + edges.length === 0) {
      throw new Error(`no text is known for ${JSON.stringify(schema)}`);
    }
    return g.pick([...texts, ...edges]);
  };
}

/**
 * @param whole a valid one
 * @param drawMember a value of a further member
 * @param keyLength characters of its longest key
 */
function edgesOfObject(
  schema: Schema,
  whole: Record<string, unknown>,
  drawMember: () => unknown,
  keyLength: number,
  g: Dice,
): unknown[] {
  const without = Object.keys(whole).map((name) => {
    const { [name]: _, ...rest } = whole;
    return rest;
  });
  const most = schema["maxProperties"] as number | undefined;
  if (most === undefined) return [...without, { ...whole, surprise: 1 }];
  const filled = (count: number) =>
    Object.fromEntries(listOf(count, (at) => [`k${at}`, drawMember()]));
  const lengths = [0, keyLength, keyLength + 1];
  const keyed = lengths.map((length) => ({ [textOf(length, g)]: "x" }));
  return [...without, filled(most), filled(most + 1), ...keyed];
}

function edgesOfText(schema: Schema, g: Dice): string[] {
  const { minLength = 0, maxLength = 10 } = schema as Record<string, number>;
  const lengths = [minLength - 1, minLength, maxLength, maxLength + 1];
  return lengths
    .filter((length) => length >= 0 && length <= SIZE_LIMIT)
    .map((length) => textOf(length, g));
}

/** A text of so many code points, which may have two UTF-16 units each. */
function textOf(length: number, g: Dice): string {
  return g.pick(["a", "à", "📦"]).repeat(length);
}

function edgesOfNumber(schema: Schema): number[] {
  const { minimum, exclusiveMinimum, maximum } = schema as Record<string, number | undefined>;
  const low = minimum ?? exclusiveMinimum ?? -1;
  const high = maximum ?? 7;
  return [low - 1, low, low + 0.5, low + 1, high, high + 0.5, high + 1, 1e300, -0];
}

function listOf<T>(length: number, item: (at: number) => T): T[] {
  return Array.from({ length }, (_, at) => item(at));
}
