/**
 * Background work that gives way. Requests and the tracking of couriers' events are foreground work: somebody waits for them. An
 * import makes its steps in between, and rests after each while others are at work, so that they do not feel that a merchant imports
 * thousands of shipments. This is about one process, which shares a thread and a connection to the store.
 */
import { limit } from "#core/platform/schema/limit.ts";
import { nextTurn } from "./next-turn.ts";
import { createPause } from "./pause.ts";

/** After this wait background work goes on even in a process that always has foreground work. */
const GIVE_WAY_MS = limit(
  25,
  "time that background work gives way to requests",
  "the next step begins",
);
/** A rest is so many times as long as the step before it: beside others, background work takes a tenth of the time. */
const REST_TIMES = limit(
  9,
  "rest of background work beside others, in lengths of its last step",
  "the next step begins",
);
/** Longest rest: a step in which the store was slow takes little of the process. */
const REST_LIMIT_MS = limit(
  100,
  "longest rest of background work beside others",
  "the next step begins",
);
const AT_WORK_MS = limit(
  1_000,
  "time for which a channel counts as active after a request",
  "imports of other channels no longer rest",
);

/** Whose work it is: a channel's id; null = that of many. */
type Owner = number | null;

interface Sighting {
  readonly owner: Owner;
  readonly atMs: number;
}

let underWay = 0;
/** Lets the next step begin when no foreground work is left. */
const clear = createPause();
/** The last two owners that were at work. */
let latest: Sighting = { owner: null, atMs: Number.NEGATIVE_INFINITY };
let before = latest;
/** Resolves when the step after those asked for so far may begin. */
let queue: Promise<void> = Promise.resolve();

/** Work that background work gives way to, until it has ended. */
export async function foreground<T>(work: () => Promise<T> | T): Promise<T> {
  underWay += 1;
  try {
    return await work();
  } finally {
    underWay -= 1;
    if (underWay === 0) clear.wake();
  }
}

/** Somebody is at work: background work of others rests after its steps. */
export function atWork(owner: Owner): void {
  if (owner !== latest.owner) before = latest;
  latest = { owner, atMs: performance.now() };
}

function isAlone(owner: number): boolean {
  const other = latest.owner === owner ? before : latest;
  return performance.now() - other.atMs > AT_WORK_MS;
}

/**
 * One step of background work: after those asked for before it, in a moment without foreground work or 25 ms later.
 * @param owner the channel that it is done for
 * @param step some milliseconds of work; receives true while nobody else is at work, and may then do more
 */
export async function background<T>(
  owner: number,
  step: (isAlone: boolean) => Promise<T>,
): Promise<T> {
  const turn = queue;
  const { promise, resolve } = Promise.withResolvers<void>();
  queue = promise;
  await turn;
  if (underWay > 0) {
    await clear.wait(GIVE_WAY_MS);
    // The answer that ended the wait is sent first.
    await nextTurn();
  }
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
