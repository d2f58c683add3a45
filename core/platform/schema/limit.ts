/**
 * A number that bounds what the system keeps, takes or waits for, with what it limits and what happens at it.
 *
 * `npm run tool -- limits` finds the calls in the source and writes docs/limits.md. So the texts are literals, and the number is made
 * of literals and constants. The end of the constant's name is its unit: `_MS`, `_SECONDS`, `_DAYS`, `_BYTES`.
 *
 * @example const TOKENS_MOST = limit(20, "tokens of a courier", "422");
 */
export function limit(value: number, _of: string, _atTheLimit: string): number {
  return value;
}

/** The same of a bucket: so many at once, then so many each second. */
export function rate(burst: number, perSecond: number, _of: string, _atTheLimit: string) {
  return { burst, perSecond };
}
