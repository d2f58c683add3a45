/**
 * What a deliverer may have under way.
 *
 * | limit                                  | value | at the limit                                                   |
 * |----------------------------------------|-------|----------------------------------------------------------------|
 * | slots of this process                  | 400   | what is leased waits for a free one                            |
 * | of them for failing endpoints          | half  | the others go first: hanging receivers cannot take every slot  |
 * | leased ahead of a slot                 | 200   | no lease until one of them has found its slot                  |
 * | a delivery keeps its slot              | 1 s   | then it gives it back, as it does once it is answered          |
 * | under way in this process without one  | 1,200 | slow ones keep their slots, answered ones wait to be recorded  |
 * | slots beyond them, for newcomers       | 200   | they wait like the others (`scheduler.ts`)                     |
 * | under way of a company in this process | half  | the rest is there for others                                   |
 * | under way per endpoint, all processes  | 4-256 | it adapts (`concurrency.ts`); the rest waits                   |
 * | the same for a failing endpoint        | 2     | until its next success                                         |
 * | under way to silent endpoints          | 2,000 | the rest waits in their queues, and they are served in turn;   |
 * |                                        |       | fewer where the process may open fewer than 8,000 files        |
 * | the same for one, all processes        | 1,000 | the rest waits in its queues                                   |
 * | begun for silent endpoints             | 200/s | what is leased waits for its turn; 100/s if there is only one  |
 * | lease, renewed while it is under way   | 6 s   | its process has died: the delivery is sent again               |
 * | pause after an outage of the store     | 3 s   | leases are handed out again                                    |
 * | results without a store at the end     | 20 s  | given up: those deliveries are sent again                      |
 *
 * The schedule holds for a receiver that never answers: 20,000 deliveries at once are 20,000 requests of ten seconds for each
 * of the first three attempts, which are due within six minutes. 1,000 under way are 100 a second: first attempts take less
 * than five minutes, and no retry is later than that. Two slots would be one request in five seconds.
 */
import { limit } from "#core/platform/schema/limit.ts";
import { START_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";

/** Requests to silent endpoints that wait at once: about 50 KB each. */
const MOST_SILENT = limit(
  2_000,
  "deliveries in flight to silent endpoints in a process, or a quarter of the files it may open",
  "the rest waits and is served in turn",
);
/** Of the files that the process may open, each request takes one. */
const SHARE_OF_FILES = 1 / 4;

/** @param openFiles that the process may have; null = no limit is known */
export function mostSilent(openFiles: number | null): number {
  return Math.min(MOST_SILENT, Math.floor((openFiles ?? Infinity) * SHARE_OF_FILES));
}

export interface DeliverLimits {
  /** Slots; three times as many are under way without one, and half as many leased ahead of one. */
  readonly inFlight: number;
  readonly slowMs: number;
  /** Concurrency that an endpoint begins with. */
  readonly startConcurrency: number;
  readonly inFlightPerFailingEndpoint: number;
  /** Under way to silent endpoints: each is a socket and about 50 KB. */
  readonly silentInFlight: number;
  readonly silentInFlightPerEndpoint: number;
  readonly leaseMs: number;
  /** Longer than the client takes to reconnect, 2.2 s, and than a result waits for its next attempt. */
  readonly recoveryMs: number;
  /** Longer than a failover of the store, 15 s, and shorter than a stop may take (`stop-limits.ts`). */
  readonly stopWaitMs: number;
}

export const LIMITS: DeliverLimits = {
  inFlight: limit(400, "send slots of a process", "the rest waits"),
  slowMs: limit(1_000, "time that a delivery occupies its slot", "continues without one"),
  startConcurrency: START_CONCURRENCY,
  inFlightPerFailingEndpoint: limit(
    2,
    "deliveries of a failing endpoint in flight",
    "the rest waits",
  ),
  silentInFlight: mostSilent(openFilesLimit()),
  silentInFlightPerEndpoint: limit(
    1_000,
    "deliveries in flight to one silent endpoint in a process",
    "the rest waits and is served in turn",
  ),
  leaseMs: limit(6_000, "lease of a delivery", "sent again if its process has died"),
  recoveryMs: limit(
    3_000,
    "pause of all senders after an outage in which leases may have ended",
    "leases are handed out again",
  ),
  stopWaitMs: limit(
    20_000,
    "webhook results without a store when the process stops",
    "given up: those deliveries are sent again",
  ),
};

/** Null if the system does not report it. */
function openFilesLimit(): number | null {
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } };
  };
  const soft = Number(report.userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? null : soft;
}
