/** Lets the event loop turn once: what has been asked of the store is sent, before more is computed. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** How long work may run before the loop turns: short enough that nobody waiting for it notices. */
const TURN_MS = 5;

/** For work in many steps: check `due()` after each step, and call `take()` when it is true. */
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
