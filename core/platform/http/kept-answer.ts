/** The form in which an answer is kept for repetitions under an `Idempotency-Key`. */
import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import { limit } from "#core/platform/schema/limit.ts";

const pack = promisify(deflateRaw);
const unpack = promisify<Buffer, Buffer>(inflateRaw);

const PACKED_FROM_CHARACTERS = limit(
  4_096,
  "length of an answer that is kept compressed, from",
  "a shorter one is kept as it is",
);
/** Begins no JSON text. */
const PACKED = "z";

/** @param json text of an object */
export async function packAnswer(json: string): Promise<string> {
  if (json.length < PACKED_FROM_CHARACTERS) return json;
  return PACKED + (await pack(json)).toString("base64");
}

/** @returns what `packAnswer` was given */
export async function unpackAnswer(kept: string): Promise<string> {
  if (!kept.startsWith(PACKED)) return kept;
  return (await unpack(Buffer.from(kept.slice(PACKED.length), "base64"))).toString();
}
