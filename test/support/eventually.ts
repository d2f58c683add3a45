/** Tests wait for conditions and never for a length of time. */
const POLL_MS = 10;
/** Half of what a test may take. */
const LIMIT_MS = 60_000;

type Truthy<T> = Exclude<T, null | undefined | false | 0 | "">;

/** @throws naming `what` when the promise has not settled within `limitMs` */
export async function within<T>(
  promise: Promise<T>,
  what: string | (() => string),
  limitMs = LIMIT_MS,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooLate(what, limitMs)), limitMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}

/**
 * Waits until `condition` gives a truthy value and returns it.
 * @throws naming `what` when it has not come true within `limitMs`, or does not answer for as long
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what: string | (() => string),
  limitMs = LIMIT_MS,
  pollMs = POLL_MS,
): Promise<Truthy<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const asked = condition();
    const value = asked instanceof Promise ? await within(asked, what, limitMs) : asked;
    if (value) return value as Truthy<T>;
    if (performance.now() > deadline) break;
    await Bun.sleep(pollMs);
  }
  throw tooLate(what, limitMs);
}

function tooLate(what: string | (() => string), limitMs: number): Error {
  return new Error(`not within ${limitMs} ms: ${typeof what === "string" ? what : what()}`);
}
