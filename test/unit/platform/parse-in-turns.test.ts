/** A large text parsed in turns means what it means parsed at once, and is refused for the same reasons. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  ELEMENTS_LIMIT,
  ESCAPES_LIMIT_BYTES,
  ItemTooLarge,
  parseInTurns,
  VALUE_LIMIT_BYTES,
} from "#core/platform/http/body/parse-in-turns.ts";
import { JsonFault, NESTING_LIMIT, parseStrictJson } from "#core/platform/http/body/strict-json.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** What becomes of a text: its value, or why it is refused. */
async function outcome(parse: () => unknown): Promise<unknown> {
  try {
    return await parse();
  } catch (error) {
    if (error instanceof JsonFault) return "refused";
    throw error;
  }
}

async function expectSame(text: string, pieceBytes: number): Promise<void> {
  const bytes = bytesOf(text);
  const atOnce = await outcome(() => parseStrictJson(bytes));
  expect(await outcome(() => parseInTurns(bytes, { pieceBytes }))).toEqual(atOnce);
}

const spaced = fc
  .tuple(fc.json({ maxDepth: 5 }), fc.integer({ min: 0, max: 2 }))
  .map(([text, indent]) => JSON.stringify(JSON.parse(text), null, indent));

describe("parsed in turns", () => {
  test("any JSON gives the value that it gives at once, whatever the size of the pieces", async () => {
    await fc.assert(fc.asyncProperty(spaced, fc.integer({ min: 1, max: 40 }), expectSame), {
      numRuns: 3_000,
    });
  });

  test("any text that is spoiled somewhere is accepted or refused as at once", async () => {
    const pieces = [",", "[", "]", "{", "}", '"', ":", "-", "0", "\\", " ", '"a":', "null", ""];
    const spoiled = fc
      .tuple(spaced, fc.nat(), fc.nat({ max: 3 }), fc.constantFrom(...pieces))
      .map(([text, at, length, piece]) => {
        const from = at % (text.length + 1);
        return text.slice(0, from) + piece + text.slice(from + length);
      });
    await fc.assert(fc.asyncProperty(spoiled, fc.integer({ min: 1, max: 20 }), expectSame), {
      numRuns: 10_000,
    });
  });

  test("a number or a sign before an opened list is not taken for a part of it", async () => {
    for (const text of ['{"a":-[1,2,3]}', '{"a":1[1,2,3]}', "[1[2,3,4]]", '[-{"a":1,"b":2}]']) {
      expect(await outcome(() => parseInTurns(bytesOf(text), { pieceBytes: 1 }))).toBe("refused");
    }
  });

  test("tricks are refused in every piece and between pieces", async () => {
    const filler = Array.from({ length: 9_000 }, (_, at) => `"key-${at}":${at}`).join(",");
    const deep = (depth: number) => `${"[".repeat(depth)}1,2${"]".repeat(depth)}`;
    for (const text of [
      `{"key-1":0,${filler}}`,
      `{${filler},"key-8999":0}`,
      `{"x":1,"y":{${filler}},"x":2}`,
      `{"y":{${filler}},"y":[]}`,
      `{${filler},"__proto__":{}}`,
      `{"__proto__":{${filler}}}`,
      `{${filler},"z":${deep(NESTING_LIMIT)}}`,
      `{${filler}`,
      `{${filler}]`,
      `{${filler}} {}`,
      `{${filler},}`,
    ]) {
      expect(await outcome(() => parseInTurns(bytesOf(text)))).toBe("refused");
    }
    const good = bytesOf(`\ufeff{${filler},"z":${deep(NESTING_LIMIT - 1)},"t":"\\ud83d"}`);
    expect(await parseInTurns(good)).toEqual(parseStrictJson(good));
  });

  test("a list or an object has at most 10,000 elements, with one more the body is refused", async () => {
    const list = (length: number) => `{"x":[${Array(length).fill('"an element of a list"')}]}`;
    const object = (length: number) =>
      `{${Array.from({ length }, (_, at) => `"key-${at}":${at}`).join(",")}}`;
    for (const text of [list, object]) {
      const good = bytesOf(text(ELEMENTS_LIMIT));
      expect(await parseInTurns(good)).toEqual(parseStrictJson(good));
      expect(await outcome(() => parseInTurns(bytesOf(text(ELEMENTS_LIMIT + 1))))).toBe("refused");
    }
    expect(ELEMENTS_LIMIT).toBe(10_000);
  });

  test("a single value has at most 2 MiB, or the bytes given, and with one more the body is refused", async () => {
    const text = (size: number) => bytesOf(`{"x":"${"y".repeat(size - 2)}","z":1}`);
    expect(await outcome(() => parseInTurns(text(VALUE_LIMIT_BYTES)))).not.toBe("refused");
    expect(await outcome(() => parseInTurns(text(VALUE_LIMIT_BYTES + 1)))).toBe("refused");
    const limits = { valueBytes: 3_000_000 };
    expect(await outcome(() => parseInTurns(text(3_000_000), limits))).not.toBe("refused");
    expect(await outcome(() => parseInTurns(text(3_000_001), limits))).toBe("refused");
    expect(VALUE_LIMIT_BYTES).toBe(2_097_152);
  });

  test("more than 2 MiB of white space are refused in every place", async () => {
    const blanks = " ".repeat(VALUE_LIMIT_BYTES + 40_000);
    for (const text of [
      `${blanks}{"x":[{"y":1}]}`,
      `{${blanks}"x":[{"y":1}]}`,
      `{"x":[{"y":1}${blanks}]}`,
      `{"x":[{"y":1}]}${blanks}`,
    ]) {
      expect(await outcome(() => parseInTurns(bytesOf(text)))).toBe("refused");
    }
  });

  test("a text has escapes in its first 2 MiB only, with one behind them the body is refused", async () => {
    const limits = { valueBytes: 3 * ESCAPES_LIMIT_BYTES };
    const text = (before: number) =>
      bytesOf(`{"x":"${"y".repeat(before - 1)}\\n${"y".repeat(9)}"}`);
    expect(await outcome(() => parseInTurns(text(ESCAPES_LIMIT_BYTES), limits))).not.toBe(
      "refused",
    );
    expect(await outcome(() => parseInTurns(text(ESCAPES_LIMIT_BYTES + 1), limits))).toBe(
      "refused",
    );
    const plain = bytesOf(`{"x":"${"y".repeat(2 * ESCAPES_LIMIT_BYTES)}"}`);
    expect(await outcome(() => parseInTurns(plain, limits))).not.toBe("refused");
    expect(ESCAPES_LIMIT_BYTES).toBe(2_097_152);
  });

  test("an element of a list in the outer object has at most the bytes given, with one more it is too large", async () => {
    const element = (size: number) => `"${"x".repeat(size - 2)}"`;
    const list = (size: number) =>
      bytesOf(`{"other":1,"list":[${element(90_000)},${element(size)},${element(90_000)}]}`);
    const limits = { itemBytes: 100_000 };
    expect((await parseInTurns(list(100_000), limits)).hasSurrogateEscapes).toBe(false);
    expect(parseInTurns(list(100_001), limits)).rejects.toThrow(ItemTooLarge);
  });
});
