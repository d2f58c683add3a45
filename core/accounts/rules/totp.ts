/** Time-based one-time passwords (RFC 6238 with HMAC-SHA-1, 6 digits, 30 s), as every authenticator app makes them. */
import { createHmac, timingSafeEqual } from "node:crypto";

const STEP_MS = 30_000;
const DIGITS = 6;
/** Steps before and after the present one whose codes are accepted: clocks differ, and people type slowly. */
const WINDOW = 1;
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** How long a code is accepted from the first to the last moment, milliseconds. */
export const TOTP_LIFE_MS = (2 * WINDOW + 1) * STEP_MS;

/** Of a time step since 1970. */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac("sha1", secret).update(counter).digest();
  const offset = (digest.at(-1) ?? 0) & 0x0f;
  const number = digest.readUInt32BE(offset) & 0x7fffffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, "0");
}

/** @returns the time step that the code belongs to, so that it can be refused a second time; null = wrong */
export function totpStepOf(secret: Uint8Array, code: string, nowMs: number): number | null {
  if (!/^\d{6}$/.test(code)) return null;
  const present = Math.floor(nowMs / STEP_MS);
  for (let step = present - WINDOW; step <= present + WINDOW; step += 1) {
    if (timingSafeEqual(Buffer.from(totpCode(secret, step)), Buffer.from(code))) return step;
  }
  return null;
}

/** RFC 4648, without padding: how authenticator apps take secrets. */
export function base32(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += BASE32[(value >>> (bits - 5)) & 31];
    value &= 0xff;
  }
  return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text;
}

/** What authenticator apps read from a QR code. */
export function otpauthUrl(secret: Uint8Array, account: string): string {
  const label = `Waybill:${encodeURIComponent(account)}`;
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=Waybill&algorithm=SHA1&digits=${DIGITS}&period=${STEP_MS / 1000}`;
}
