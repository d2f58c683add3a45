/**
 * What an event, a read and a webhook cost on a real Redis Cluster of six nodes, with `REDIS_WAIT_REPLICAS=1` and messages of 1, 20 and
 * 500 events: `bun bench/cluster-costs.ts [--runs 3] [--check] [--write]`. All figures are CPU time of the processes, so a machine that others
 * use too spoils them little; what the same processes take at rest is taken off. `--write` writes `bench/results/scale.json`, from which
 * `bench/scale-plan.ts` computes `docs/scale.md`. `--check` measures the line of messages of 20 once more, and fails if it is not within
 * `CHECK_FACTOR` of what is recorded.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { createClient } from "redis";
import { median } from "#bench/table.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { createLog } from "#core/platform/process/log.ts";
import { applySetupFile, openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { signIn } from "#test/support/clients/merchant.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { createAuthority, startReceiver } from "#test/support/servers/receiver.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import { benchSetup, loadPart, shipmentIdOf } from "./load-shipments.ts";
import { type Role, startRole, tell } from "./product-roles.ts";
import {
  CHECK_FACTOR,
  type ClusterCosts,
  COSTS_FILE,
  MESSAGE_SIZES,
  type MessageSize,
  type SizeCosts,
  totalOf,
} from "./scale-costs.ts";
import { runSustained } from "./sustained-run.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
  },
});
const RUNS = Number(values.runs);
const SHIPMENTS = 8_000;
/** Events of one run: enough for the 10 ms in which the system counts CPU time. */
const EVENTS: Record<MessageSize, number> = values.quick
  ? { 1: 300, 20: 1_000, 500: 2_000 }
  : { 1: 3_000, 20: 12_000, 500: 24_000 };
const READS = 4_000;
const READERS = 8;
const WEBHOOK_EVENTS = 4_000;
const REST_MS = 4_000;
const LIMIT_MS = 300_000;
const TICKS_PER_SECOND = 100;

const authority = await createAuthority();
const receiver = await startReceiver(await authority.issue(["localhost"]));
const cluster = await startTestCluster();
await cluster.everywhere("CONFIG", "SET", "cluster-require-full-coverage", "no");
const nodes = await Promise.all(
  cluster.urls.split(",").map(async (url) => {
    const client = createClient({ url });
    await client.connect();
    return client;
  }),
);
const dataDir = await mkdtemp(join(tmpdir(), "waybill-cluster-costs-"));
const [ingestPort, apiPort] = [await freePort(), await freePort()];
const env = {
  DATA_DIR: dataDir,
  REDIS_CLUSTER_URLS: cluster.urls,
  REDIS_WAIT_REPLICAS: "1",
  EVENTS_PER_DAY: "1000000",
  LOG_HIGH_WATER: "10000000",
  LOG_LEVEL: "error",
  PANEL_TOKEN: "panel-token-of-the-measurements",
  PATH: dirname(Bun.which("redis-server") ?? ""),
  WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8,::1/128",
  WEBHOOK_CA_FILE: authority.file,
  INGEST_PORT: String(ingestPort),
  API_PORT: String(apiPort),
};
const runtime = await openRuntime(readConfig(env), createLog("error"));
await applySetupFile(runtime, withRates(benchSetup()));
await loadPart(runtime, SHIPMENTS, 0, 1);
tell("shipments are loaded");
const roles = {
  ingest: startRole("ingest", "ingest/main.ts", env),
  api: startRole("api", "api/main.ts", env),
  processors: startRole("processors", "processors/main.ts", env),
  analytics: startRole("analytics", "analytics/main.ts", env),
};
let sent = 0;

/** Channels whose callers are never refused. */
function withRates(setup: SetupFile): SetupFile {
  const companies = (setup.companies ?? []).map((company) => ({
    ...company,
    channels: (company.channels ?? []).map((channel) => ({
      ...channel,
      rateLimit: { bucketSize: 100_000, refillRate: 10_000 },
    })),
  }));
  return { ...setup, companies };
}

/** With an endpoint beside the others whose webhook every event is. */
function withWebhooks(setup: SetupFile): SetupFile {
  const all = { code: "all", url: receiver.url, alertEmail: "ops@example.com" };
  const companies = (setup.companies ?? []).map((company) => ({
    ...company,
    channels: (company.channels ?? []).map((channel) => ({
      ...channel,
      webhooks: [...(channel.webhooks ?? []), { ...all, trigger: "every_event" as const }],
    })),
  }));
  return { ...setup, companies };
}

type Used = Readonly<
  Record<"ingest" | "api" | "processors" | "analytics" | "masters" | "replicas", number>
>;

/** CPU seconds so far. */
async function used(): Promise<Used> {
  const infos = await Promise.all(nodes.map((node) => node.sendCommand(["INFO", "all"])));
  const sum = { master: 0, slave: 0 };
  for (const info of infos.map(String)) {
    const field = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
    const role = /^role:(master|slave)/m.exec(info)?.[1] === "master" ? "master" : "slave";
    sum[role] += field("used_cpu_user") + field("used_cpu_sys");
  }
  const [ingest = 0, api = 0, processors = 0, analytics = 0] = await Promise.all(
    [roles.ingest, roles.api, roles.processors, roles.analytics].map(({ pid }) =>
      familySeconds(pid),
    ),
  );
  return { ingest, api, processors, analytics, masters: sum.master, replicas: sum.slave };
}

/** A process and its children, such as the embedded ClickHouse. */
async function familySeconds(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const pids = [pid, ...children.trim().split(" ").filter(Boolean).map(Number)];
  const seconds = await Promise.all(pids.map(ownSeconds));
  return seconds.reduce((total, one) => total + one, 0);
}

async function ownSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** CPU seconds of some work, what the processes take at rest taken off. */
async function costOf(atRest: Used, work: () => Promise<unknown>): Promise<Used> {
  const [before, fromMs] = [await used(), performance.now()];
  await work();
  const [after, seconds] = [await used(), (performance.now() - fromMs) / 1_000];
  return mapUsed((name) => Math.max(0, after[name] - before[name] - atRest[name] * seconds));
}

function mapUsed(of: (name: keyof Used) => number): Used {
  const names = ["ingest", "api", "processors", "analytics", "masters", "replicas"] as const;
  return Object.fromEntries(names.map((name) => [name, of(name)])) as unknown as Used;
}

/** A second of each at rest. */
async function rest(): Promise<Used> {
  const [before, fromMs] = [await used(), performance.now()];
  await Bun.sleep(REST_MS);
  const [after, seconds] = [await used(), (performance.now() - fromMs) / 1_000];
  return mapUsed((name) => (after[name] - before[name]) / seconds);
}

const paused: readonly Role[] = [roles.processors, roles.analytics];
const signal = (name: "SIGSTOP" | "SIGCONT") => {
  for (const { pid } of paused) process.kill(pid, name);
};

async function send(size: MessageSize, events: number): Promise<void> {
  const url = `http://127.0.0.1:${ingestPort}`;
  await runSustained({
    url,
    from: sent,
    limit: events,
    perMessage: size,
    seconds: LIMIT_MS / 1_000,
    population: { shipments: SHIPMENTS, active: SHIPMENTS, underway: SHIPMENTS / 4 },
    behind: async () => [],
  });
  sent += events;
}

const isThrough = async () => (await readLags(runtime.redis)).every(({ entries }) => entries === 0);

async function workOff(): Promise<void> {
  await eventually(isThrough, "everything is processed", LIMIT_MS, 200);
}

/** First ingest alone, the others stopped; then they work off what it has logged. */
async function measureSize(size: MessageSize): Promise<SizeCosts> {
  const events = EVENTS[size];
  const atRest = await rest();
  signal("SIGSTOP");
  const ingest = await costOf(atRest, () => send(size, events));
  signal("SIGCONT");
  const work = await costOf(atRest, workOff);
  const each = (seconds: number) => (seconds * 1e6) / events;
  return {
    ingest: each(ingest.ingest),
    masterForIngest: each(ingest.masters),
    replicaForIngest: each(ingest.replicas),
    processors: each(work.processors),
    analytics: each(work.analytics),
    masterForWork: each(work.masters),
    replicaForWork: each(work.replicas),
  };
}

async function measureReads(): Promise<ClusterCosts["read"]> {
  const merchant = await signIn(`http://127.0.0.1:${apiPort}`, "key_of_company_0");
  const costs = await costOf(await rest(), async () => {
    let next = 0;
    const reader = async () => {
      for (; next < READS; next += 1) {
        const id = shipmentIdOf(runtime, (next % (SHIPMENTS / 16)) * 16);
        const { status } = await merchant.call("GET", `/v2/shipments/${id}`);
        if (status !== 200) throw new Error(`a read was answered ${status}`);
      }
    };
    await Promise.all(Array.from({ length: READERS }, reader));
  });
  const each = (seconds: number) => (seconds * 1e6) / READS;
  return { api: each(costs.api), master: each(costs.masters) };
}

/** What the same events cost more where each is a webhook. */
async function measureWebhooks(without: SizeCosts): Promise<ClusterCosts["webhook"]> {
  await applySetupFile(runtime, withWebhooks(withRates(benchSetup())));
  const delivered = async () => (await readLedger(runtime.redis)).delivered;
  await send(500, 500);
  await eventually(async () => (await delivered()) > 0 && isThrough(), "webhooks begin", LIMIT_MS);
  await eventually(() => receiver.requests.length >= 500, "they are through", LIMIT_MS);
  const atRest = await rest();
  const before = await delivered();
  signal("SIGSTOP");
  await send(500, WEBHOOK_EVENTS);
  signal("SIGCONT");
  const costs = await costOf(atRest, async () => {
    await workOff();
    const isDone = async () => (await delivered()) - before >= WEBHOOK_EVENTS;
    await eventually(isDone, "every webhook is delivered", LIMIT_MS, 200);
  });
  const each = (seconds: number, base: number) => (seconds * 1e6) / WEBHOOK_EVENTS - base;
  return {
    processors: each(costs.processors, without.processors),
    analytics: each(costs.analytics, without.analytics),
    master: each(costs.masters, without.masterForWork),
    replica: each(costs.replicas, without.replicaForWork),
  };
}

function medians<T extends object>(runs: readonly T[]): T {
  const [first] = runs;
  const entries = Object.keys(first ?? {}).map((name) => [
    name,
    Math.round(median(runs.map((run) => run[name as keyof T] as number))),
  ]);
  return Object.fromEntries(entries) as T;
}

async function warmUp(): Promise<void> {
  const isUp = (port: number) =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const areUp = async () => (await isUp(ingestPort)) && (await isUp(apiPort));
  await eventually(areUp, "ready", LIMIT_MS);
  // Code that has not run often is slower.
  await send(500, 12_000);
  await send(1, 500);
  await workOff();
  tell("warm");
}

const CHECKED: MessageSize = 20;

function checkOf(recorded: SizeCosts, again: SizeCosts): ClusterCosts["check"] {
  return {
    messageSize: CHECKED,
    predicted: totalOf(recorded),
    measured: Math.round(totalOf(again)),
  };
}

/** @returns what is recorded, with the line that was measured again */
async function checkLine(): Promise<ClusterCosts> {
  const recorded = (await Bun.file(COSTS_FILE).json()) as ClusterCosts;
  const check = checkOf(recorded.messages[CHECKED], await measureSize(CHECKED));
  tell(`an event of messages of ${CHECKED}: ${check.measured} us, recorded ${check.predicted}`);
  const ratio = check.measured / check.predicted;
  if (ratio > CHECK_FACTOR || ratio < 1 / CHECK_FACTOR) process.exitCode = 1;
  return { ...recorded, check };
}

async function measureAll(): Promise<ClusterCosts> {
  const bySize = new Map<MessageSize, SizeCosts>();
  for (const size of MESSAGE_SIZES) {
    const runs: SizeCosts[] = [];
    for (let run = 0; run < RUNS; run += 1) {
      runs.push(await measureSize(size));
      tell(`${size}: ${JSON.stringify(runs.at(-1))}`);
    }
    bySize.set(size, medians(runs));
  }
  const reads: ClusterCosts["read"][] = [];
  for (let run = 0; run < RUNS; run += 1) reads.push(await measureReads());
  tell(`reads: ${JSON.stringify(reads)}`);
  const large = bySize.get(500);
  if (!large) throw new Error("not measured");
  const check = checkOf(bySize.get(CHECKED) ?? large, await measureSize(CHECKED));
  const webhooks: ClusterCosts["webhook"][] = [];
  for (let run = 0; run < RUNS; run += 1) webhooks.push(await measureWebhooks(large));
  const model = (await readFile("/proc/cpuinfo", "utf8")).match(/model name\s*: (.+)/)?.[1];
  const redis = /redis_version:(\S+)/.exec(String(await nodes[0]?.sendCommand(["INFO", "server"])));
  return {
    machine: `${cpus().length} cores of ${model}, Bun ${Bun.version}, Redis ${redis?.[1]}`,
    shipments: SHIPMENTS,
    runs: RUNS,
    messages: Object.fromEntries(bySize) as ClusterCosts["messages"],
    check,
    read: medians(reads),
    webhook: medians(webhooks),
  };
}

async function end(opened: Runtime): Promise<void> {
  signal("SIGCONT");
  for (const role of Object.values(roles)) await role.stop();
  await opened.close();
  for (const node of nodes) node.destroy();
  await cluster.stop();
  await receiver.stop();
  await authority.end();
  await rm(dataDir, { recursive: true, force: true });
}

try {
  await warmUp();
  const costs = values.check ? await checkLine() : await measureAll();
  const text = `${JSON.stringify(costs, null, 2)}\n`;
  if (values.write) await Bun.write(COSTS_FILE, text);
  process.stdout.write(text);
} finally {
  await end(runtime);
}
