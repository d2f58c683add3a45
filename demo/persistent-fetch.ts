/** Requests as document 2 asks its senders to make them: repeated on 429, 5xx and connection failures, with backoff. */

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Document 2, "Limits": read timeout. */
const ANSWER_LIMIT_MS = 10_000;

export type PersistentFetch = (url: string, init: RequestInit) => Promise<Response>;

/** @throws when `signal` aborts; until then it repeats, since the services may be away for as long as they like */
export function createPersistentFetch(signal: AbortSignal): PersistentFetch {
  return async (url, init) => {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      signal.throwIfAborted();
      const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
      const answer = await fetch(url, { ...init, signal: limit }).catch(() => null);
      if (answer !== null && answer.status !== 429 && answer.status < 500) return answer;
      await answer?.body?.cancel();
      const askedMs = Number(answer?.headers.get("retry-after") ?? 0) * 1_000;
      await pause(Math.max(askedMs, waitMs * (0.5 + Math.random())), signal);
    }
  };
}

/** Waits, or less when `signal` aborts. */
export function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, waitMs);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
