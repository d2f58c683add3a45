/** A coarse look at what was measured once (`bun run bench`): CI's machines are shared, so the alarms are far from the goals. */
import { expect, test } from "bun:test";
import type { Report } from "#bench/table.ts";

const ROWS = [1, 2, 3, 5, 9, 10];
/** A busy moment may ring an alarm, and what is too slow rings it every time. */
const TRIES = 3;
const LIMIT_MS = TRIES * 240_000;

async function measure() {
  const flags = ["--quick", "--check", "--json", "--rows", ROWS.join(",")];
  const child = Bun.spawn([process.execPath, "bench/main.ts", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [text, trouble] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { text, trouble, status: await child.exited };
}

test(
  "ingest, state and memory keep away from their alarms",
  async () => {
    let { text, trouble, status } = await measure();
    for (let tries = 1; status !== 0 && tries < TRIES; tries += 1) {
      ({ text, trouble, status } = await measure());
    }
    expect(status, trouble).toBe(0);
    const { figures }: Report = JSON.parse(text);
    expect([...new Set(figures.map(({ row }) => row))]).toEqual(ROWS);
    for (const { work, alarm } of figures) expect(alarm, work).toBeDefined();
  },
  LIMIT_MS,
);
