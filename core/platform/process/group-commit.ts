/**
 * Group commit: requests that arrive while a call is in flight share the next one. A single request does not wait; under load
 * one call serves many, so that even messages of a single event share a round trip, a script and an fsync.
 */

export interface GroupCommitLimits {
  /** Calls at one time; with two the store has work while an answer is on its way. */
  readonly callsUnderWay: number;
  /** Together in one call at most, by `sizeOf`; one that is larger goes alone. */
  readonly sizePerCall: number;
  /** At one time; further ones are refused. */
  readonly waiting: number;
  /** A call that has no answer by then has failed, and the next one is made: what hangs holds nobody else. */
  readonly callMs: number;
}

/** The store does not answer in time, or too many wait for it. */
export class NoAnswer extends Error {}

interface Waiting<Ask, Answer> {
  readonly ask: Ask;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

interface Commits<Ask, Answer> {
  readonly call: (asks: readonly Ask[]) => Promise<readonly Answer[]>;
  readonly limits: GroupCommitLimits;
  readonly sizeOf: (ask: Ask) => number;
  readonly waiting: Waiting<Ask, Answer>[];
  underWay: number;
}

/**
 * @param call answers in the order of the asks; what it throws is thrown to each of them
 * @param sizeOf what an ask adds to a call
 * @returns asks one @throws {NoAnswer}
 */
export function groupCommit<Ask, Answer>(
  call: (asks: readonly Ask[]) => Promise<readonly Answer[]>,
  limits: GroupCommitLimits,
  sizeOf: (ask: Ask) => number = () => 1,
): (ask: Ask) => Promise<Answer> {
  const waiting: Waiting<Ask, Answer>[] = [];
  const commits: Commits<Ask, Answer> = { call, limits, sizeOf, waiting, underWay: 0 };
  return (ask) => {
    if (waiting.length >= limits.waiting) {
      return Promise.reject(new NoAnswer(`${limits.waiting} wait already`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    waiting.push({ ask, resolve, reject });
    startCalls(commits);
    return promise;
  };
}

function startCalls<Ask, Answer>(commits: Commits<Ask, Answer>): void {
  const { limits, waiting } = commits;
  while (commits.underWay < limits.callsUnderWay && waiting.length > 0) {
    commits.underWay += 1;
    void settle(commits, waiting.splice(0, fitting(commits)));
  }
}

/** @returns how many of those that wait go into the next call */
function fitting<Ask, Answer>({ limits, sizeOf, waiting }: Commits<Ask, Answer>): number {
  let size = 0;
  const end = waiting.findIndex(({ ask }) => {
    size += sizeOf(ask);
    return size > limits.sizePerCall;
  });
  return end === -1 ? waiting.length : Math.max(1, end);
}

async function settle<Ask, Answer>(
  commits: Commits<Ask, Answer>,
  batch: readonly Waiting<Ask, Answer>[],
): Promise<void> {
  try {
    const answering = commits.call(batch.map(({ ask }) => ask));
    const answers = await inTime(answering, commits.limits.callMs);
    batch.forEach(({ resolve }, at) => {
      resolve(answers[at] as Answer);
    });
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
  commits.underWay -= 1;
  startCalls(commits);
}

async function inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const refuse = () => late.reject(new NoAnswer(`no answer within ${limitMs} ms`));
  const timer = setTimeout(refuse, limitMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
