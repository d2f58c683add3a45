/**
 * The signature scheme that documents 2 and 3 share: `t=<unix_seconds>,v1=<hex>`, where v1 is the lowercase
 * hex HMAC-SHA256 of `<t>.<raw body>` keyed with the secret exactly as issued.
 */
import { timingSafeEqual } from "node:crypto";

/** Documents 2 and 3, "Limits": signature clock tolerance, both ways. */
export const SIGNATURE_TOLERANCE_MS = 5 * 60_000;
/** More `v1` values than any rotation needs are not read. */
export const SIGNATURES_READ = 8;

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

/** The signatures of a header, and the time that they were made at. */
interface Given {
  readonly timestamp: string;
  readonly signatures: readonly Buffer[];
}

/** Judges a header over the bytes as transmitted. Every secret is tried against every `v1`, in constant time each. */
export function verifySignature(
  header: string,
  secrets: readonly string[],
  body: Uint8Array,
  nowMs: number,
): SignatureVerdict {
  const given = readHeader(header, nowMs);
  if (typeof given === "string") return given;
  return compare(
    given,
    secrets.map((secret) => hmac(secret, given.timestamp, body)),
  );
}

/** The same for a large body: the thread pool hashes it, at 1 ms for 300 KB. */
export async function verifySignatureAside(
  header: string,
  secrets: readonly string[],
  body: Uint8Array,
  nowMs: number,
): Promise<SignatureVerdict> {
  const given = readHeader(header, nowMs);
  if (typeof given === "string") return given;
  const signed = Buffer.concat([Buffer.from(`${given.timestamp}.`), body]);
  return compare(given, await Promise.all(secrets.map((secret) => hmacAside(secret, signed))));
}

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

async function hmacAside(secret: string, signed: Buffer<ArrayBuffer>): Promise<Buffer> {
  const key = await crypto.subtle.importKey("raw", Buffer.from(secret), HMAC, false, ["sign"]);
  return Buffer.from(await crypto.subtle.sign("HMAC", key, signed));
}

function readHeader(header: string, nowMs: number): Given | "malformed" | "expired" {
  let timestamp: string | undefined;
  const signatures: Buffer[] = [];
  for (const part of header.split(",")) {
    const [key, value = ""] = part.trim().split("=", 2);
    if (key === "t" && /^\d{1,12}$/.test(value)) timestamp ??= value;
    if (key === "v1" && /^[0-9a-fA-F]{64}$/.test(value) && signatures.length < SIGNATURES_READ) {
      signatures.push(Buffer.from(value, "hex"));
    }
  }
  if (timestamp === undefined || signatures.length === 0) return "malformed";
  const isExpired = Math.abs(nowMs - Number(timestamp) * 1000) > SIGNATURE_TOLERANCE_MS;
  return isExpired ? "expired" : { timestamp, signatures };
}

function compare({ signatures }: Given, expected: readonly Buffer[]): SignatureVerdict {
  let isValid = false;
  for (const one of expected) {
    for (const value of signatures) if (timingSafeEqual(one, value)) isValid = true;
  }
  return isValid ? "valid" : "mismatch";
}
