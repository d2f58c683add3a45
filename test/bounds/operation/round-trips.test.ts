/** What one event waits for, up to the POST of its webhook (ARCHITECTURE.md, "How an event travels"): the product does nothing else. */
import { expect, test } from "bun:test";

/** Of all four steps. A step of something else may come in between. */
const WAITS = 10;
const LIMIT_MS = 120_000;

test(
  `one event waits for ${WAITS} round trips to Redis at most until its webhook is sent, and for one until its answer`,
  async () => {
    const child = Bun.spawn([process.execPath, "bench/round-trips.ts", "--quick"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const text = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    const waits = [...text.matchAll(/^\| \w+ \| (\d+) \|/gm)].map(([, count]) => Number(count));
    expect(waits).toHaveLength(4);
    expect(waits[0], text).toBe(1);
    const sum = waits.reduce((all, one) => all + one, 0);
    expect(sum, text).toBeLessThanOrEqual(WAITS);
  },
  LIMIT_MS,
);
