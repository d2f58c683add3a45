/**
 * The product at rest after full load (row 18): `bun bench/idle.ts [--load 60] [--rest 180] [--seconds 60] [--quick] [--json]`,
 * in seconds. All roles in one process on an embedded Redis as shipped, with 10,000 shipments. It takes all the events that it
 * can, then nothing; then CPU of both processes over `--seconds`, and what the product keeps in memory.
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { ALLOCATOR_OF_ALL, cpuSeconds, openStore } from "#bench/product-roles.ts";
import { machine, print, redisVersion } from "#bench/table.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { loadShipments } from "./load-shipments.ts";
import { runSustained } from "./sustained-run.ts";

const READY_LIMIT_MS = 120_000;
const SHIPMENTS = 10_000;
/** No limit of its own: the load ends with its time. */
const EVENTS = 100_000_000;
const GOAL_PERCENT = 2;
const GOAL_MIB = 250;
/** What CI fails at. */
const ALARM_PERCENT = 20;

const { values } = parseArgs({
  options: {
    load: { type: "string" },
    rest: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const loadSeconds = Number(values.load ?? (values.quick ? 5 : 60));
/** Longer than the allocator keeps freed memory (`ALLOCATOR_OF_ALL`). */
const restSeconds = Number(values.rest ?? (values.quick ? 10 : 180));
const seconds = Number(values.seconds ?? (values.quick ? 10 : 60));

async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s*(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
}

const store = await openStore(false);
await loadShipments(store.runtime, store.env, SHIPMENTS);
const [panelPort, ingestPort] = [await freePort(), await freePort()];
const ports = { PANEL_PORT: String(panelPort), API_PORT: "0", INGEST_PORT: String(ingestPort) };
const child = Bun.spawn([process.execPath, "cli/start/main.ts", "--quiet"], {
  env: { ...ALLOCATOR_OF_ALL, DRAIN_SECONDS: "0", ...store.env, ...ports },
  stdio: ["ignore", "ignore", "inherit"],
});
try {
  const isReady = () =>
    fetch(`http://127.0.0.1:${panelPort}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(isReady, "the product is ready", READY_LIMIT_MS);
  const { redis } = store.runtime;
  await runSustained({
    url: `http://127.0.0.1:${ingestPort}`,
    from: 0,
    limit: EVENTS,
    seconds: loadSeconds,
    population: { shipments: SHIPMENTS, active: SHIPMENTS, underway: SHIPMENTS },
    behind: () => readLags(redis),
  });
  await Bun.sleep(restSeconds * 1_000);
  const roles = [{ name: "product", pid: child.pid, hasEnded: () => false, stop: async () => {} }];
  const sum = (used: ReadonlyMap<string, number>) =>
    [...used.values()].reduce((all, one) => all + one, 0);
  const before = sum(await cpuSeconds(redis, roles));
  await Bun.sleep(seconds * 1_000);
  const used = sum(await cpuSeconds(redis, roles)) - before;
  const common = { row: 18, beside: null, peer: null } as const;
  const figures = [
    {
      ...common,
      work: "at rest, all roles in one process and Redis, CPU of a core",
      ours: (100 * used) / seconds,
      unit: "%",
      goal: { oursMost: GOAL_PERCENT },
      alarm: { oursMost: ALARM_PERCENT },
    },
    {
      ...common,
      work: "at rest, all roles in one process, resident after full load",
      ours: await residentMib(child.pid),
      unit: "MiB",
      goal: { oursMost: GOAL_MIB },
    },
  ];
  print(figures, `${machine(await redisVersion(redis))}, ${restSeconds} s of rest`, values.json);
} finally {
  child.kill("SIGTERM");
  await child.exited;
  await store.close();
}
