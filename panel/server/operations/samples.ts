/** Readings of counters at intervals, from which a page tells rates. */

/**
 * @param take one that fails is left out
 * @param kept the latest so many
 */
export function keepSamples<Sample>(
  take: () => Promise<Sample>,
  { everyMs, kept }: { readonly everyMs: number; readonly kept: number },
) {
  const samples: Sample[] = [];
  let timer: ReturnType<typeof setInterval> | undefined;

  async function add(): Promise<void> {
    samples.push(await take());
    if (samples.length > kept) samples.shift();
  }

  return {
    /** The oldest first. */
    samples: samples as readonly Sample[],
    start() {
      timer = setInterval(() => void add().catch(() => {}), everyMs);
    },
    stop() {
      clearInterval(timer);
    },
  };
}
