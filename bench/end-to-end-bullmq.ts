/**
 * The work of row 4 as BullMQ jobs, one queue a stage: `bun bench/end-to-end-bullmq.ts ingest|processors|analytics <JSON of
 * the environment>`, which are the same processes as the product's. A job is one event, as BullMQ has it: its worker is
 * handed one at a time, and only the last stage, whose job may wait, can put many together.
 *
 * | stage     | the same                                             | left out, in BullMQ's favour                  |
 * |-----------|------------------------------------------------------|-----------------------------------------------|
 * | ingest    | message, signature, parser, schema, reference store; | rates, ledger, counts for the analytics,      |
 * |           | eventIds for 183 days by `SET NX EX`, one pipeline   | parking; a crash between claim and job loses  |
 * | state     | shipments in the same store: read, map, fold, commit | parking and alias look-up                     |
 * | decisions | the same rule, recorded by the same script           | test for configuration that has changed       |
 * | rows      | tables, rows, batches                                | names of batches: a repeated job inserts again |
 *
 * `addBulk` for whole messages and jobs removed when done; commands of all jobs in hand share their way to Redis; BullMQ
 * itself through Bun's client, the fastest of those it takes.
 */
import { join } from "node:path";
import { createBunRedisClient, type Job, Queue, Worker } from "bullmq";
import { RedisClient } from "bun";
import { Elysia } from "elysia";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import {
  DELIVERIES,
  deliveredShipmentRow,
  EVENTS,
  eventTableRow,
  type Row,
} from "#analytics/write/rows.ts";
import {
  BODY_LIMIT_BYTES,
  type CourierEvent,
  checkEnvelope,
  checkEvent,
  type Envelope,
} from "#core/events/rules/event.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import { SEEN_TTL_SECONDS, seenBucket } from "#core/events/store/seen.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { trackingReference } from "#core/platform/redis/keys.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import { foldAll } from "#core/shipments/rules/fold.ts";
import type { Change } from "#core/shipments/store/change-log.ts";
import {
  commitShipments,
  type HotShipment,
  readHotShipments,
} from "#core/shipments/store/shipments.ts";
import { mapStatus } from "#core/statuses/rules/map-status.ts";
import { decide } from "#core/webhooks/rules/trigger.ts";
import { eventIdOf, recordDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { checkSignature, parseBody, readBody } from "#ingest/messages/read-body.ts";
import { addFacts } from "#processors/track/commits.ts";

/** One queue a stage. */
export const PEER_QUEUES = ["peer-state", "peer-decide", "peer-rows"] as const;
const [STATE, DECIDE, ROWS] = PEER_QUEUES;
/** Jobs of a stage in hand: what they say to Redis goes together. */
const CONCURRENCY = 200;
/** A job of the last stage waits for its batch. With 2,000 BullMQ takes longer to fetch them than they take to insert. */
const ROWS_AT_ONCE = 500;
const FAILURES_TOLD = 5;
const ROWS_LINGER_MS = 10;
/** Rounds of reading and committing again when another job got ahead. */
const ROUNDS = 10;
const JOB = { removeOnComplete: true, removeOnFail: 1_000, attempts: 5 } as const;

interface StateJob {
  readonly shipmentId: number;
  readonly factKey: string;
  readonly receivedAtMs: number;
  readonly messageIndex: number;
  readonly event: CourierEvent;
}

/** What the change log tells in the product. */
interface ChangeJob {
  readonly shipmentId: number;
  readonly change: Change;
}

/** A folder of its own, so that its rows can be counted. */
export function peerClickhouse(config: Config): Config {
  return { ...config, dataDir: join(config.dataDir, "peer") };
}

/** Path of the Unix socket of the embedded Redis. */
function addressOf({ redis }: Runtime): string {
  const { path } = (redis.options?.socket ?? {}) as { path?: string };
  return `redis+unix://${path}`;
}

const connect = (runtime: Runtime) => createBunRedisClient(new RedisClient(addressOf(runtime)));

function queueOf<T>(runtime: Runtime, name: string): Queue<T> {
  return new Queue<T>(name, { connection: connect(runtime), defaultJobOptions: JOB });
}

function workerOf<T>(
  runtime: Runtime,
  name: string,
  concurrency: number,
  work: (job: T) => Promise<void>,
): Worker<T> {
  const worker = new Worker<T>(name, ({ data }: Job<T>) => work(data), {
    connection: connect(runtime),
    concurrency,
  });
  let failures = 0;
  const tellFailure = (error: Error) => {
    failures += 1;
    if (failures <= FAILURES_TOLD) process.stderr.write(`${name}: ${error.message}\n`);
  };
  worker.on("failed", (_, error) => tellFailure(error));
  worker.on("error", tellFailure);
  return worker;
}

type Stop = () => Promise<unknown>;

async function ingest(runtime: Runtime): Promise<Stop> {
  const queue = queueOf<StateJob>(runtime, STATE);
  const app = new Elysia()
    .get("/readyz", () => "ready")
    .post("/v1/events", ({ request }) => answer(runtime, queue, request), { parse: "none" })
    .listen({
      port: runtime.config.ports.ingest,
      hostname: runtime.config.host,
      maxRequestBodySize: 16 * BODY_LIMIT_BYTES,
    });
  return async () => {
    await app.stop();
    await queue.close();
  };
}

async function answer(runtime: Runtime, queue: Queue<StateJob>, request: Request) {
  const { redis, live, secrets } = runtime;
  const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
  const courier = live.configuration().courierByToken.get(hashToken(token));
  if (!courier) return new Response("unknown token", { status: 401 });
  const body = await readBody(request);
  await checkSignature(request, body, courier, secrets.vault, live.now());
  const { value } = await parseBody(request, body);
  if (checkEnvelope(value).length > 0) return new Response("bad envelope", { status: 400 });
  const { messageId, events } = value as Envelope;
  const valid = (events as CourierEvent[]).filter((event) => checkEvent(event).length === 0);
  const references = valid.map((one) => trackingReference(courier.code, one.trackingNumber ?? ""));
  const candidates = await resolveReferences(redis, references);
  const seen = redis.multi();
  for (const { eventId } of valid) {
    seen.set(`peer:e:${courier.code}:${eventId}`, "1", { NX: true, EX: SEEN_TTL_SECONDS });
  }
  const claims = await seen.execAsPipeline();
  const receivedAtMs = live.now();
  const jobs = valid.flatMap((event, at) => {
    const [candidate] = candidates.get(references[at]?.key ?? "") ?? [];
    if (!candidate || claims[at] === null) return [];
    const { factKey } = seenBucket(courier.code, event.eventId);
    const { shipmentId } = candidate;
    return [
      { name: "event", data: { shipmentId, factKey, receivedAtMs, messageIndex: at, event } },
    ];
  });
  await queue.addBulk(jobs);
  const results = jobs.map(({ data }) => ({ eventId: data.event.eventId, outcome: "ACCEPTED" }));
  return Response.json({ messageId, accepted: jobs.length, results });
}

async function processors(runtime: Runtime): Promise<Stop> {
  const decisions = queueOf<ChangeJob>(runtime, DECIDE);
  const rows = queueOf<ChangeJob>(runtime, ROWS);
  const workers = [
    workerOf<StateJob>(runtime, STATE, CONCURRENCY, async (job) => {
      const data = await applyEvent(runtime, job);
      if (data) await Promise.all([decisions.add("change", data), rows.add("change", data)]);
    }),
    workerOf<ChangeJob>(runtime, DECIDE, CONCURRENCY, (job) => decideChange(runtime, job)),
  ];
  return async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await Promise.all([decisions.close(), rows.close()]);
  };
}

/** @returns null when the shipment knew the event */
async function applyEvent(runtime: Runtime, job: StateJob): Promise<ChangeJob | null> {
  const { redis, live } = runtime;
  const { shipmentId } = job;
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = (await readHotShipments(redis, [shipmentId])).get(shipmentId);
    if (!from) throw new Error(`no shipment ${shipmentId}`);
    const { state, folded } = foldAll(from.state, [factOf(runtime, from, job)]);
    const { changes, ...commit } = addFacts(from, state, folded, 0);
    const [change] = changes;
    if (!change) return null;
    // The change goes on as jobs and not through the change log.
    const [outcome] = await commitShipments(redis, [{ ...commit, changes: [] }], live.now());
    if (outcome === "committed") return { shipmentId, change };
  }
  throw new Error("the shipment kept changing");
}

function factOf({ live }: Runtime, { meta }: HotShipment, job: StateJob): Fact {
  const { factKey, receivedAtMs, messageIndex, event } = job;
  const catalogue = live.configuration().couriers.get(meta.courier)?.catalogue ?? new Map();
  const occurredAtMs = instantOf(event.occurredAt);
  const mapping = mapStatus(catalogue, event);
  return { key: factKey, event, occurredAtMs, receivedAtMs, messageIndex, mapping };
}

async function decideChange({ redis, live }: Runtime, job: ChangeJob): Promise<void> {
  const { shipmentId, change } = job;
  const { channelId, fact, changed, firstOccurrence } = change;
  const endpoints = live.configuration().channels.get(channelId)?.endpoints ?? [];
  const input = { status: fact.status, changed, firstOccurrence };
  const verdicts = endpoints.map((endpoint) => ({
    endpointId: endpoint.id,
    trigger: endpoint.trigger,
    verdict: decide(endpoint, input),
  }));
  const [entryId, eventId] = [`${fact.receivedAtMs}-0`, eventIdOf(DECIDE, fact.key)];
  const decision = { shipmentId, channelId, fact, eventId, entryId, verdicts };
  await recordDecisions(redis, [decision], live.now());
}

async function analytics(runtime: Runtime): Promise<Stop> {
  const { config, secrets } = runtime;
  const clickhouse = await openClickhouse(peerClickhouse(config), "write");
  await applySchema(clickhouse, config);
  const ownerOf = ({ shipmentId, change: { companyId, channelId } }: ChangeJob) => ({
    shipmentId,
    company: secrets.vault.mac(`company ${companyId}`),
    channel: secrets.vault.mac(`channel ${channelId}`),
  });
  const insert = async (jobs: readonly ChangeJob[]) => {
    const events: Row[] = [];
    const deliveries: Row[] = [];
    for (const job of jobs) {
      const owner = ownerOf(job);
      for (const event of job.change.events ?? []) events.push(eventTableRow(owner, event));
      if (job.change.lane) deliveries.push(deliveredShipmentRow(owner, job.change.lane));
    }
    const batches = [
      { ...DELIVERIES, values: deliveries },
      { ...EVENTS, values: events },
    ];
    for (const { name: table, columns, values } of batches) {
      const into = { table, columns: [...columns] as [string, ...string[]] };
      if (values.length === 0) continue;
      await clickhouse.insert({ ...into, values, format: "JSONCompactEachRow" });
    }
  };
  const worker = workerOf<ChangeJob>(runtime, ROWS, ROWS_AT_ONCE, batched(insert));
  return async () => {
    await worker.close();
    await clickhouse.close();
  };
}

/** BullMQ hands out single jobs: they meet here, and each is done when its batch is. */
function batched(insert: (jobs: readonly ChangeJob[]) => Promise<void>) {
  let open: ChangeJob[] = [];
  let batch: Promise<void> | null = null;
  let before: Promise<void> = Promise.resolve();
  return (job: ChangeJob): Promise<void> => {
    open.push(job);
    batch ??= before.then(async () => {
      await Bun.sleep(ROWS_LINGER_MS);
      const jobs = open;
      open = [];
      batch = null;
      await insert(jobs);
    });
    before = batch;
    return batch;
  };
}

async function main(): Promise<void> {
  const [role = "", env = "{}"] = process.argv.slice(2);
  const runtime = await openRuntime(readConfig(JSON.parse(env)), createLog("error"));
  const start = { ingest, processors, analytics }[role];
  if (!start) throw new Error("ingest, processors or analytics");
  const stop = await start(runtime);
  process.once("SIGTERM", async () => {
    await stop();
    await runtime.close();
    process.exit(0);
  });
}

if (import.meta.main) await main();
