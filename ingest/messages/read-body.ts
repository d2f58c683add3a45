/** Reads a message: bytes as transmitted, inflated under the limit, signature checked, parsed (document 2). */
import { promisify } from "node:util";
import { gunzip, gunzipSync, type ZlibOptions } from "node:zlib";
import type { Courier } from "#core/configuration/store/configuration.ts";
import { BODY_LIMIT_BYTES } from "#core/events/rules/event.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { type BodyTerms, readBody } from "#core/platform/http/body/read-body.ts";
import { JsonFault, type ParsedJson } from "#core/platform/http/body/strict-json.ts";
import { nextTurn } from "#core/platform/process/next-turn.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import {
  SIGNATURE_TOLERANCE_MS,
  type SignatureVerdict,
  verifySignature,
  verifySignatureAside,
} from "#core/webhooks/rules/signature.ts";
import { parseMessage } from "./read-event-by-event.ts";

/**
 * 500 events of ordinary size are parsed at once, in 2 ms: turns cost a second look at every byte. An object of 19,000
 * different keys takes 11 ms.
 */
const AT_ONCE_BYTES = limit(
  256 * 1024,
  "couriers' messages parsed in one go",
  "parsed in pieces, between turns of the event loop",
);
/**
 * Compressed bytes that are inflated between two turns, in 8 ms at most; the thread pool inflates more. What they become says
 * nothing about the time: 5 MiB of blocks that hold a code and no data take 600 ms and become nothing.
 */
const INFLATED_AT_ONCE_BYTES = limit(
  64 * 1024,
  "compressed bytes inflated on the event loop",
  "inflated by the thread pool",
);
/** The signature of a larger body is verified by the thread pool; of this one it takes 0.2 ms. */
const HASHED_AT_ONCE_BYTES = limit(
  64 * 1024,
  "bytes of a body whose signature is verified on the event loop",
  "verified by the thread pool",
);
const UTF8_PARAMETER = /^(?:|charset="?utf-?8"?)$/;
/** Document 2, "Limits": read timeout. A large body has a second more for each 100 KiB, which is less than 1 Mbit/s. */
export const MESSAGE_TIME_LIMIT_MS = limit(
  10_000,
  "time for a courier's body to arrive",
  "503, and the connection is closed",
);
export const PER_SECOND_BYTES = limit(
  100 * 1024,
  "bytes of a courier's body that add a second to its time",
  "503, and the connection is closed",
);
/** Longer than the longest of these times, so that one who is too slow is answered. */
const KEPT_OPEN_SECONDS = 90;
const inflateAside = promisify<Uint8Array, ZlibOptions, Uint8Array>(gunzip);
export const SIGNATURE_HEADER = "x-service-signature";

/**
 * @param keepOpen lets the connection be silent for so many seconds
 * @throws {Problem} 415 wrong type or encoding, 413 too large, 400 truncated, 503 not received in time
 */
export async function readMessageBody(
  request: Request,
  keepOpen: (seconds: number) => void = () => {},
): Promise<Uint8Array> {
  if (!isJsonType(request.headers.get("content-type") ?? "")) {
    throw new Problem(415, "WRONG_CONTENT_TYPE", "Content-Type must be application/json, UTF-8.");
  }
  if (!["gzip", "identity"].includes(encodingOf(request))) {
    throw new Problem(415, "WRONG_CONTENT_ENCODING", "Content-Encoding must be gzip or absent.");
  }
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > PER_SECOND_BYTES && announced <= BODY_LIMIT_BYTES) keepOpen(KEPT_OPEN_SECONDS);
  return readBody(request, BODY_LIMIT_BYTES, COURIER_TERMS);
}

/** `application/json`, in UTF-8 if it says so; a semicolon may end it. */
export function isJsonType(text: string): boolean {
  if (text === "application/json") return true;
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  return type === "application/json" && parameters.every((one) => UTF8_PARAMETER.test(one));
}

/** For a body of a known size. */
export function timeLimitMs(bytes: number): number {
  return MESSAGE_TIME_LIMIT_MS + (bytes / PER_SECOND_BYTES) * 1_000;
}

/** Of the sender or the network, and yet no 4xx: senders retry only 5xx, and nothing is wrong with the message. */
function tooSlow(): Problem {
  const detail = "The body did not arrive in time.";
  return new Problem(503, "BODY_TOO_SLOW", detail, {
    headers: { "retry-after": "1", connection: "close" },
  });
}

function encodingOf(request: Request): string {
  return (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
}

/**
 * Document 2, "Authentication" 2 and 3: verified over the bytes as transmitted when present, required when the courier's
 * signing is mandatory.
 * @throws {Problem} 403
 */
export async function checkSignature(
  request: Request,
  body: Uint8Array,
  courier: Courier,
  vault: Vault,
  nowMs: number,
): Promise<void> {
  const header = request.headers.get(SIGNATURE_HEADER);
  if (header === null) {
    if (!courier.signatureRequired) return;
    throw new Problem(403, "SIGNATURE_REQUIRED", "This courier's messages must be signed.");
  }
  const secrets = courier.signingSecrets.map(vault.open);
  const verify = body.length > HASHED_AT_ONCE_BYTES ? verifySignatureAside : verifySignature;
  const verdict = await verify(header, secrets, body, nowMs);
  if (verdict !== "valid") {
    const isPacked = encodingOf(request) === "gzip";
    const advice = adviceOn(verdict, isPacked, nowMs);
    const detail = `The signature is not accepted: ${verdict}. ${advice}`;
    throw new Problem(403, "BAD_SIGNATURE", detail);
  }
}

/** What its sender should look at first. */
function adviceOn(
  verdict: Exclude<SignatureVerdict, "valid">,
  isPacked: boolean,
  nowMs: number,
): string {
  const minutes = SIGNATURE_TOLERANCE_MS / 60_000;
  const time = `Our time is ${new Date(nowMs).toISOString()}, t=${Math.floor(nowMs / 1000)}`;
  switch (verdict) {
    case "malformed":
      return "The header has the form `t=<seconds since 1970>,v1=<HMAC-SHA256 in hexadecimal>`.";
    case "expired":
      return `${time}: t must be within ${minutes} minutes of it.`;
    case "mismatch":
      return `Sign t, a full stop and the ${isPacked ? "compressed bytes" : "bytes"} as transmitted, with the secret as it was issued. ${time}.`;
  }
}

/**
 * A body that the strict reader refuses is read once more, event by event.
 * @throws {Problem} 413 over the limit once inflated, 400 no gzip, or no message that can be cut into events
 */
export async function parseBody(request: Request, body: Uint8Array): Promise<ParsedJson> {
  const plain = encodingOf(request) === "gzip" ? await inflate(body) : body;
  // What came before has taken its time too.
  if (plain.length > AT_ONCE_BYTES) await nextTurn();
  try {
    return await parseMessage(plain, { atOnceBytes: AT_ONCE_BYTES });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new Problem(400, "MALFORMED_BODY", error.message);
  }
}

/** Stops at the limit: what a bomb would become never reaches memory. */
async function inflate(body: Uint8Array): Promise<Uint8Array> {
  const limit = { maxOutputLength: BODY_LIMIT_BYTES };
  try {
    if (body.length <= INFLATED_AT_ONCE_BYTES) return gunzipSync(body, limit);
    return await inflateAside(body, limit);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw new Problem(400, "MALFORMED_BODY", "The body is not valid gzip.");
  }
}

function tooLarge(): Problem {
  const detail = `At most ${BODY_LIMIT_BYTES} bytes uncompressed; split the message.`;
  return new Problem(413, "BODY_TOO_LARGE", detail);
}

export const COURIER_TERMS: BodyTerms = { timeLimitMs, tooLarge, tooSlow };
