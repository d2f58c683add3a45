/** An answer on its way to who asked: handed over as it is read, for a limited time. */
import { Readable } from "node:stream";
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** Of an answer of the embedded engine, which is in memory until it has been read. */
export const ANSWER_BYTES = limit(
  64 * 1024 * 1024,
  "an answer of the embedded engine to SQL access",
  "422",
);
export const ANSWER_READ_MS = limit(
  300_000,
  "time in which an answer of SQL access is read",
  "the connection is cut",
);
const PIECE_BYTES = 64 * 1024;

/**
 * @param ended called once, when the answer has been read, was given up or was not read in time
 * @param timeLimitMs for tests
 */
export function unreadAnswer(
  source: AsyncIterable<Buffer>,
  ended: () => void,
  timeLimitMs = ANSWER_READ_MS,
): Readable {
  const answer = Readable.from(piecesOf(source), {
    objectMode: false,
    highWaterMark: PIECE_BYTES,
  });
  const timer = setTimeout(
    () => answer.destroy(new Error("the answer was not read in time")),
    timeLimitMs,
  );
  answer.once("close", () => {
    clearTimeout(timer);
    ended();
  });
  // Who reads it hears of an error; nobody else has to.
  answer.on("error", () => {});
  return answer;
}

async function* piecesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      yield chunk.subarray(at, at + PIECE_BYTES);
    }
  }
}

/** @returns the answer as the embedded engine gives it, whole. @throws {Problem} 422 */
export async function wholeAnswer(stream: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Read to its end in any case: the engine gives what is left of it to the next statement.
  for await (const chunk of stream) {
    size += chunk.length;
    if (size <= ANSWER_BYTES) chunks.push(chunk);
  }
  if (size <= ANSWER_BYTES) return chunks;
  const detail = `The answer has more than ${ANSWER_BYTES / 1024 ** 2} MiB: ask for fewer rows or columns.`;
  throw new Problem(422, "SQL_FAILED", detail);
}
