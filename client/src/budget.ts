/**
 * The request budget of a channel, as its answers tell it. All keys of a channel share it, and ten answers 429 within five
 * minutes suspend a key: so nobody sends who knows that the budget is spent.
 */

import { pause } from "./pause.ts";

/** Requests in flight at once: until the first answers come, nobody knows what is left. */
const IN_FLIGHT = 8;
/** Refills are a minute apart. A longer wait comes from a clock that is wrong. */
const LONGEST_WAIT_MS = 120_000;

export interface Budget {
  /** Resolves when a request may be sent; `settle` follows. Rejects when the signal aborts. */
  readonly take: (signal: AbortSignal) => Promise<void>;
  /** @param response null = none came */
  readonly settle: (response: Response | null) => void;
}

export function createBudget(): Budget {
  let inFlight = 0;
  let remaining = Number.POSITIVE_INFINITY;
  let refillAtMs = 0;
  const waiting = new Set<() => void>();

  /** 0 = now; null = when another request has ended. */
  function waitMs(): number | null {
    if (inFlight >= IN_FLIGHT) return null;
    if (remaining - inFlight > 0) return 0;
    const untilRefillMs = refillAtMs - Date.now();
    if (untilRefillMs > 0) return untilRefillMs;
    return inFlight === 0 ? 0 : null;
  }

  function note(headers: Headers): void {
    const left = headers.get("x-ratelimit-remaining");
    const reset = Number(headers.get("x-ratelimit-reset"));
    if (left === null || Number.isNaN(reset)) return;
    const resetInMs = reset * 1000 - timeOf(headers);
    const atMs = Date.now() + Math.min(Math.max(resetInMs, 0), LONGEST_WAIT_MS);
    // Answers overtake each other: before the refill the lowest figure is the latest.
    const isNew = Date.now() >= refillAtMs;
    remaining = isNew ? Number(left) : Math.min(remaining, Number(left));
    refillAtMs = Math.max(refillAtMs, atMs);
  }

  /** Resolves when a request has ended. */
  function othersEnd(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        waiting.delete(goOn);
        reject(signal.reason);
      };
      const goOn = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      waiting.add(goOn);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  return {
    async take(signal) {
      signal.throwIfAborted();
      for (let wait = waitMs(); wait !== 0; wait = waitMs()) {
        if (wait === null) await othersEnd(signal);
        else await pause(wait, signal);
        signal.throwIfAborted();
      }
      inFlight += 1;
    },
    settle(response) {
      inFlight -= 1;
      if (response) note(response.headers);
      for (const resume of waiting) resume();
      waiting.clear();
    },
  };
}

/** The time of the server where the answer states it, since the local clock may be wrong. */
function timeOf(headers: Headers): number {
  const serverMs = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(serverMs) ? Date.now() : serverMs;
}
