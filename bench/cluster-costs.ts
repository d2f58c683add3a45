/**
 * What an event, a read and a webhook cost on a real Redis Cluster of six nodes, with `REDIS_WAIT_REPLICAS=1` and messages of 1, 20 and
 * 500 events: `bun bench/cluster-costs.ts [--runs 3] [--quick]`. All figures are CPU time of the processes, so a machine that
 * others use too spoils them little; what the same processes take at rest is taken off. `--write` writes `bench/results/scale.json`,
 * from which `tools/scale/plan.ts` computes `docs/scale.md`.
 */
import { readFile } from "node:fs/promises";
import { createClient } from "redis";
import { readConfig } from "#core/platform/environment/config.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { createLog } from "#core/platform/process/log.ts";
import { applySetupFile, openRuntime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { signIn } from "#test/support/clients/merchant.ts";
import { eventually } from "#test/support/eventually.ts";
import { AUTHORITY, startReceiver } from "#test/support/servers/receiver.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import * as scale from "#tools/scale/formulas.ts";
import * as harness from "./harness.ts";
import { benchSetup, loadPart, shipmentIdOf } from "./shipments.ts";
import { runSustained } from "./sustained-run.ts";
import { median } from "./table.ts";

const isWriting = process.argv.includes("--write");
process.argv = process.argv.filter((one) => one !== "--write");
/** Events of one run: enough for the 10 ms in which the system counts CPU time. */
const sizes = harness.readOptions({
  runs: [3, 1],
  events1: [3_000, 300],
  events20: [12_000, 1_000],
  events500: [24_000, 2_000],
  reads: [4_000, 400],
  webhooks: [4_000, 500],
});
const SHIPMENTS = 8_000;
const READERS = 8;
const REST_MS = 4_000;
const CHECKED = 20;

await using stack = new AsyncDisposableStack();
const defer = harness.deferTo(stack);
const receiver = await startReceiver();
defer(receiver.stop);
const cluster = await startTestCluster();
defer(cluster.stop);
await cluster.everywhere("CONFIG", "SET", "cluster-require-full-coverage", "no");
const nodes = cluster.urls.split(",").map((url) => createClient({ url }));
for (const node of nodes) await node.connect();
defer(() => nodes.map((node) => node.destroy()));
const env = {
  ...harness.COMMON_ENV,
  DATA_DIR: await harness.tempFolder(defer),
  REDIS_CLUSTER_URLS: cluster.urls,
  REDIS_WAIT_REPLICAS: "1",
  WEBHOOK_CA_FILE: AUTHORITY.file,
};
const runtime = await openRuntime(readConfig(env), createLog("error"));
defer(() => runtime.close());
await applySetupFile(runtime, setupOf([]));
await loadPart(runtime, SHIPMENTS, 0, 1);
defer(harness.stopAll);
const processors = harness.startRole("processors", env);
const analytics = harness.startRole("analytics", env);
const ingest = await harness.startServer("ingest", env);
const api = await harness.startServer("api", env);
const roles = { ingest, api, processors, analytics };
let sent = 0;

/** Channels whose callers are never refused. @param urls of endpoints beside the others, whose webhook every event is */
function setupOf(urls: readonly string[]): SetupFile {
  const setup = benchSetup();
  for (const channel of (setup.companies ?? []).flatMap(({ channels = [] }) => channels)) {
    channel.rateLimit = { bucketSize: 100_000, refillRate: 10_000 };
    const common = { alertEmail: "ops@example.com", trigger: "every_event" as const };
    const more = urls.map((url) => ({ ...common, code: "all", url }));
    channel.webhooks = [...(channel.webhooks ?? []), ...more];
  }
  return setup;
}

const NOTHING = { master: 0, slave: 0, ingest: 0, api: 0, processors: 0, analytics: 0 };
type Used = typeof NOTHING;

/** CPU seconds so far. */
async function used(): Promise<Used> {
  const sum = { ...NOTHING };
  for (const node of nodes) {
    const info = String(await node.sendCommand(["INFO", "all"]));
    const field = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
    const role = info.includes("role:master") ? "master" : "slave";
    sum[role] += field("used_cpu_user") + field("used_cpu_sys");
  }
  for (const name of ["ingest", "api", "processors", "analytics"] as const) {
    const { pid } = roles[name];
    // Its children too, such as the embedded ClickHouse.
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
    for (const one of [pid, ...children.split(" ").filter(Boolean).map(Number)]) {
      sum[name] += await harness.processSeconds(one);
    }
  }
  return sum;
}

/** CPU microseconds of some work for each of so many, what the processes take at rest taken off. */
async function costOf(count: number, atRest: Used, work: () => Promise<unknown>): Promise<Used> {
  const before = await used();
  const seconds = (await harness.timedMs(work)) / 1_000;
  const after = await used();
  const costs = Object.entries(after).map(([name, value]) => {
    const key = name as keyof Used;
    return [name, (Math.max(0, value - before[key] - atRest[key] * seconds) * 1e6) / count];
  });
  return Object.fromEntries(costs) as Used;
}

/** CPU seconds of a second at rest. */
const rest = () => costOf(REST_MS * 1_000, NOTHING, () => Bun.sleep(REST_MS));

async function send(perMessage: scale.MessageSize, limit: number): Promise<void> {
  const population = { shipments: SHIPMENTS, active: SHIPMENTS, underway: SHIPMENTS / 4 };
  const seconds = harness.LIMIT_MS / 1_000;
  await runSustained({ url: ingest.url, from: sent, limit, perMessage, seconds, population });
  sent += limit;
}

/** While processors and analytics are stopped. */
async function whileStopped<T>(work: () => Promise<T>): Promise<T> {
  const signal = (name: NodeJS.Signals) =>
    [processors, analytics].map(({ pid }) => process.kill(pid, name));
  signal("SIGSTOP");
  return work().finally(() => signal("SIGCONT"));
}

async function processAll(): Promise<void> {
  const isThrough = async () =>
    (await readLags(runtime.redis)).every(({ entries }) => entries === 0);
  await eventually(isThrough, "everything is processed", harness.LIMIT_MS, 200);
}

/** First ingest alone, the others stopped; then they process what it has logged. */
async function measureSize(size: scale.MessageSize): Promise<scale.SizeCosts> {
  const events = sizes[`events${size}`];
  const atRest = await rest();
  const first = await whileStopped(() => costOf(events, atRest, () => send(size, events)));
  const work = await costOf(events, atRest, processAll);
  const costs = {
    ingest: first.ingest,
    masterForIngest: first.master,
    replicaForIngest: first.slave,
    processors: work.processors,
    analytics: work.analytics,
    masterForWork: work.master,
    replicaForWork: work.slave,
  };
  return costs;
}

async function measureReads(): Promise<scale.ClusterCosts["read"]> {
  const { call } = await signIn(api.url, "key_of_company_0");
  const ids = Array.from({ length: sizes.reads }, (_, n) =>
    shipmentIdOf(runtime, (n % (SHIPMENTS / 16)) * 16),
  );
  const costs = await costOf(sizes.reads, await rest(), () =>
    harness.forEach(ids, READERS, async (id) => {
      const { status } = await call("GET", `/v2/shipments/${id}`);
      if (status !== 200) throw new Error(`a read was answered ${status}`);
    }),
  );
  return { api: costs.api, master: costs.master };
}

/** What the same events cost more where each is a webhook. */
async function measureWebhooks(without: scale.SizeCosts): Promise<scale.ClusterCosts["webhook"]> {
  await applySetupFile(runtime, setupOf([receiver.url]));
  const through = async (from: number, count: number) => {
    const isDone = async () => (await readLedger(runtime.redis)).delivered - from >= count;
    await eventually(isDone, "every webhook is delivered", harness.LIMIT_MS, 200);
  };
  const { delivered: none } = await readLedger(runtime.redis);
  await send(500, 500);
  await through(none, 500);
  const atRest = await rest();
  const { delivered: before } = await readLedger(runtime.redis);
  await whileStopped(() => send(500, sizes.webhooks));
  const costs = await costOf(sizes.webhooks, atRest, async () => {
    await processAll();
    await through(before, sizes.webhooks);
  });
  return {
    processors: costs.processors - without.processors,
    analytics: costs.analytics - without.analytics,
    master: costs.master - without.masterForWork,
    replica: costs.slave - without.replicaForWork,
  };
}

/** Of several runs. */
async function medians<T extends object>(measure: () => Promise<T>): Promise<T> {
  const runs: T[] = [];
  for (let run = 0; run < sizes.runs; run += 1) runs.push(await measure());
  const entries = Object.keys(runs[0] ?? {}).map((name) => {
    return [name, Math.round(median(runs.map((run) => run[name as keyof T] as number)))];
  });
  return Object.fromEntries(entries) as T;
}

async function checkOf(recorded: scale.SizeCosts): Promise<scale.ClusterCosts["check"]> {
  const predicted = Math.round(harness.totalOf({ ...recorded }));
  const measured = Math.round(harness.totalOf({ ...(await measureSize(CHECKED)) }));
  return { messageSize: CHECKED, predicted, measured };
}

async function measureAll(): Promise<scale.ClusterCosts> {
  const messages = {
    1: await medians(() => measureSize(1)),
    20: await medians(() => measureSize(20)),
    500: await medians(() => measureSize(500)),
  };
  const read = await medians(measureReads);
  const check = await checkOf(messages[CHECKED]);
  const webhook = await medians(() => measureWebhooks(messages[500]));
  const machine = await harness.machineText(runtime.redis);
  return { machine, shipments: SHIPMENTS, runs: sizes.runs, messages, check, read, webhook };
}

// Code that has not run often is slower.
await send(500, 12_000);
await send(1, 500);
await processAll();
const text = `${JSON.stringify(await measureAll(), null, 2)}\n`;
if (isWriting) await Bun.write(scale.COSTS_FILE, text);
process.stdout.write(text);
