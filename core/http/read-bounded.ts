/** Reads a body of unknown length under a limit: what exceeds it never reaches memory. */

/** @returns null for a body of more than `limitBytes`; the rest of it is not read */
export async function readBounded(
  { body }: Request | Response,
  limitBytes: number,
): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > limitBytes) {
      await reader.cancel();
      return null;
    }
    chunks.push(value);
  }
  return Buffer.concat(chunks);
}
