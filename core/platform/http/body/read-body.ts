/** Reads the body of a request, within limits on its size and the time it takes, before anything interprets it. */
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { inTime } from "./arriving.ts";
import { type BodyReader, readAll } from "./read-bounded.ts";

/** Enough for the largest body at about 4 Mbit/s. Without it a slow sender could hold its request open for ever. */
const BODY_TIME_LIMIT_MS = limit(60_000, "time for a body to arrive (merchant API, panel)", "408");

/** Of requests whose body was read before their handler asks for it. */
const kept = new WeakMap<Request, Uint8Array>();

/** For the handler, after the body was read. */
export function keepBody(request: Request, bytes: Uint8Array): void {
  kept.set(request, bytes);
}

/**
 * The limit applies to the bytes received, whatever `Content-Length` says. A body that announces more is refused unread.
 * @returns empty for a request without a body
 * @throws {Problem} 413 more than `limitBytes`, 408 not received in time, 503 the process stops, 400 truncated
 */
export async function readBody(
  request: Request,
  limitBytes: number,
  timeLimitMs = BODY_TIME_LIMIT_MS,
): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > limitBytes) {
    throw bodyTooLarge(limitBytes);
  }
  const before = kept.get(request);
  if (before) {
    if (before.length > limitBytes) throw bodyTooLarge(limitBytes);
    return before;
  }
  const reader = request.body?.getReader();
  if (!reader) return new Uint8Array();
  const late = () => bodyTooSlow(timeLimitMs);
  const body = await inTime(read(reader, limitBytes), timeLimitMs, late).catch((error) => {
    void reader.cancel().catch(() => {});
    throw error;
  });
  if (body === null) throw bodyTooLarge(limitBytes);
  return body;
}

/** @throws {Problem} 400 */
async function read(reader: BodyReader, limitBytes: number): Promise<Uint8Array | null> {
  try {
    return await readAll(reader, limitBytes);
  } catch {
    throw new Problem(400, "MALFORMED_BODY", "The body is truncated.");
  }
}

function bodyTooLarge(limitBytes: number): Problem {
  return new Problem(413, "BODY_TOO_LARGE", `At most ${limitBytes} bytes.`);
}

function bodyTooSlow(timeLimitMs: number): Problem {
  const detail = `The body did not arrive within ${timeLimitMs / 1000} s.`;
  return new Problem(408, "BODY_TOO_SLOW", detail, { headers: { connection: "close" } });
}
