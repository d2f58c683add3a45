import { describe, expect, test } from "bun:test";
import { sign, verifySignature, verifySignatureAside } from "#core/webhooks/rules/signature.ts";

describe("signature (documents 2 and 3)", () => {
  const body = new TextEncoder().encode('{"a":1}');
  const now = 1_800_000_000_000;

  test("is t and one v1 a secret, newest first, and verifies with either", () => {
    const header = sign(["new", "old"], body, now);
    expect(header).toMatch(/^t=1800000000,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
    for (const secret of ["new", "old"]) {
      expect(verifySignature(header, [secret], body, now)).toBe("valid");
    }
    expect(verifySignature(header, ["other"], body, now)).toBe("mismatch");
  });

  test("is judged alike by the event loop and by the thread pool", async () => {
    const large = new Uint8Array(300_000).fill(97);
    const header = sign(["new", "old"], large, now);
    for (const [text, secrets, atMs] of [
      [header, ["old"], now],
      [header, ["other", "new"], now],
      [header, ["other"], now],
      [header, [], now],
      [header, ["new"], now + 301_000],
      ["t=1", ["new"], now],
    ] as const) {
      const verdict = verifySignature(text, secrets, large, atMs);
      expect(await verifySignatureAside(text, secrets, large, atMs)).toBe(verdict);
    }
    expect(await verifySignatureAside(header, ["new"], large.fill(98, -1), now)).toBe("mismatch");
  });

  test("is refused when malformed", () => {
    for (const text of ["", "t=1", "v1=00", `t=x,v1=${"0".repeat(64)}`]) {
      expect(verifySignature(text, ["s"], body, now)).toBe("malformed");
    }
  });
});
