/** An answer on its way to who asked: handed over as it is read, for a limited time. */
import { Readable } from "node:stream";
import { limit } from "#core/platform/schema/limit.ts";

/** The embedded engine has an answer in memory until it has been read. */
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
