/** Lets the event loop turn once: what has been asked of the store is sent, before more is computed. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Work goes on for so long before the loop turns; nobody who waits for it should notice. */
const TURN_MS = 5;

/** For work of many steps: `due()` after each step, and `take()` where it says so. */
export function turns() {
  let sinceMs = performance.now();
  return {
    due: () => performance.now() - sinceMs >= TURN_MS,
    async take(): Promise<void> {
      await nextTurn();
      sinceMs = performance.now();
    },
  };
}
