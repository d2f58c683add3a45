/**
 * Background work that gives way. Requests and carriers' events are foreground work: somebody waits for them. An import makes its
 * steps in between, and rests after each while others are at work, so that they do not feel that a merchant imports thousands of
 * shipments.
 */

/** A process that always has foreground work gets ahead with the other all the same. */
const GIVE_WAY_MS = 25;
/** A rest is so many times as long as the step before it: beside others, background work takes a tenth of the time. */
const REST_TIMES = 9;
/** After a step during which the store was slow. */
const REST_LIMIT_MS = 500;
/** So long after the last work of others there is no rest any more. */
const ALONE_AFTER_MS = 1_000;

/** Whose work it is: a channel's id; null = that of many. */
type Owner = number | null;

interface Sighting {
  readonly owner: Owner;
  readonly atMs: number;
}

let underWay = 0;
/** Resolved when no foreground work is left. */
let clear = Promise.withResolvers<void>();
/** The last two owners that were at work. */
let latest: Sighting = { owner: null, atMs: Number.NEGATIVE_INFINITY };
let before = latest;
/** Settles when the step after those asked for so far may begin. */
let lane: Promise<void> = Promise.resolve();

/** Work that background work gives way to, until it has ended. */
export async function foreground<T>(work: () => Promise<T> | T): Promise<T> {
  underWay += 1;
  try {
    return await work();
  } finally {
    underWay -= 1;
    if (underWay === 0) {
      clear.resolve();
      clear = Promise.withResolvers();
    }
  }
}

/** Somebody is at work: background work of others rests after its steps. */
export function atWork(owner: Owner): void {
  if (owner !== latest.owner) before = latest;
  latest = { owner, atMs: performance.now() };
}

function isAlone(owner: number): boolean {
  const other = latest.owner === owner ? before : latest;
  return performance.now() - other.atMs > ALONE_AFTER_MS;
}

/**
 * One step of background work: after those asked for before it, in a moment without foreground work or 25 ms later.
 * @param owner the channel that it is done for
 * @param step some milliseconds of work; is told whether nobody else has been at work for a second, when it may be more
 */
export async function background<T>(
  owner: number,
  step: (isAlone: boolean) => Promise<T>,
): Promise<T> {
  const turn = lane;
  const { promise, resolve } = Promise.withResolvers<void>();
  lane = promise;
  await turn;
  if (underWay > 0) await Promise.race([clear.promise, Bun.sleep(GIVE_WAY_MS)]);
  const alone = isAlone(owner);
  const fromMs = performance.now();
  try {
    return await step(alone);
  } finally {
    const restMs = Math.min(REST_LIMIT_MS, REST_TIMES * (performance.now() - fromMs));
    if (alone) resolve();
    else setTimeout(resolve, restMs);
  }
}
