/** Tests wait for conditions and never for a length of time. */
const POLL_MS = 10;

type Truthy<T> = Exclude<T, null | undefined | false | 0 | "">;

/**
 * Waits until `condition` gives a truthy value and returns it.
 * @throws naming `what` when it has not come true within `limitMs`
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what: string | (() => string),
  limitMs = 30_000,
  pollMs = POLL_MS,
): Promise<Truthy<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value) return value as Truthy<T>;
    if (performance.now() > deadline) break;
    await Bun.sleep(pollMs);
  }
  const reported = typeof what === "string" ? what : what();
  throw new Error(`not within ${limitMs} ms: ${reported}`);
}
