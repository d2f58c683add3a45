/** Client certificates (document 2, "Authentication" 5): what counts as the same name and fingerprint. */
import { describe, expect, test } from "bun:test";
import {
  canonicalSubject,
  certificateMatches,
  plainFingerprint,
} from "#core/platform/network/client-certificate.ts";

describe("subjects", () => {
  test("are the same in any order, on lines or between commas, whatever the case of types", () => {
    const forms = [
      "C=IT\nO=GLS\\, Italy\nCN=push.gls.test",
      "CN=push.gls.test, O=GLS\\, Italy, C=IT",
      "cn = push.gls.test,o=GLS\\, Italy,c=IT",
    ];
    expect(new Set(forms.map(canonicalSubject)).size).toBe(1);
  });

  test("a part without a type, or with an empty one, stays what it is", () => {
    expect(canonicalSubject(" push.gls.test ,CN=a")).toBe("CN=a,push.gls.test");
    expect(canonicalSubject("= a")).toBe("=a");
  });

  test("a value cannot pretend to be another part", () => {
    const split = canonicalSubject("CN=a,O=b");
    expect(canonicalSubject("CN=a\\,O=b")).not.toBe(split);
    expect(canonicalSubject("CN=A,O=b")).not.toBe(split);
    expect(canonicalSubject("CN=a,O=b,O=b")).not.toBe(split);
  });
});

describe("a subject as long as a header may be", () => {
  test("is compared at once, whatever stands in it", () => {
    for (const text of [`a${" ".repeat(15_000)}b`, "=".repeat(15_000), "\\".repeat(15_000)]) {
      // The fastest of some: another process may hold any of them up.
      const took = Array.from({ length: 5 }, () => {
        const start = performance.now();
        canonicalSubject(text);
        return performance.now() - start;
      });
      expect(Math.min(...took)).toBeLessThan(20);
    }
  });
});

describe("a certificate matches", () => {
  const fingerprint = plainFingerprint("AB:".repeat(31).concat("AB"));
  const bound = { fingerprints: [fingerprint], subjects: [canonicalSubject("CN=a,O=b")] };

  test("by fingerprint or by subject, and not when it tells neither", () => {
    expect(certificateMatches({ fingerprint: "ab".repeat(32), subject: null }, bound)).toBe(true);
    expect(certificateMatches({ fingerprint: null, subject: "CN=a,O=b" }, bound)).toBe(true);
    expect(certificateMatches({ fingerprint: "00", subject: "CN=a" }, bound)).toBe(false);
    expect(certificateMatches({ fingerprint: null, subject: null }, bound)).toBe(false);
    expect(certificateMatches(null, bound)).toBe(false);
  });
});
