/** Reads a message: bytes as transmitted, inflated under the limit, signature checked, parsed (document 2). */
import { promisify } from "node:util";
import { gunzip, gunzipSync, type ZlibOptions } from "node:zlib";
import { BODY_LIMIT_BYTES } from "#core/domain/event.ts";
import { verifySignature } from "#core/domain/signature.ts";
import { parseInTurns } from "#core/http/parse-in-turns.ts";
import { readBounded } from "#core/http/read-bounded.ts";
import { JsonFault, type ParsedJson } from "#core/http/strict-json.ts";
import { nextTurn } from "#core/next-turn.ts";
import { Problem } from "#core/problem.ts";
import type { Courier } from "#core/redis/configuration.ts";
import type { Vault } from "#core/secrets.ts";
import { readEventByEvent } from "#ingest/read-event-by-event.ts";

/** 500 events of ordinary size are parsed at once: turns cost a second look at every byte. */
const AT_ONCE_BYTES = 512 * 1024;
/**
 * Compressed bytes that are inflated between two turns, in 8 ms at most; the thread pool inflates more. What they become says
 * nothing about the time: 5 MiB of blocks that hold a code and no data take 600 ms and become nothing.
 */
const INFLATED_AT_ONCE_BYTES = 64 * 1024;
/** No two parts that both take blanks stand side by side: a header of 16 KB full of them would be tried for half a second. */
const JSON_TYPE = /^application\/json(?: *; *charset="?utf-8"?)? *$/i;
const inflateAside = promisify<Uint8Array, ZlibOptions, Uint8Array>(gunzip);
const SIGNATURE_HEADER = "x-service-signature";

/** @throws {Problem} 415 wrong type or encoding, 413 too large */
export async function readBody(request: Request): Promise<Uint8Array> {
  const type = request.headers.get("content-type") ?? "";
  if (!JSON_TYPE.test(type)) {
    throw new Problem(415, "WRONG_CONTENT_TYPE", "Content-Type must be application/json, UTF-8.");
  }
  if (!["gzip", "identity"].includes(encodingOf(request))) {
    throw new Problem(415, "WRONG_CONTENT_ENCODING", "Content-Encoding must be gzip or absent.");
  }
  if (Number(request.headers.get("content-length") ?? 0) > BODY_LIMIT_BYTES) throw tooLarge();
  if (request.headers.has("content-length")) return new Uint8Array(await request.arrayBuffer());
  const body = await readBounded(request, BODY_LIMIT_BYTES);
  if (body === null) throw tooLarge();
  return body;
}

function encodingOf(request: Request): string {
  return (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
}

/**
 * Document 2, "Authentication" 2 and 3: verified over the bytes as transmitted when present, required when the courier's
 * signing is mandatory.
 * @throws {Problem} 403
 */
export function checkSignature(
  request: Request,
  body: Uint8Array,
  courier: Courier,
  vault: Vault,
  nowMs: number,
): void {
  const header = request.headers.get(SIGNATURE_HEADER);
  if (header === null) {
    if (!courier.signatureRequired) return;
    throw new Problem(403, "SIGNATURE_REQUIRED", "This courier's messages must be signed.");
  }
  const secrets = courier.signingSecrets.map(vault.open);
  const verdict = verifySignature(header, secrets, body, nowMs);
  if (verdict !== "valid") {
    throw new Problem(403, "BAD_SIGNATURE", `The signature is not accepted: ${verdict}.`);
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
    return await parseInTurns(plain, { atOnceBytes: AT_ONCE_BYTES }).catch((error) => {
      if (error instanceof JsonFault) return readEventByEvent(plain);
      throw error;
    });
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
