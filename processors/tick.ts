/** A piece of work that is looked after at intervals, one run at a time, until it is stopped. */

export interface Ticking {
  /** Lets the run under way end. */
  readonly stop: () => Promise<void>;
}

/**
 * @param work told whether it should end early; what it throws goes to `onError` and the next run comes all the same
 * @param tickMs from the end of a run to the next one
 */
export function startTicking(
  tickMs: number,
  work: (isStopping: () => boolean) => Promise<void>,
  onError: (error: Error) => void,
): Ticking {
  let stopping = false;

  async function loop(): Promise<void> {
    while (!stopping) {
      await work(() => stopping).catch(onError);
      await Bun.sleep(tickMs);
    }
  }

  const running = loop();
  return {
    async stop() {
      stopping = true;
      await running;
    },
  };
}
