/**
 * Callers at the same time share one computation, and its result serves for a while after it: however often it is asked for,
 * it costs no more than one caller who asks without a pause. A failure is told to whoever shares it and is not kept.
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
