/** Reads a body of unknown length under a limit: what exceeds it never reaches memory. */
import { turns } from "#core/platform/process/next-turn.ts";

export type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** @returns null for a body of more than `limitBytes`; the rest of it is not read */
export async function readBounded(
  { body }: Pick<Request | Response, "body">,
  limitBytes: number,
): Promise<Uint8Array | null> {
  const reader = body?.getReader();
  return reader ? readAll(reader, limitBytes) : new Uint8Array();
}

/** @returns null if it is longer; the rest is not read */
export async function readAll(reader: BodyReader, limitBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joined(chunks, size);
    size += value.byteLength;
    if (size > limitBytes) {
      await reader.cancel();
      return null;
    }
    chunks.push(value);
  }
}

/** In turns: to copy 30 MB at once takes 30 to 40 ms. */
async function joined(chunks: readonly Uint8Array[], size: number): Promise<Uint8Array> {
  const whole = Buffer.allocUnsafeSlow(size);
  const turn = turns();
  let at = 0;
  for (const chunk of chunks) {
    if (turn.due()) await turn.take();
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
