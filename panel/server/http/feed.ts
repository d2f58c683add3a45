/** One reading pushed to all who watch, as server-sent events. Nothing is read while nobody watches. */

import { Problem } from "#core/platform/errors/problem.ts";
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";

const EVERY_MS = 2_000;
/** A stream ends after this time, and the browser opens another one, whose caller is checked again. */
const STREAM_MS = limit(
  300_000,
  "life of a stream of the live overview",
  "the browser opens another one",
);
const VIEWERS_LIMIT = limit(500, "viewers of the live overview", "503 with `Retry-After`");
/** Readings that wait for a viewer who does not take them; the stream then ends. */
const READINGS_WAITING = limit(
  5,
  "readings that wait for a viewer of the live overview",
  "the stream ends",
);

interface Viewer {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  readonly untilMs: number;
}

export interface Feed {
  /** @throws {Problem} 503 */
  readonly join: () => Response;
  readonly close: () => void;
}

export interface FeedTerms {
  readonly log: Log;
  readonly everyMs?: number;
  /** Aborted when the process is about to stop: streams end, and one that begins afterwards has a single reading. */
  readonly ending?: AbortSignal;
}

export function createFeed(
  read: () => Promise<unknown>,
  { log, everyMs = EVERY_MS, ending }: FeedTerms,
): Feed {
  const viewers = new Set<Viewer>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isReading = false;

  function end(viewer: Viewer): void {
    if (!viewers.delete(viewer)) return;
    viewer.controller.close();
  }

  async function turn(): Promise<void> {
    timer = undefined;
    isReading = true;
    try {
      push(`event: overview\ndata: ${JSON.stringify(await read())}\n\n`);
    } catch (error) {
      log.warn({ reason: (error as Error).message }, "the overview could not be read");
      push(": the overview cannot be read at the moment\n\n");
    } finally {
      isReading = false;
      if (viewers.size > 0) timer = setTimeout(turn, everyMs);
    }
  }

  function push(event: string): void {
    const bytes = new TextEncoder().encode(event);
    for (const viewer of viewers) {
      const isStuck = (viewer.controller.desiredSize ?? 0) <= 0;
      const isOver = isStuck || performance.now() > viewer.untilMs;
      if (!isOver) viewer.controller.enqueue(bytes);
      if (isOver || ending?.aborted) end(viewer);
    }
  }

  function close(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const viewer of viewers) end(viewer);
  }

  function join(): Response {
    if (viewers.size >= VIEWERS_LIMIT) {
      const headers = { "retry-after": "60" };
      throw new Problem(503, "TOO_MANY_VIEWERS", "Too many watch the overview.", { headers });
    }
    let viewer: Viewer;
    const stream = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          viewer = { controller, untilMs: performance.now() + STREAM_MS };
          viewers.add(viewer);
          if (timer === undefined && !isReading) void turn();
        },
        cancel: () => void viewers.delete(viewer),
      },
      { highWaterMark: READINGS_WAITING },
    );
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
    return new Response(stream, { headers });
  }

  ending?.addEventListener("abort", close);
  return { join, close };
}
