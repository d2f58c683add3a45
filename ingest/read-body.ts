/** Reads a message: bytes as transmitted, inflated under the limit, signature checked, parsed (document 2). */
import { gunzipSync } from "node:zlib";
import { BODY_LIMIT_BYTES } from "#core/domain/event.ts";
import { verifySignature } from "#core/domain/signature.ts";
import { parseInTurns } from "#core/http/parse-in-turns.ts";
import { readBounded } from "#core/http/read-bounded.ts";
import { JsonFault, type ParsedJson } from "#core/http/strict-json.ts";
import { nextTurn } from "#core/next-turn.ts";
import { Problem } from "#core/problem.ts";
import type { Courier } from "#core/redis/configuration.ts";
import type { Vault } from "#core/secrets.ts";

/** Enough for 500 events of ordinary size in one go: parsing in turns scans every byte twice. */
const AT_ONCE_BYTES = 512 * 1024;
const SIGNATURE_HEADER = "x-service-signature";

/** @throws {Problem} 415 wrong type or encoding, 413 too large */
export async function readBody(request: Request): Promise<Uint8Array> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json *(; *charset="?utf-8"?)? *$/i.test(type)) {
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

/** @throws {Problem} 413 over the limit once inflated, 400 no gzip, no UTF-8, no JSON or JSON with tricks */
export async function parseBody(request: Request, body: Uint8Array): Promise<ParsedJson> {
  const plain = encodingOf(request) === "gzip" ? inflate(body) : body;
  // The code before this has used part of the turn already.
  if (plain.length > AT_ONCE_BYTES) await nextTurn();
  try {
    return await parseInTurns(plain, { atOnceBytes: AT_ONCE_BYTES });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new Problem(400, "MALFORMED_BODY", error.message);
  }
}

/** Stops at the limit: what a bomb would become never reaches memory. */
function inflate(body: Uint8Array): Uint8Array {
  try {
    return gunzipSync(body, { maxOutputLength: BODY_LIMIT_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw new Problem(400, "MALFORMED_BODY", "The body is not valid gzip.");
  }
}

function tooLarge(): Problem {
  const detail = `At most ${BODY_LIMIT_BYTES} bytes uncompressed; split the message.`;
  return new Problem(413, "BODY_TOO_LARGE", detail);
}
