/** A piece of work that is looked after at intervals, one run at a time, until it is stopped. */
import { createPause, type Pause } from "./pause.ts";

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
  const state: TickingState = { tickMs, pause: createPause(), stopping: false, isDue: false };
  const running = tick(state, work, onError);
  return {
    wake() {
      state.isDue = true;
      state.pause.wake();
    },
    async stop() {
      state.stopping = true;
      state.pause.wake();
      await running;
    },
  };
}

interface TickingState {
  readonly tickMs: number;
  readonly pause: Pause;
  stopping: boolean;
  isDue: boolean;
}

async function tick(
  state: TickingState,
  work: (isStopping: () => boolean) => Promise<void>,
  onError: (error: Error) => void,
): Promise<void> {
  while (!state.stopping) {
    state.isDue = false;
    await work(() => state.stopping).catch(onError);
    if (!state.stopping && !state.isDue) await state.pause.wait(untilTickMs(state.tickMs));
  }
}
