/** Of the longest wait: a busy page gets its charts too. */
const WAIT_LIMIT_MS = 2_000;

/** When the page is drawn and takes input: for what it can do without until then. Safari has no such call. */
export function whenIdle(): Promise<void> {
  return new Promise((done) => {
    if ("requestIdleCallback" in window) {
      requestIdleCallback(() => done(), { timeout: WAIT_LIMIT_MS });
    } else {
      setTimeout(done);
    }
  });
}
