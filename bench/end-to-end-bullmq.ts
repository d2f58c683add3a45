/**
 * The work of row 4 as BullMQ jobs, one queue a stage, in the same processes as the product's: `bun bench/end-to-end-bullmq.ts
 * ingest|processors|analytics <JSON of the environment>`. A job is one event, as BullMQ has it: its worker is handed one at a time,
 * and only the last stage, whose job may wait, can put many together. Stages share rules, store and tables with ours. Left out, in
 * BullMQ's favour: at ingest rates, ledger, parking and a crash between claim and job, which loses it; for the state parking and
 * aliases; for decisions the test whether the configuration has changed; for rows the names of batches.
 *
 * `addBulk` for whole messages and jobs removed when done; commands of all jobs in hand share their way to Redis.
 */
import { join } from "node:path";
import type { Queue } from "bullmq";
import { Elysia } from "elysia";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import * as rows from "#analytics/write/rows.ts";
import * as events from "#core/events/rules/event.ts";
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
import { commitShipments, readHotShipments } from "#core/shipments/store/shipments.ts";
import { mapStatus } from "#core/statuses/rules/map-status.ts";
import { decide } from "#core/webhooks/rules/trigger.ts";
import { eventIdOf, recordDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { checkSignature, parseBody, readMessageBody } from "#ingest/messages/read-body.ts";
import { addFacts } from "#processors/track/commits.ts";
import * as bullmq from "./bullmq.ts";

/** One queue a stage. */
export const PEER_QUEUES = ["peer-state", "peer-decide", "peer-rows"] as const;
const [STATE, DECIDE, ROWS] = PEER_QUEUES;
/** Jobs of a stage in hand: what they say to Redis goes together. */
const CONCURRENCY = 200;
/** A job of the last stage waits for its batch. With 2,000 BullMQ takes longer to fetch them than they take to insert. */
const ROWS_AT_ONCE = 500;
const ROWS_LINGER_MS = 10;
/** Rounds of reading and committing again when another job got ahead. */
const ROUNDS = 10;
const JOB = { removeOnComplete: true, removeOnFail: 1_000, attempts: 5 } as const;

interface StateJob {
  readonly shipmentId: number;
  readonly factKey: string;
  readonly receivedAtMs: number;
  readonly messageIndex: number;
  readonly event: events.CourierEvent;
}

/** What the change log tells in the product. */
type ChangeJob = Readonly<{ shipmentId: number; change: Change }>;

/** A folder of its own, so that its rows can be counted. */
export function peerClickhouse(config: Config): Config {
  return { ...config, dataDir: join(config.dataDir, "peer") };
}

const queueOf = <T>(runtime: Runtime, name: string) => bullmq.queueOf<T>(runtime, name, JOB);

function workerOf<T>(
  runtime: Runtime,
  name: string,
  concurrency: number,
  work: (job: T) => Promise<void>,
) {
  const worker = bullmq.workerOf<T>(runtime, name, concurrency, work);
  const tellFailure = (error: Error) => process.stderr.write(`${name}: ${error.message}\n`);
  worker.on("failed", (_, error) => tellFailure(error));
  worker.on("error", tellFailure);
  return worker;
}

type Stop = () => Promise<unknown>;

async function ingest(runtime: Runtime): Promise<Stop> {
  const queue = queueOf<StateJob>(runtime, STATE);
  const { config } = runtime;
  const app = new Elysia()
    .get("/readyz", () => "ready")
    .post("/v1/events", ({ request }) => answer(runtime, queue, request), { parse: "none" })
    .listen({
      port: config.ports.ingest,
      hostname: config.host,
      maxRequestBodySize: 16 * events.BODY_LIMIT_BYTES,
    });
  return () => Promise.all([app.stop(), queue.close()]);
}

async function answer(runtime: Runtime, queue: Queue<StateJob>, request: Request) {
  const { redis, live, secrets } = runtime;
  const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
  const courier = live.configuration().courierByToken.get(hashToken(token));
  if (!courier) return new Response("unknown token", { status: 401 });
  const body = await readMessageBody(request);
  await checkSignature(request, body, courier, secrets.vault, live.now());
  const { value } = await parseBody(request, body);
  if (events.checkEnvelope(value).length > 0) return new Response("bad envelope", { status: 400 });
  const { messageId, events: all } = value as events.Envelope;
  const valid = (all as events.CourierEvent[]).filter((one) => events.checkEvent(one).length === 0);
  const references = valid.map((one) => trackingReference(courier.code, one.trackingNumber ?? ""));
  const candidates = await resolveReferences(redis, references);
  const seen = redis.multi();
  for (const { eventId } of valid) {
    seen.set(`peer:e:${courier.code}:${eventId}`, "1", { NX: true, EX: SEEN_TTL_SECONDS });
  }
  const claims = await seen.execAsPipeline();
  const receivedAtMs = live.now();
  const jobs = valid.flatMap((event, messageIndex) => {
    const [candidate] = candidates.get(references[messageIndex]?.key ?? "") ?? [];
    if (!candidate || claims[messageIndex] === null) return [];
    const { factKey } = seenBucket(courier.code, event.eventId);
    const { shipmentId } = candidate;
    return [{ name: "event", data: { shipmentId, factKey, receivedAtMs, messageIndex, event } }];
  });
  await queue.addBulk(jobs);
  const results = jobs.map(({ data }) => ({ eventId: data.event.eventId, outcome: "ACCEPTED" }));
  return Response.json({ messageId, accepted: jobs.length, results });
}

async function processors(runtime: Runtime): Promise<Stop> {
  const queues = [DECIDE, ROWS].map((name) => queueOf<ChangeJob>(runtime, name));
  const workers = [
    workerOf<StateJob>(runtime, STATE, CONCURRENCY, async (job) => {
      const data = await applyEvent(runtime, job);
      if (data) await Promise.all(queues.map((queue) => queue.add("change", data)));
    }),
    workerOf<ChangeJob>(runtime, DECIDE, CONCURRENCY, (job) => decideChange(runtime, job)),
  ];
  return async () => {
    for (const one of [...workers, ...queues]) await one.close();
  };
}

/** @returns null when the shipment knew the event */
async function applyEvent({ redis, live }: Runtime, job: StateJob): Promise<ChangeJob | null> {
  const { shipmentId, factKey, receivedAtMs, messageIndex, event } = job;
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = (await readHotShipments(redis, [shipmentId])).get(shipmentId);
    if (!from) throw new Error(`no shipment ${shipmentId}`);
    const courier = live.configuration().couriers.get(from.meta.courier);
    const mapping = mapStatus(courier?.catalogue ?? new Map(), event);
    const occurredAtMs = instantOf(event.occurredAt);
    const fact = { key: factKey, event, occurredAtMs, receivedAtMs, messageIndex, mapping };
    const { state, folded } = foldAll(from.state, [fact]);
    const { changes, ...commit } = addFacts(from, state, folded, 0);
    const [change] = changes;
    if (!change) return null;
    // The change goes on as jobs and not through the change log.
    const [outcome] = await commitShipments(redis, [{ ...commit, changes: [] }], live.now());
    if (outcome === "committed") return { shipmentId, change };
  }
  throw new Error("the shipment kept changing");
}

async function decideChange({ redis, live }: Runtime, job: ChangeJob): Promise<void> {
  const { shipmentId, change } = job;
  const { channelId, fact, changed, firstOccurrence } = change;
  const input = { status: fact.status, changed, firstOccurrence };
  const endpoints = live.configuration().channels.get(channelId)?.endpoints ?? [];
  const verdicts = endpoints.map((endpoint) => {
    const { id: endpointId, trigger } = endpoint;
    return { endpointId, trigger, verdict: decide(endpoint, input) };
  });
  const [entryId, eventId] = [`${fact.receivedAtMs}-0`, eventIdOf(DECIDE, fact.key)];
  const decision = { shipmentId, channelId, fact, eventId, entryId, verdicts };
  await recordDecisions(redis, [decision], live.now());
}

async function analytics(runtime: Runtime): Promise<Stop> {
  const { config, secrets } = runtime;
  const clickhouse = await openClickhouse(peerClickhouse(config), "write");
  await applySchema(clickhouse, config);
  const insert = async (jobs: readonly ChangeJob[]) => {
    const [facts, deliveries]: [rows.Row[], rows.Row[]] = [[], []];
    for (const { shipmentId, change } of jobs) {
      const company = secrets.vault.mac(`company ${change.companyId}`);
      const channel = secrets.vault.mac(`channel ${change.channelId}`);
      const owner = { shipmentId, company, channel };
      for (const event of change.events ?? []) facts.push(rows.eventTableRow(owner, event));
      if (change.lane) deliveries.push(rows.deliveredShipmentRow(owner, change.lane));
    }
    const batches = [[rows.DELIVERIES, deliveries] as const, [rows.EVENTS, facts] as const];
    for (const [{ name: table, columns: names }, values] of batches) {
      const columns = [...names] as [string, ...string[]];
      if (values.length === 0) continue;
      await clickhouse.insert({ table, columns, values, format: "JSONCompactEachRow" });
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
      [open, batch] = [[], null];
      await insert(jobs);
    });
    before = batch;
    return batch;
  };
}

if (import.meta.main) {
  const [role = "", env = "{}"] = process.argv.slice(2);
  const start = { ingest, processors, analytics }[role];
  if (!start) throw new Error("ingest, processors or analytics");
  const runtime = await openRuntime(readConfig(JSON.parse(env)), createLog("error"));
  const stop = await start(runtime);
  process.once("SIGTERM", async () => {
    await stop();
    await runtime.close();
    process.exit(0);
  });
}
