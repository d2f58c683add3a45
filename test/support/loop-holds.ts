/**
 * How long this process holds its event loop at once. Of each turn the smaller of wall time and the CPU time of this thread
 * counts: on a busy machine a turn takes long because another process runs, and then little CPU is used; other threads of this
 * process do not hold the loop.
 */
export interface LoopWatch {
  /** @returns the longest turn since the last call, milliseconds */
  readonly longestMs: () => number;
  readonly stop: () => void;
}

export function watchLoop(): LoopWatch {
  let longest = 0;
  let running = true;
  let wallMs = performance.now();
  let cpuMs = usedCpuMs();
  const turn = () => {
    const nowMs = performance.now();
    const nowCpuMs = usedCpuMs();
    longest = Math.max(longest, Math.min(nowMs - wallMs, nowCpuMs - cpuMs));
    wallMs = nowMs;
    cpuMs = nowCpuMs;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    longestMs() {
      const found = longest;
      longest = 0;
      return found;
    },
    stop() {
      running = false;
    },
  };
}

function usedCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
