/**
 * The signature scheme that documents 2 and 3 share: `t=<unix_seconds>,v1=<hex>`, where v1 is the lowercase
 * hex HMAC-SHA256 of `<t>.<raw body>` keyed with the secret exactly as issued.
 */
import { timingSafeEqual } from "node:crypto";

/** Documents 2 and 3, "Limits": signature clock tolerance, both ways. */
export const SIGNATURE_TOLERANCE_MS = 5 * 60_000;
/** More `v1` values than any rotation needs are not read. */
const SIGNATURES_READ = 8;

function hmac(secret: string, timestamp: string, body: Uint8Array | string): Buffer {
  const hasher = new Bun.CryptoHasher("sha256", secret);
  return hasher.update(`${timestamp}.`).update(body).digest();
}

/** Header value for a body sent at `nowMs`; one `v1` per secret, the newest secret first. */
export function sign(secrets: readonly string[], body: Uint8Array | string, nowMs: number): string {
  const t = String(Math.floor(nowMs / 1000));
  const values = secrets.map((secret) => `v1=${hmac(secret, t, body).toString("hex")}`);
  return [`t=${t}`, ...values].join(",");
}

export type SignatureVerdict = "valid" | "malformed" | "expired" | "mismatch";

/** Judges a header over the bytes as transmitted. Every secret is tried against every `v1`, in constant time each. */
export function verifySignature(
  header: string,
  secrets: readonly string[],
  body: Uint8Array,
  nowMs: number,
): SignatureVerdict {
  let t: string | undefined;
  const given: Buffer[] = [];
  for (const part of header.split(",")) {
    const [key, value = ""] = part.trim().split("=", 2);
    if (key === "t" && /^\d{1,12}$/.test(value)) t ??= value;
    if (key === "v1" && /^[0-9a-fA-F]{64}$/.test(value) && given.length < SIGNATURES_READ) {
      given.push(Buffer.from(value, "hex"));
    }
  }
  if (t === undefined || given.length === 0) return "malformed";
  if (Math.abs(nowMs - Number(t) * 1000) > SIGNATURE_TOLERANCE_MS) return "expired";
  let valid = false;
  for (const secret of secrets) {
    const expected = hmac(secret, t, body);
    for (const value of given) if (timingSafeEqual(expected, value)) valid = true;
  }
  return valid ? "valid" : "mismatch";
}
