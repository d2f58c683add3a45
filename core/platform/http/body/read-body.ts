/** Reads bodies within limits on their size and the time they take, before anything interprets them. */
import { Problem } from "#core/platform/errors/problem.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { inTime } from "./arriving.ts";

/** Enough for the largest body at about 4 Mbit/s. Without it a slow sender could hold its request open for ever. */
const BODY_TIME_LIMIT_MS = limit(60_000, "time for a body to arrive (merchant API, panel)", "408");
/** Read at once, since parts take twice as long; a larger body is put together in turns. */
const WHOLE_BYTES = limit(
  5 * 1024 * 1024,
  "bodies of a known size that are read at once",
  "read in parts, between turns of the event loop",
);

export interface BodyReader {
  readonly read: () => Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  readonly cancel: () => Promise<void>;
}

/** What a port allows, and what it answers where that is not kept. */
export interface BodyTerms {
  /** For a body of so many bytes; for none, how long one of unknown size may be silent. */
  readonly timeLimitMs: (bytes: number) => number;
  readonly tooLarge: (limitBytes: number) => Problem;
  readonly tooSlow: () => Problem;
}

export const BODY_TERMS: BodyTerms = {
  timeLimitMs: () => BODY_TIME_LIMIT_MS,
  tooLarge: (limitBytes) => new Problem(413, "BODY_TOO_LARGE", `At most ${limitBytes} bytes.`),
  tooSlow() {
    const detail = `The body did not arrive within ${BODY_TIME_LIMIT_MS / 1000} s.`;
    return new Problem(408, "BODY_TOO_SLOW", detail, { headers: { connection: "close" } });
  },
};

/** Of requests whose body was read before their handler asks for it. */
const kept = new WeakMap<Request, Uint8Array>();

/** For the handler, after the body was read. */
export function keepBody(request: Request, bytes: Uint8Array): void {
  kept.set(request, bytes);
}

/**
 * The limit applies to the bytes received, whatever `Content-Length` says. A body that announces more is refused unread.
 * @returns empty for a request without a body
 * @throws {Problem} too large, too slow, 503 the process stops, 400 truncated
 */
export async function readBody(
  request: Request,
  limitBytes: number,
  terms: BodyTerms = BODY_TERMS,
): Promise<Uint8Array> {
  const announced = request.headers.get("content-length");
  const bytes = announced === null ? Number.POSITIVE_INFINITY : Number(announced);
  if (announced !== null && bytes > limitBytes) throw terms.tooLarge(limitBytes);
  const reading =
    kept.get(request) ??
    (bytes <= WHOLE_BYTES
      ? inTime(request.bytes(), terms.timeLimitMs(bytes), terms.tooSlow)
      : readInParts(request, limitBytes, terms));
  try {
    const body = await reading;
    if (body === null || body.length > limitBytes) throw terms.tooLarge(limitBytes);
    return body;
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(400, "MALFORMED_BODY", "The body is truncated.");
  }
}

async function readInParts(
  request: Request,
  limitBytes: number,
  terms: BodyTerms,
): Promise<Uint8Array | null> {
  const reader = request.body?.getReader();
  if (!reader) return new Uint8Array();
  const untilMs = performance.now() + terms.timeLimitMs(limitBytes);
  const silenceMs = terms.timeLimitMs(0);
  const read = () => {
    const leftMs = Math.max(0, untilMs - performance.now());
    return inTime(reader.read(), Math.min(silenceMs, leftMs), terms.tooSlow);
  };
  try {
    return await readAll({ read, cancel: () => reader.cancel() }, limitBytes);
  } catch (error) {
    void reader.cancel().catch(() => {});
    throw error;
  }
}

/** @returns null for a body of more than `limitBytes`; the rest of it is not read */
export async function readBounded(
  { body }: Pick<Response, "body">,
  limitBytes: number,
): Promise<Uint8Array | null> {
  const reader = body?.getReader();
  return reader ? readAll(reader, limitBytes) : new Uint8Array();
}

/** @returns null if it is longer; what exceeds the limit never reaches memory */
async function readAll(reader: BodyReader, limitBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done || !value) return joined(chunks, size);
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
