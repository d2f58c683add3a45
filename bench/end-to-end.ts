/**
 * End to end, from the HTTP message to the row in ClickHouse, beside the same work as BullMQ jobs (row 4):
 * `bun bench/end-to-end.ts [--seconds 120] [--shipments 256000] [--everysec] [--quick] [--json]`, with `--profile <folder>`
 * for CPU profiles of ours. Every role is a process of its own, one each, and so is the sender; all share the machine. The
 * sender keeps fewer messages in flight the nearer the slowest stage is to 16,000 events behind, and none there, so the
 * figure is what that stage can keep up. It counts the events whose row was found in ClickHouse afterwards, over the time
 * from the first message to the last row. What is left out is sending webhooks (rows 7 and 8). The second figure is the age of
 * the oldest entry that a stage had before it, in the second half of the run beside the first.
 */
import { parseArgs } from "node:util";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type Figure, machine, print, redisVersion } from "#bench/table.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { PEER_QUEUES, peerClickhouse } from "./end-to-end-bullmq.ts";
import { loadShipments } from "./load-shipments.ts";
import {
  costsBetween,
  costsText,
  cpuSeconds,
  openStore,
  type Role,
  type Store,
  startIngest,
  startRole,
  tell,
  totalOf,
} from "./product-roles.ts";
import { type Behind, lagText, runSustained, type Sustained, worstLag } from "./sustained-run.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    shipments: { type: "string" },
    profile: { type: "string" },
    everysec: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const SECONDS = Number(values.seconds ?? (values.quick ? 4 : 120));
const SHIPMENTS = Number(values.shipments ?? (values.quick ? 16_000 : 256_000));
const UNDERWAY = SHIPMENTS / 16;
/** Lives of those that are underway at the same time. */
const EVENTS_PER_BLOCK = 8 * UNDERWAY;
/** Sent and worked off before the clock starts: every process is up then, and its code is warm. */
const WARM_UP = values.quick ? 2_000 : 20_000;
/** Entries; little enough in a short run that working them off is not most of it. */
const HOLD_AT = values.quick ? 8_000 : 16_000;
const WARM_UP_LIMIT_SECONDS = 60;
/** A run that is shorter is over before its lag has come to rest. */
const FLAT_FROM_SECONDS = 60;
const PEER_FILE = "bench/end-to-end-bullmq.ts";

interface Way {
  readonly name: string;
  readonly start: (store: Store) => Promise<{ readonly url: string; readonly roles: Role[] }>;
  readonly behind: (store: Store) => Promise<readonly Behind[]>;
  readonly clickhouse: (config: Config) => Config;
}

const OURS: Way = {
  name: "ours",
  async start(store) {
    const roles = ["analytics", "processors"].map((name) =>
      startRole(name, `${name}/main.ts`, store.env, values.profile),
    );
    const ingest = await startIngest(store, "ingest/main.ts", values.profile);
    return { url: ingest.url, roles: [ingest, ...roles] };
  },
  behind: ({ runtime }) => readLags(runtime.redis),
  clickhouse: (config) => config,
};

const PEER: Way = {
  name: "BullMQ",
  async start(store) {
    const roles = ["analytics", "processors"].map((name) => startRole(name, PEER_FILE, store.env));
    const ingest = await startIngest(store, PEER_FILE);
    return { url: ingest.url, roles: [ingest, ...roles] };
  },
  behind: ({ runtime: { redis } }) =>
    Promise.all(
      PEER_QUEUES.map(async (queue) => {
        const lengths = await Promise.all([
          redis.lLen(`bull:${queue}:wait`),
          redis.lLen(`bull:${queue}:active`),
        ]);
        return { group: queue, entries: lengths[0] + lengths[1], seconds: 0 };
      }),
    ),
  clickhouse: peerClickhouse,
};

interface Measured extends Sustained {
  /** CPU time of all processes and Redis for an event. */
  readonly costUs: number;
}

/**
 * @param from index of the first event in the lives of the shipments
 * @throws when an event has no row, or more than one
 */
async function measure(store: Store, way: Way, from: number): Promise<Measured> {
  const { runtime } = store;
  const { redis } = runtime;
  const { url, roles } = await way.start(store);
  const common = {
    url,
    holdAt: HOLD_AT,
    population: { shipments: SHIPMENTS, active: SHIPMENTS, underway: UNDERWAY },
    behind() {
      const ended = roles.find((role) => role.hasEnded());
      if (ended) throw new Error(`${ended.name} has ended`);
      return way.behind(store);
    },
  };
  await runSustained({ ...common, from, limit: WARM_UP, seconds: WARM_UP_LIMIT_SECONDS });
  const bytesBefore = await appendedBytes(store);
  const before = await cpuSeconds(redis, roles);
  const limit = Number.MAX_SAFE_INTEGER;
  const sustained = await runSustained({
    ...common,
    from: from + WARM_UP,
    limit,
    seconds: SECONDS,
  });
  const { events, seconds } = sustained;
  if (events === 0) throw new Error(`${way.name}: no event came through in time`);
  const costs = costsBetween(before, await cpuSeconds(redis, roles), events);
  for (const role of roles) await role.stop();
  tell(`${way.name}: ${events} events in ${seconds.toFixed(1)} s, ${costsText(costs)}`);
  tell(`${way.name}: ${lagText(sustained)}`);
  tellAppended(way, bytesBefore, await appendedBytes(store), events);
  await checkRows(way, way.clickhouse(runtime.config), WARM_UP + events);
  return { ...sustained, costUs: totalOf(costs) };
}

/** The file as it was last rewritten, and as it is. */
async function appendedBytes({ runtime }: Store): Promise<{ base: number; size: number }> {
  const info = await runtime.redis.info("persistence");
  const read = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  return { base: read("aof_base_size"), size: read("aof_current_size") };
}

type AppendedBytes = Awaited<ReturnType<typeof appendedBytes>>;

function tellAppended({ name }: Way, before: AppendedBytes, after: AppendedBytes, events: number) {
  const bytes = Math.round((after.size - before.size) / events);
  const text = before.base === after.base ? `${bytes} bytes an event` : "rewritten meanwhile";
  tell(`${name}: append-only file ${text}`);
}

async function checkRows({ name }: Way, config: Config, events: number): Promise<void> {
  const clickhouse = await openClickhouse(config, "write");
  try {
    const answer = await clickhouse.query({
      query: `SELECT toUInt32(uniqExact(shipment_id, fact_key)) AS facts,
                (SELECT toUInt32(sum(bytes_on_disk) / sum(rows)) FROM system.parts
                 WHERE table = 'events' AND active) AS bytes
              FROM events`,
      format: "JSONEachRow",
    });
    const [found] = await answer.json<{ facts: number; bytes: number }>();
    tell(`${name}: ${found?.facts} rows, ${found?.bytes} bytes a row on the disk`);
    if (found?.facts !== events) throw new Error(`${found?.facts} rows of ${events} events`);
  } finally {
    await clickhouse.close();
  }
}

function figuresOf(ours: Measured, peer: Measured): Figure[] {
  const { early, late } = worstLag(ours);
  const lag: Figure = {
    row: 4,
    work: "lag of the slowest stage, second half",
    unit: "s",
    ours: late,
    beside: "its first half; below 1 s counts as 1 s",
    peer: early,
    goal: { most: 1.5 },
    alarm: null,
  };
  return [
    {
      row: 4,
      work: `end to end, sustained over ${SECONDS} s`,
      unit: "events/s",
      ours: ours.events / ours.seconds,
      beside: "the same work as BullMQ jobs",
      peer: peer.events / peer.seconds,
      goal: { least: 8 },
      alarm: { least: 1.2 },
    },
    {
      row: 4,
      work: "CPU of an event, all processes and Redis",
      unit: "us",
      ours: ours.costUs,
      beside: "the same work as BullMQ jobs",
      peer: peer.costUs,
      goal: { oursMost: 110 },
      alarm: null,
    },
    ...(SECONDS < FLAT_FROM_SECONDS ? [] : [lag]),
  ];
}

const store = await openStore(values.everysec);
const { redis } = store.runtime;
try {
  const startMs = performance.now();
  await loadShipments(store.runtime, store.env, SHIPMENTS);
  tell(`${SHIPMENTS} shipments loaded in ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
  const ours = await measure(store, OURS, 0);
  const { accepted, applied } = await readLedger(redis);
  const sent = WARM_UP + ours.events;
  if (accepted !== sent || applied !== sent) {
    throw new Error(`${accepted} accepted, ${applied} applied of ${sent} events`);
  }
  // Shipments that have had no event yet.
  const blocks = Math.ceil(sent / EVENTS_PER_BLOCK);
  const peer = await measure(store, PEER, blocks * EVENTS_PER_BLOCK);
  const fsync = values.everysec ? "everysec" : "always";
  const about = `${machine(await redisVersion(redis))}, appendfsync ${fsync}`;
  print(figuresOf(ours, peer), about, values.json);
} finally {
  await store.close();
}
