import { describe, expect, test } from "bun:test";
import { createDeflater, createInflater, hasKeptStreams } from "#core/platform/redis/deflate.ts";

describe("a kept stream", () => {
  const options = { dictionary: Buffer.from('"status":"IN_TRANSIT"'), level: 4 };
  const deflate = createDeflater(options);
  const inflate = createInflater(options);

  test("is what the pinned Bun lets us keep", () => {
    expect(hasKeptStreams()).toBe(true);
  });

  test("packs and unpacks texts of any length one after the other", () => {
    for (const length of [0, 1, 300, 5_000, 100_000, 400_000, 3, 1_000_000, 40]) {
      const text = Array.from({ length: length / 10 }, (_, n) => `à${n}`.padEnd(10, "z")).join("");
      const bytes = deflate(text, 9);
      expect([bytes[0], inflate(bytes, 1) === text]).toEqual([9, true]);
    }
  });

  test("refuses damaged bytes and works on", () => {
    const bytes = deflate("some text that is long enough to be packed, and packed again", 1);
    expect(() => inflate(bytes.subarray(0, bytes.length - 8), 1)).toThrow();
    expect(() => inflate(Buffer.of(1, 255, 255, 255, 255, 255), 1)).toThrow();
    expect(inflate(bytes, 1)).toStartWith("some text");
  });
});
