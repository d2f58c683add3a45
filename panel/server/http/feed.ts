/** One reading pushed to all who watch, as server-sent events. Nothing is read while nobody watches. */

import { Problem } from "#core/platform/errors/problem.ts";
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";

const EVERY_MS = 2_000;
/** As long as somebody who has been logged out, or may no longer see it, goes on watching, at most. */
const CHECK_MS = limit(
  10_000,
  "time between two checks of who watches the live overview",
  "the stream of whoever may no longer watch ends",
);
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
  readonly mayWatch: () => Promise<boolean>;
}

export interface Feed {
  /**
   * @param mayWatch asked again and again while the stream is open
   * @throws {Problem} 503
   */
  readonly join: (mayWatch: () => Promise<boolean>) => Response;
  readonly close: () => void;
}

export interface FeedTerms {
  readonly log: Log;
  readonly everyMs?: number;
  readonly checkMs?: number;
  /** Aborted when the process is about to stop: streams end, and one that begins afterwards has a single reading. */
  readonly ending?: AbortSignal;
}

export function createFeed(
  read: () => Promise<unknown>,
  { log, everyMs = EVERY_MS, checkMs = CHECK_MS, ending }: FeedTerms,
): Feed {
  const viewers = new Set<Viewer>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isReading = false;
  let checkedAtMs = performance.now();

  function end(viewer: Viewer): void {
    if (!viewers.delete(viewer)) return;
    viewer.controller.close();
  }

  async function turn(): Promise<void> {
    timer = undefined;
    isReading = true;
    try {
      await endOfOthers();
      push(`event: overview\ndata: ${JSON.stringify(await read())}\n\n`);
    } catch (error) {
      log.warn({ reason: (error as Error).message }, "the overview could not be read");
      push(": the overview cannot be read at the moment\n\n");
    } finally {
      isReading = false;
      if (viewers.size > 0) timer = setTimeout(turn, everyMs);
    }
  }

  /** One that cannot be asked about for a moment stays: so does the whole panel. */
  async function endOfOthers(): Promise<void> {
    if (performance.now() - checkedAtMs < checkMs) return;
    checkedAtMs = performance.now();
    const all = [...viewers];
    const admitted = await Promise.all(all.map((one) => one.mayWatch().catch(() => true)));
    for (const [at, viewer] of all.entries()) if (!admitted[at]) end(viewer);
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

  function join(mayWatch: () => Promise<boolean>): Response {
    if (viewers.size >= VIEWERS_LIMIT) {
      const headers = { "retry-after": "60" };
      throw new Problem(503, "TOO_MANY_VIEWERS", "Too many watch the overview.", { headers });
    }
    let viewer: Viewer;
    const stream = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          viewer = { controller, untilMs: performance.now() + STREAM_MS, mayWatch };
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
