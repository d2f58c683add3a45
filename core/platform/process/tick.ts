/** A piece of work that is looked after at intervals, one run at a time, until it is stopped. */
import { createPause } from "./pause.ts";

/**
 * Until the next whole multiple of `ms` on this process's clock: what ticks at intervals ticks together, so that an idle process
 * wakes once for all of it and its questions share a round trip.
 */
export function untilTickMs(ms: number, nowMs = performance.now()): number {
  return ms - (nowMs % ms);
}

export interface Ticking {
  /** Lets the run under way end. */
  readonly stop: () => Promise<void>;
}

export interface WakeableTicking extends Ticking {
  /** There is work: the next run comes at once. */
  readonly wake: () => void;
}

/**
 * @param work is given whether it should end early; what it throws goes to `onError` and the next run comes all the same
 * @param tickMs runs begin at multiples of it, and after a long one at the next
 */
export function startTicking(
  tickMs: number,
  work: (isStopping: () => boolean) => Promise<void>,
  onError: (error: Error) => void,
): WakeableTicking {
  let stopping = false;
  let isDue = false;
  const pause = createPause();

  async function loop(): Promise<void> {
    while (!stopping) {
      isDue = false;
      await work(() => stopping).catch(onError);
      if (!stopping && !isDue) await pause.wait(untilTickMs(tickMs));
    }
  }

  const running = loop();
  return {
    wake() {
      isDue = true;
      pause.wake();
    },
    async stop() {
      stopping = true;
      pause.wake();
      await running;
    },
  };
}
