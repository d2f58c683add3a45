/**
 * When processors were running, kept in the store: time limits on others are measured by it (design, "Our own downtime is
 * nobody's fault"). Whoever judges such a limit notes first that it is running itself, so that a start
 * knows of the downtime that it ends before it judges anything.
 *
 * | time limit on others                                        | while no processors are running                       |
 * |-------------------------------------------------------------|-------------------------------------------------------|
 * | 24 hours and 3 days of a failing endpoint                   | stands still (`health-clock.ts`)                      |
 * | 7 days in which an alert can be mailed                      | stands still (`alert-mailer.ts`)                      |
 * | 7 days of a parked event                                    | judged by when events were received (`release.ts`)    |
 * | attempts of a delivery, tries of a message                  | counted, not timed; what is due late is sent late     |
 * | waits between attempts, `Retry-After`, pauses               | run on: they end in what the other party asked for    |
 * | 30 days in which a delivery can be replayed, job results    | run on: how long data is kept                         |
 * | 24 hours of the secret before, sessions, invitations, rates | run on: they protect, and need no processors          |
 */
import { randomUUID } from "node:crypto";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { RUNNING_KEYS } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Downtime, runningMs } from "#core/platform/time/running-time.ts";
import noteSource from "./note-running.lua" with { type: "text" };

const noteScript = script(noteSource);
const NOTE_KEYS = [RUNNING_KEYS.running, RUNNING_KEYS.clock, RUNNING_KEYS.downtimes];

/** Without a heartbeat for so long, processors count as not running. They send one every 2 s. */
const PROCESSORS_GONE_AFTER_MS = limit(
  10_000,
  "time without a heartbeat after which processors count as not running",
  "a downtime begins with the last sign",
);
/** Downtimes remembered one by one; the oldest are joined, which counts the time between them as downtime too. */
export const DOWNTIMES_KEPT = limit(
  1_000,
  "downtimes remembered one by one",
  "the two oldest are joined",
);

export interface RunningTime {
  /** Notes that processors are running. @returns how long they were between two moments, service clock, milliseconds */
  readonly note: (nowMs: number) => Promise<(fromMs: number, toMs: number) => number>;
  /** Notes that these are running no more, unless the store is unavailable: they then count as gone a little later. */
  readonly end: (nowMs: number) => Promise<void>;
}

export function createRunningTime(
  redis: Redis,
  goneAfterMs = PROCESSORS_GONE_AFTER_MS,
): RunningTime {
  const name = randomUUID();
  let known: { readonly noted: number; readonly downtimes: readonly Downtime[] } | null = null;
  const args = (nowMs: number, verb: "runs" | "ends") => [
    name,
    String(nowMs),
    String(goneAfterMs),
    String(DOWNTIMES_KEPT),
    verb,
  ];
  return {
    async note(nowMs) {
      const noted = await run<number>(redis, noteScript, NOTE_KEYS, args(nowMs, "runs"));
      if (known?.noted !== noted) known = { noted, downtimes: await readDowntimes(redis) };
      const { downtimes } = known;
      return (fromMs, toMs) => runningMs(downtimes, fromMs, toMs);
    },
    async end(nowMs) {
      await run(redis, noteScript, NOTE_KEYS, args(nowMs, "ends")).catch(() => {});
    },
  };
}

/** Whether processors were running a moment ago. */
export async function areRunning(redis: Redis, nowMs: number): Promise<boolean> {
  const atMs = Number((await redis.hGet(RUNNING_KEYS.clock, "at")) ?? Number.NaN);
  return nowMs - atMs <= PROCESSORS_GONE_AFTER_MS;
}

/** By when they began. */
export async function readDowntimes(redis: Redis): Promise<Downtime[]> {
  const texts = await redis.lRange(RUNNING_KEYS.downtimes, 0, -1);
  const noted = texts.map((text) => {
    const [fromMs = 0, toMs = 0] = text.split(" ").map(Number);
    return { fromMs, toMs };
  });
  return noted.sort((one, other) => one.fromMs - other.fromMs);
}
