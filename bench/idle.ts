/**
 * The product at rest (row 18): `bun bench/idle.ts [--seconds 60] [--quick] [--json]`. All roles in one process on an embedded
 * Redis as shipped, with a setup of one channel and nothing to do; CPU of both processes, and what the product keeps in memory.
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { ALLOCATOR, cpuSeconds, openStore } from "#bench/product-roles.ts";
import { machine, print, redisVersion } from "#bench/table.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/free-port.ts";

const READY_LIMIT_MS = 120_000;
/** What runs once after the start is over by then. */
const SETTLE_MS = 5_000;
const GOAL_PERCENT = 2;
const GOAL_MIB = 250;
/** What CI fails at. */
const ALARM_PERCENT = 20;

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds ?? (values.quick ? 10 : 60));

async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s*(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

const store = await openStore(false);
const panelPort = await freePort();
const ports = { PANEL_PORT: String(panelPort), API_PORT: "0", INGEST_PORT: "0" };
const child = Bun.spawn([process.execPath, "start/main.ts", "--quiet"], {
  env: { ...ALLOCATOR, ...store.env, ...ports },
  stdio: ["ignore", "ignore", "inherit"],
});
try {
  const isReady = () =>
    fetch(`http://127.0.0.1:${panelPort}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(isReady, "the product is ready", READY_LIMIT_MS);
  await Bun.sleep(SETTLE_MS);
  const { redis } = store.runtime;
  const roles = [{ name: "product", pid: child.pid, hasEnded: () => false, stop: async () => {} }];
  const sum = (used: ReadonlyMap<string, number>) =>
    [...used.values()].reduce((all, one) => all + one, 0);
  const before = sum(await cpuSeconds(redis, roles));
  await Bun.sleep(seconds * 1_000);
  const used = sum(await cpuSeconds(redis, roles)) - before;
  const common = { row: 18, beside: null, peer: null } as const;
  const figures = [
    {
      ...{ ...common, work: "at rest, all roles in one process and Redis, CPU of a core" },
      ...{ ours: (100 * used) / seconds, unit: "%", goal: { oursMost: GOAL_PERCENT } },
      alarm: { oursMost: ALARM_PERCENT },
    },
    {
      ...{ ...common, work: "at rest, all roles in one process, resident after the start" },
      ...{ ours: await residentMib(child.pid), unit: "MiB", goal: { oursMost: GOAL_MIB } },
    },
  ];
  print(figures, `${machine(await redisVersion(redis))}, ${seconds} s`, values.json);
} finally {
  child.kill("SIGTERM");
  await child.exited;
  await store.close();
}
