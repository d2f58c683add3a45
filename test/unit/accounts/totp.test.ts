/** Second factors: the vectors of RFC 6238 and RFC 4648, and the window in which a code counts. */
import { describe, expect, test } from "bun:test";
import { base32, otpauthUrl, totpCode, totpStepOf } from "#core/accounts/rules/totp.ts";

const SECRET = Buffer.from("12345678901234567890");

describe("one-time codes", () => {
  test.each([
    [59, "287082"],
    [1_111_111_109, "081804"],
    [1_111_111_111, "050471"],
    [1_234_567_890, "005924"],
    [2_000_000_000, "279037"],
    [20_000_000_000, "353130"],
  ])("at %d s the code is the last six digits of RFC 6238's: %s", (seconds, code) => {
    expect(totpCode(SECRET, Math.floor(seconds / 30))).toBe(code);
    expect(totpStepOf(SECRET, code, seconds * 1_000)).toBe(Math.floor(seconds / 30));
  });

  test("a code counts one step before and after its own, not two", () => {
    const step = 1_000;
    const code = totpCode(SECRET, step);
    const found = [-2, -1, 0, 1, 2].map((by) => totpStepOf(SECRET, code, (step + by) * 30_000));
    expect(found).toEqual([null, step, step, step, null]);
  });

  test("six digits and nothing else are a code", () => {
    const code = totpCode(SECRET, 0);
    for (const text of ["", "28708", ` ${code}`, `${code}0`, "abcdef", "٢٨٧٠٨٢"]) {
      expect(totpStepOf(SECRET, text, 0)).toBeNull();
    }
  });
});

describe("the secret for the authenticator app", () => {
  test.each([
    ["", ""],
    ["f", "MY"],
    ["fo", "MZXQ"],
    ["foo", "MZXW6"],
    ["foob", "MZXW6YQ"],
    ["fooba", "MZXW6YTB"],
    ["foobar", "MZXW6YTBOI"],
  ])("base32 of %j is RFC 4648's without padding: %s", (text, encoded) => {
    expect(base32(Buffer.from(text))).toBe(encoded);
  });

  test("the address names the account and carries the secret", () => {
    const url = new URL(otpauthUrl(SECRET, "ann+1@acme.test"));
    expect(url.protocol).toBe("otpauth:");
    expect(decodeURIComponent(url.pathname)).toEndWith("Waybill:ann+1@acme.test");
    expect(url.searchParams.get("secret")).toBe(base32(SECRET));
  });
});
