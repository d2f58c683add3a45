/** How a process ends on a signal: its ports drain, its roles stop, and it exits with status 0. */
import { endArrivals } from "#core/platform/http/body/arriving.ts";
import type { Log } from "#core/platform/process/log.ts";
import { STOP_LIMIT_MS } from "#core/platform/process/stop-limits.ts";
import { limit } from "#core/platform/schema/limit.ts";

/**
 * Process managers signal a whole group, and the launcher of `npm start` passes the signal on: one that comes so soon after the
 * first is the same request.
 */
const SAME_SIGNAL_MS = limit(
  500,
  "a signal so soon after SIGTERM is the same one",
  "it ends the wait",
);

export interface Ending {
  /** Readiness turns 503. @returns how long the ports go on serving */
  readonly drain: () => number;
  readonly stop: () => Promise<void>;
}

/**
 * SIGTERM waits for the drain, and a second signal ends the wait. SIGINT does not wait: somebody sits at a terminal.
 */
export function endOnSignal(log: Log, { drain, stop }: Ending): void {
  const hurried = Promise.withResolvers<void>();
  let begunAtMs: number | null = null;

  async function end(waits: boolean): Promise<void> {
    begunAtMs = performance.now();
    const drainMs = drain();
    if (waits && drainMs > 0) {
      log.info({ seconds: drainMs / 1_000 }, "draining");
      await Promise.race([Bun.sleep(drainMs), hurried.promise]);
    }
    log.info("stopping");
    endArrivals();
    // What hangs longer is left to its redelivery.
    setTimeout(() => process.exit(0), STOP_LIMIT_MS).unref();
    await stop();
    log.info("stopped");
    process.exit(0);
  }

  function hear(signal: "SIGTERM" | "SIGINT"): void {
    if (begunAtMs === null) return void end(signal === "SIGTERM");
    const isCopy = signal === "SIGTERM" && performance.now() - begunAtMs < SAME_SIGNAL_MS;
    if (!isCopy) hurried.resolve();
  }

  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, hear);
  // Whoever read the log has gone; unheard, it would end the process and leave the embedded Redis behind.
  process.stdout.on("error", () => {
    if (begunAtMs === null) void end(true);
  });
}
