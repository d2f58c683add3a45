/** Reads what a receiver has answered where the HTTP parser of the platform does not: compressed bodies, and heads that it refuses. */
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  constants as zlib,
} from "node:zlib";

/**
 * The text of a body that was compressed although `identity` was asked for.
 * @param bytes what was read of it; it may be cut off
 * @returns the first `limitBytes` of it; the bytes as they came where they are not of that coding
 */
export async function inflated(bytes: Buffer, coding: string, limitBytes: number): Promise<Buffer> {
  const inflater = inflaterOf(coding.trim().toLowerCase(), bytes);
  if (inflater === null || bytes.length === 0) return bytes;
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    inflater.end(bytes);
    for await (const chunk of inflater) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= limitBytes) break;
    }
  } catch {
    if (length === 0) return bytes;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes);
}

function inflaterOf(coding: string, bytes: Buffer) {
  // A body that is cut off ends without an error.
  const options = { finishFlush: zlib.Z_SYNC_FLUSH };
  if (coding === "gzip" || coding === "x-gzip") return createGunzip(options);
  if (coding === "deflate")
    return hasZlibHead(bytes) ? createInflate(options) : createInflateRaw(options);
  if (coding === "br") return createBrotliDecompress({ finishFlush: zlib.BROTLI_OPERATION_FLUSH });
  return null;
}

/** `deflate` means the format of zlib (RFC 9110); some servers send bare deflate. */
function hasZlibHead(bytes: Buffer): boolean {
  const head = bytes.length < 2 ? 0 : bytes.readUInt16BE(0);
  return (head >> 8) % 16 === 8 && head % 31 === 0;
}

export interface AnswerHead {
  readonly httpStatus: number;
  /** What followed the head; empty where its end has not come. */
  readonly body: Buffer;
}

const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: [^\n]*)?\r?\n/;
const HEAD_END = /\r?\n\r?\n/;

/**
 * The final status line at the beginning of what a connection has brought, whatever follows it.
 * @returns null if there is none that is complete
 */
export function readHead(received: Buffer): AnswerHead | null {
  // One byte is one character, so that places in the text are places in the bytes.
  let text = received.toString("latin1");
  for (;;) {
    const status = Number(STATUS_LINE.exec(text)?.[1] ?? 0);
    if (status === 0) return null;
    const end = HEAD_END.exec(text);
    const rest = end === null ? "" : text.slice(end.index + end[0].length);
    if (status >= 200) return { httpStatus: status, body: Buffer.from(rest, "latin1") };
    // An interim answer, such as 100: the final one follows.
    text = rest;
  }
}
