/** A coarse look at what was measured once (`bun run bench`): CI's machines are shared, so the alarms are far from the goals. */
import { expect, test } from "bun:test";
import type { Report } from "#bench/table.ts";

const ROWS = [1, 2, 3, 5, 9, 10];
const LIMIT_MS = 240_000;

test(
  "ingest, state and memory keep away from their alarms",
  async () => {
    const flags = ["--quick", "--check", "--json", "--rows", ROWS.join(",")];
    const child = Bun.spawn([process.execPath, "bench/main.ts", ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [text, trouble] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(await child.exited, trouble).toBe(0);
    const { figures }: Report = JSON.parse(text);
    expect([...new Set(figures.map(({ row }) => row))]).toEqual(ROWS);
    for (const { work, alarm } of figures) expect(alarm, work).toBeDefined();
  },
  LIMIT_MS,
);
