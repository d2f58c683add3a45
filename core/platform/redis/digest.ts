/** SHA-256 of short texts, for keys and ids. */

/** Hashing is synchronous: one buffer for the result serves all. */
const digest = Buffer.alloc(32);

/** @returns 32 bytes, to be read before the next call */
export function digestOf(text: string): Buffer {
  Bun.SHA256.hash(text, digest);
  return digest;
}
