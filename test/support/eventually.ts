/** Tests wait for conditions and never for a length of time. */
const POLL_MS = 10;
/** Looks come more seldom while a wait goes on, so that they cost little beside what is waited for. */
const POLL_PART = 1 / 10;
const LONGEST_POLL_MS = 250;
/** A fifth of what most tests may take. */
export const LIMIT_MS = 60_000;

/** What is waited for; a function is asked when it has not come, and may tell what there is instead. */
type What = string | (() => string | Promise<string>);

type Truthy<T> = Exclude<T, null | undefined | false | 0 | "">;

/** @throws naming `what` when the promise has not settled within `limitMs` */
export async function within<T>(promise: Promise<T>, what: What, limitMs = LIMIT_MS): Promise<T> {
  const late = Promise.withResolvers<never>();
  const fail = () => void tooLate(what, limitMs).then(late.reject, late.reject);
  const timer = setTimeout(fail, limitMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}

/**
 * Waits until `condition` gives a truthy value and returns it.
 * @throws naming `what` when it has not come true within `limitMs`, or does not answer for as long
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what: What,
  limitMs = LIMIT_MS,
  pollMs = POLL_MS,
): Promise<Truthy<T>> {
  const from = performance.now();
  for (;;) {
    const asked = condition();
    const value = asked instanceof Promise ? await within(asked, what, limitMs) : asked;
    if (value) return value as Truthy<T>;
    const waitedMs = performance.now() - from;
    if (waitedMs > limitMs) break;
    await Bun.sleep(Math.max(pollMs, Math.min(waitedMs * POLL_PART, LONGEST_POLL_MS)));
  }
  throw await tooLate(what, limitMs);
}

async function tooLate(what: What, limitMs: number): Promise<Error> {
  return new Error(`not within ${limitMs} ms: ${typeof what === "string" ? what : await what()}`);
}
