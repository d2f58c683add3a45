/**
 * Endpoints that keep requests waiting and answer none: a receiver that hangs, or an address that nobody listens at. What
 * is sent to them takes a socket and no slot, because eight attempts of ten seconds each would fill every slot for hours.
 *
 * An endpoint is silent after an attempt has waited in vain and nothing else was answered meanwhile. Any answer, or a minute
 * without such an attempt, ends it. One that answers late, or every other time, keeps its slots: they hold back what a slow
 * receiver cannot take. Each process finds out on its own.
 */
import type { Slot } from "#core/webhooks/store/deliveries/leases.ts";

/** Requests that wait at once: some 50 KB each. */
const MOST_WAITING = 2_000;
/** Of the files that the process may open, each request takes one. */
const SHARE_OF_FILES = 1 / 4;
/** Longer than any request. */
const REMEMBERED_MS = 60_000;

export interface SilentEndpoints {
  /** An attempt has ended. Times are those of `performance.now()`. */
  readonly ended: (of: Slot, attempt: AttemptEnd) => void;
  readonly has: (endpointId: string) => boolean;
  readonly count: () => number;
  /** Partitions with silent endpoints. */
  readonly partitions: (nowMs: number) => ReadonlySet<number>;
}

export interface AttemptEnd {
  readonly beganAtMs: number;
  readonly endedAtMs: number;
  /** There was a status line. */
  readonly isAnswered: boolean;
}

/** @param openFiles that the process may have; null = no limit is known */
export function mostSilent(openFiles: number | null): number {
  return Math.min(MOST_WAITING, Math.floor((openFiles ?? Infinity) * SHARE_OF_FILES));
}

/** @param vainMs an attempt that ends sooner without an answer was refused, and not kept waiting */
export function followSilentEndpoints(vainMs: number): SilentEndpoints {
  const silent = new Map<string, { readonly partition: number; readonly untilMs: number }>();
  /** Last answers; the oldest stand first. */
  const answeredAtMs = new Map<string, number>();

  function answered(endpointId: string, atMs: number): void {
    silent.delete(endpointId);
    answeredAtMs.delete(endpointId);
    answeredAtMs.set(endpointId, atMs);
    for (const [id, lastMs] of answeredAtMs) {
      if (lastMs > atMs - REMEMBERED_MS) break;
      answeredAtMs.delete(id);
    }
  }

  return {
    ended({ endpointId, partition }, { beganAtMs, endedAtMs, isAnswered }) {
      if (isAnswered) return answered(endpointId, endedAtMs);
      if (endedAtMs - beganAtMs < vainMs) return;
      if ((answeredAtMs.get(endpointId) ?? -Infinity) >= beganAtMs) return;
      silent.set(endpointId, { partition, untilMs: endedAtMs + REMEMBERED_MS });
    },
    has: (endpointId) => silent.has(endpointId),
    count: () => silent.size,
    partitions(nowMs) {
      for (const [id, { untilMs }] of silent) if (untilMs <= nowMs) silent.delete(id);
      return new Set([...silent.values()].map(({ partition }) => partition));
    },
  };
}
