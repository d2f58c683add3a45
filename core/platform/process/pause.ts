/** A wait that can be cut short. */

export interface Pause {
  readonly wait: (ms: number) => Promise<void>;
  /** Ends the wait under way; the next one is as long as ever. */
  readonly wake: () => void;
}

export function createPause(): Pause {
  let wake = () => {};
  return {
    wait(ms) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      return promise;
    },
    wake: () => wake(),
  };
}
