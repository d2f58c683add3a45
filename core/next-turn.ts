/** Lets the event loop turn once: what has been asked of the store is sent, before more is computed. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
