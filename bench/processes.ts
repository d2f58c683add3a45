/**
 * Two and four processes of the processors role beside one (row 15): `bun bench/processes.ts [--events 100000]
 * [--shipments 64000] [--everysec] [--json]`. The event log is filled by ingest first; the clock runs while every process
 * has a share of it, from a tenth to nine tenths of the webhook decisions. Redis shares the machine with them.
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { type Figure, machine, print, redisVersion } from "#bench/table.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { eventually } from "#test/support/eventually.ts";
import { loadShipments } from "./load-shipments.ts";
import {
  costsBetween,
  costsText,
  cpuSeconds,
  openStore,
  type Store,
  startIngest,
  startRole,
  tell,
} from "./product-roles.ts";
import { runSustained } from "./sustained-run.ts";

const { values } = parseArgs({
  options: {
    events: { type: "string" },
    shipments: { type: "string" },
    everysec: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const EVENTS = Number(values.events ?? (values.quick ? 8_000 : 100_000));
const SHIPMENTS = Number(values.shipments ?? (values.quick ? 8_000 : 64_000));
const PROCESSES = [1, 2, 4] as const;
const RUN_LIMIT_MS = 300_000;
const RUN_LIMIT_SECONDS = RUN_LIMIT_MS / 1_000;

async function decided({ runtime }: Store): Promise<number> {
  const { sent, notSent } = await readLedger(runtime.redis);
  return Object.values(notSent).reduce((sum, count) => sum + count, sent);
}

async function usedBytes({ runtime: { redis } }: Store): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
}

/** @returns events a second from the log to the decision */
async function measure(store: Store, processes: number, from: number): Promise<number> {
  const { redis } = store.runtime;
  const ingest = await startIngest(store);
  const memory = await usedBytes(store);
  const idle = await cpuSeconds(redis, [ingest]);
  await runSustained({
    url: ingest.url,
    from,
    limit: EVENTS,
    seconds: RUN_LIMIT_SECONDS,
    population: { shipments: SHIPMENTS, active: SHIPMENTS, underway: SHIPMENTS / 4 },
    behind: async () => [],
  });
  tell(`ingest: ${costsText(costsBetween(idle, await cpuSeconds(redis, [ingest]), EVENTS))}`);
  const logged = Math.round(((await usedBytes(store)) - memory) / EVENTS);
  tell(`ingest: ${logged} bytes of Redis memory an event, its eventId in`);
  await ingest.stop();
  const before = await decided(store);
  const reached = (share: number) => async () => {
    const done = (await decided(store)) - before;
    return done >= share * EVENTS && { done, atMs: performance.now() };
  };
  const roles = Array.from({ length: processes }, () =>
    startRole("processors", "processors/main.ts", store.env),
  );
  const start = await eventually(reached(0.1), "the processors run", RUN_LIMIT_MS);
  const used = await cpuSeconds(redis, roles);
  const end = await eventually(reached(0.9), "most is decided", RUN_LIMIT_MS);
  const costs = costsBetween(used, await cpuSeconds(redis, roles), end.done - start.done);
  const isDone = async () => (await readLags(redis)).every(isThrough);
  await eventually(isDone, "everything is decided", RUN_LIMIT_MS);
  for (const role of roles) await role.stop();
  const perSecond = ((end.done - start.done) * 1_000) / (end.atMs - start.atMs);
  tell(`${processes}: ${Math.round(perSecond)} events/s, ${costsText(costs)}`);
  return perSecond;
}

/** The analytics do not run here. */
function isThrough({ group, entries }: { group: string; entries: number }): boolean {
  return group === "analytics" || entries === 0;
}

const store = await openStore(values.everysec);
try {
  await loadShipments(store.runtime, store.env, SHIPMENTS);
  const rates: number[] = [];
  for (const [at, processes] of PROCESSES.entries()) {
    rates.push(await measure(store, processes, at * EVENTS));
  }
  const [alone = 0, ...others] = rates;
  const figures = others.map(
    (ours, at): Figure => ({
      row: 15,
      work: `${PROCESSES[at + 1]} processor processes on ${cpus().length} cores`,
      ours,
      beside: "one",
      peer: alone,
      unit: "events/s",
      goal: null,
    }),
  );
  print(figures, machine(await redisVersion(store.runtime.redis)), values.json);
} finally {
  await store.close();
}
