/**
 * Words of archived shipments: encrypted so that the same word of a company is the same bytes wherever it stands, since only then
 * do neighbours pack well. Who reads the table learns which rows share a word, and no word.
 *
 * Each is AES-256-CTR under an initial counter block that begins with a keyed hash of the word itself, as in SIV mode: two words
 * never share a key stream, and the hash proves the word when it is read.
 */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

const HASH_BYTES = 12;
const COUNTER_BYTES = 16;
const LENGTH_BYTES = 2;
/** A longer text is no word (`core/archive/store/archived-parts.ts`). */
const LENGTH_LIMIT = 2 ** (8 * LENGTH_BYTES);
/** Words of a process; at the limit it starts over. */
const REMEMBERED_WORDS = 20_000;
const remembered = new WeakMap<Buffer, Map<string, Buffer>>();

/** @param key of the company, the same object each time */
export function sealWords(key: Buffer, words: readonly string[]): Buffer {
  const known = remembered.get(key) ?? new Map<string, Buffer>();
  remembered.set(key, known);
  return Buffer.concat(
    words.map((word) => {
      const before = known.get(word);
      if (before) return before;
      if (known.size >= REMEMBERED_WORDS) known.clear();
      const bytes = sealWord(key, word);
      known.set(word, bytes);
      return bytes;
    }),
  );
}

/** Length, hash, text. */
function sealWord(key: Buffer, word: string): Buffer {
  const text = Buffer.from(word);
  if (text.length >= LENGTH_LIMIT) throw new RangeError("a word is too long");
  const hash = hashOf(key, text);
  const cipher = createCipheriv("aes-256-ctr", key, counterOf(hash));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16LE(text.length);
  return Buffer.concat([length, hash, cipher.update(text), cipher.final()]);
}

/** @throws when the bytes were not sealed by us */
export function openWords(key: Buffer, bytes: Buffer): string[] {
  const words: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const from = at + LENGTH_BYTES + HASH_BYTES;
    const end = from + bytes.readUInt16LE(at);
    const hash = bytes.subarray(at + LENGTH_BYTES, from);
    const decipher = createDecipheriv("aes-256-ctr", key, counterOf(hash));
    const text = Buffer.concat([decipher.update(bytes.subarray(from, end)), decipher.final()]);
    if (!hashOf(key, text).equals(hash)) throw new Error("a word was not sealed for this company");
    words.push(text.toString());
    at = end;
  }
  return words;
}

function counterOf(hash: Buffer): Buffer {
  return Buffer.concat([hash], COUNTER_BYTES);
}

/** Its own purpose keeps the hash and the key stream apart. */
function hashOf(key: Buffer, text: Buffer): Buffer {
  const hash = createHmac("sha256", key).update("word ").update(text).digest();
  return hash.subarray(0, HASH_BYTES);
}
