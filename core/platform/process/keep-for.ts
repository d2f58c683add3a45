/**
 * Concurrent callers share one computation, and its result is cached for a while: any number of callers costs no more than
 * a single one that calls in a loop. A failure is passed to all who share it and is not cached.
 */
export function keepFor<T>(forMs: number, compute: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | null = null;
  const forget = () => {
    kept = null;
  };
  return () => {
    if (kept === null) {
      kept = compute();
      kept.then(() => void setTimeout(forget, forMs).unref(), forget);
    }
    return kept;
  };
}
