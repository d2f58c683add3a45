/** A piece of work that is looked after at intervals, one run at a time, until it is stopped. */
import { createPause } from "./pause.ts";

export interface Ticking {
  /** Lets the run under way end. */
  readonly stop: () => Promise<void>;
}

/**
 * @param work is given whether it should end early; what it throws goes to `onError` and the next run comes all the same
 * @param tickMs from the end of a run to the next one
 */
export function startTicking(
  tickMs: number,
  work: (isStopping: () => boolean) => Promise<void>,
  onError: (error: Error) => void,
): Ticking {
  let stopping = false;
  const pause = createPause();

  async function loop(): Promise<void> {
    while (!stopping) {
      await work(() => stopping).catch(onError);
      if (!stopping) await pause.wait(tickMs);
    }
  }

  const running = loop();
  return {
    async stop() {
      stopping = true;
      pause.wake();
      await running;
    },
  };
}
