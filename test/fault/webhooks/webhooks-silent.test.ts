/** Document 3, Limits and Transport rules: a receiver that never answers keeps the schedule, and costs nobody a slot. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { ServerResponse } from "node:http";
import { percentile } from "#bench/table.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { START_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import { retryWaitMs } from "#core/webhooks/rules/retry-schedule.ts";
import {
  type Decision,
  type Delivery,
  eventIdOf,
  readDeliveries,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { readEndpointLoad } from "#core/webhooks/store/endpoint-load.ts";
import { type Deliverer, startDeliverer } from "#processors/webhooks/deliver.ts";
import type { DeliverLimits } from "#processors/webhooks/deliver-limits.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  endpointOf,
  newShipment,
  openWebhookRuntime,
  passTime,
  sendDeps,
} from "#test/support/product/webhooks.ts";
import { type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

/**
 * Small beside the real thing (20,000 deliveries): a tenth of the timeout and of the ten minutes, an
 * eightieth of the deliveries and a fortieth of what may be under way, so that a busy machine is not what delays them.
 */
const SMALL = { limitMs: 1_000, deliveries: 250, underWay: 25, lateMs: 60_000 };
const ATTEMPT = "x-service-delivery-attempt";
/** Limit of a request where each has to arrive. */
const PATIENT_MS = 5_000;
const SLOW_MS = 300;

let hanging: Receiver;
let quick: Receiver;
let runtime: TestRuntime;
let shipmentId: number;
let deliverers: Deliverer[];
let held: ServerResponse[];
let others: ReturnType<typeof setInterval> | undefined;

beforeEach(async () => {
  [hanging, quick] = await Promise.all([startReceiver(), startReceiver()]);
  held = [];
  hanging.behave((_, response) => void held.push(response));
  runtime = await openWebhookRuntime([
    { code: "silent", url: hanging.url },
    { code: "mute", url: `${hanging.url}/mute` },
    { code: "quick", url: quick.url },
  ]);
  shipmentId = await newShipment(runtime);
  deliverers = [];
});

afterEach(async () => {
  clearInterval(others);
  hanging.behave(200);
  for (const response of held) response.end();
  for (const deliverer of deliverers) await deliverer.stop();
  await runtime.end();
  await Promise.all([hanging.stop(), quick.stop()]);
});

/** @param limitMs of a request; a busy machine may end some before they have arrived */
function start(limits: Partial<DeliverLimits> = {}, limitMs = SMALL.limitMs): void {
  const { redis, log } = runtime;
  const deps = sendDeps(runtime, { limitMs });
  deliverers.push(startDeliverer({ redis, log, ...deps, limits: { slowMs: SLOW_MS, ...limits } }));
}

let changes = 0;

async function queue(code: string, count: number): Promise<void> {
  const { id, channelId } = endpointOf(runtime, code);
  const decisions = Array.from({ length: count }, (): Decision => {
    changes += 1;
    const ids = { eventId: eventIdOf("silent", `${changes}-0`), entryId: `${changes}-0` };
    const text = { key: `fact-${changes}`, courierStatus: "In transito", place: null, detail: 0 };
    return {
      shipmentId,
      channelId,
      ...ids,
      fact: { ...text, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT" },
      verdicts: [{ endpointId: id, trigger: "every_event", verdict: "send" }],
    };
  });
  await recordDecisions(runtime.redis, decisions, runtime.live.now());
}

function partitionOf(code: string): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(endpointOf(runtime, code).channelId)?.companyId ?? 0);
}

function keysOf(code: string) {
  const { id } = endpointOf(runtime, code);
  const keys = webhookKeys(partitionOf(code));
  return { ...keys, id, own: { log: keys.log(id), retries: keys.retries(id) } };
}

async function allOf(code: string): Promise<Delivery[]> {
  const ids = await runtime.redis.zRange(keysOf(code).own.log, 0, -1);
  const found: Delivery[] = [];
  for (const part of chunks(ids, 500)) {
    found.push(...(await readDeliveries(runtime.redis, part, runtime.live.now())));
  }
  return found;
}

/** How many deliveries have had so many attempts and nothing under way. */
async function waiting(code: string, attempts: number): Promise<number> {
  const all = await allOf(code);
  return all.filter(({ state, attemptsMade }) => state === "waiting" && attemptsMade === attempts)
    .length;
}

async function concurrencyOf(code: string): Promise<number> {
  const { maxConcurrency } = endpointOf(runtime, code);
  const nowMs = runtime.live.now();
  const { id, partition } = { ...keysOf(code), partition: partitionOf(code) };
  return (await readEndpointLoad(runtime.redis, partition, id, maxConcurrency, nowMs)).concurrency;
}

/** Makes requests to an endpoint time out, so that it counts as silent. */
async function silence(code: string): Promise<void> {
  await queue(code, 1);
  await eventually(async () => (await waiting(code, 1)) === 1, `${code} has not answered`);
}

test(`${SMALL.deliveries} deliveries to a receiver that never answers stay on schedule, and others are served meanwhile`, async () => {
  const { deliveries, underWay, lateMs } = SMALL;
  start({ silentInFlightPerEndpoint: underWay });
  await queue("silent", deliveries);
  let sent = 0;
  others = setInterval(() => {
    sent += 1;
    void queue("quick", 1);
  }, 50);
  const isDone = async (attempts: number) => (await waiting("silent", attempts)) === deliveries;
  await eventually(() => isDone(1), "every first attempt is made", lateMs);
  const [next] = await runtime.redis.zRangeWithScores(keysOf("silent").own.retries, 0, 0);
  const idleMs = (next?.score ?? 0) - runtime.live.now();
  if (idleMs > 1_000) await passTime(runtime, Math.floor(idleMs / 1_000));
  await eventually(() => isDone(2), "every second attempt is made", lateMs);
  clearInterval(others);
  const early: number[] = [];
  const late: number[] = [];
  for (const { createdAtMs, attempts } of await allOf("silent")) {
    const [first, second] = attempts;
    if (!first || !second) throw new Error("an attempt is missing");
    late.push(first.atMs - createdAtMs);
    const dueMs = first.atMs + first.durationMs + (retryWaitMs(1, 0.5, null) ?? 0);
    (second.atMs < dueMs - 100 ? early : late).push(second.atMs - dueMs);
  }
  expect(early).toEqual([]);
  expect(Math.max(...late)).toBeLessThan(lateMs);
  // A busy machine answers some after the second that they have: these are sent again.
  const arrived = () => new Set(quick.requests.map(({ body }) => body.id)).size;
  await eventually(() => arrived() === sent, "the other endpoint has all its own");
  const waitedMs = (await allOf("quick")).map(
    ({ createdAtMs, attempts }) => (attempts[0]?.atMs ?? Infinity) - createdAtMs,
  );
  // Behind the silent ones they would wait for up to ten seconds.
  expect(percentile(waitedMs, 0.95)).toBeLessThan(3_000);
  const arrivals = hanging.requests.map(({ body, headers }) => `${body.id} ${headers[ATTEMPT]}`);
  expect(arrivals.length).toBeLessThanOrEqual(2 * deliveries);
  expect(new Set(arrivals).size).toBe(arrivals.length);
  expect(hanging.mostOpen()).toBeLessThanOrEqual(underWay + START_CONCURRENCY);
  expect(await runtime.redis.exists([keysOf("silent").leases, keysOf("silent").inFlight])).toBe(0);
}, 300_000);

test("silent endpoints share what the process may have under way, in turn and outside the slots", async () => {
  start({ silentInFlight: 8, inFlight: 2, inFlightPerFailingEndpoint: 1 });
  await silence("silent");
  await silence("mute");
  await queue("silent", 60);
  await queue("mute", 60);
  await queue("quick", 30);
  await eventually(() => quick.requests.length === 30, "the slots are free for the other one");
  const begun = () => Map.groupBy(hanging.requests.slice(2), ({ path }) => path);
  await eventually(
    () => begun().size === 2 && [...begun().values()].every((own) => own.length >= 12),
    "both are served",
  );
  expect(hanging.mostOpen()).toBe(8);
}, 300_000);

test("a silent endpoint that answers again has its slots again", async () => {
  start({ silentInFlightPerEndpoint: 50 }, PATIENT_MS);
  await silence("silent");
  await queue("silent", 200);
  await eventually(() => hanging.open() > START_CONCURRENCY, "many wait for an answer");
  hanging.behave(200);
  for (const response of held.splice(0)) response.end();
  // What is leased as silent goes out as such: the limit holds again once all of it has been attempted.
  await eventually(
    async () => (await allOf("silent")).every(({ attemptsMade }) => attemptsMade > 0),
    "everything has been attempted",
  );
  const all = await allOf("silent");
  expect(all.filter(({ state }) => state === "delivered").length).toBeGreaterThanOrEqual(150);
  await eventually(() => hanging.open() === 0, "nothing is under way");
  const before = hanging.requests.length;
  const most = await concurrencyOf("silent");
  hanging.behave((_, response) => void held.push(response));
  await queue("silent", 2 * most);
  await eventually(() => hanging.open() === most, "requests wait again");
  const fromMs = performance.now();
  await eventually(() => performance.now() > fromMs + SLOW_MS, "they have waited for a while");
  expect(hanging.requests).toHaveLength(before + most);
}, 300_000);

test("a receiver that answers late keeps its slots", async () => {
  hanging.behave((_, response) => void setTimeout(() => response.end(), 2 * SLOW_MS));
  start({}, PATIENT_MS);
  await queue("silent", 40);
  const { inFlight, id } = keysOf("silent");
  let outside = 0;
  await eventually(async () => {
    outside += Number(await runtime.redis.hExists(inFlight, `w ${id}`));
    return hanging.requests.length === 40;
  }, "all arrive");
  expect(outside).toBe(0);
}, 300_000);

test("what a killed process had waiting at a silent endpoint is sent again", async () => {
  // This process, which stands for the one that has died, renews its leases long after they are taken from it.
  start({ leaseMs: 60_000 }, PATIENT_MS);
  await silence("silent");
  await queue("silent", 5);
  const { leases, inFlight, id } = keysOf("silent");
  await eventually(
    async () => (await runtime.redis.hGet(inFlight, `w ${id}`)) === "5",
    "all wait outside the slots",
  );
  // The leases of a process that has died: nobody renews them.
  const members = await runtime.redis.zRange(leases, 0, -1);
  await runtime.redis.zAdd(
    leases,
    members.map((value) => ({ value, score: 1 })),
  );
  const attempts = () => hanging.requests.length - 1;
  await eventually(() => attempts() >= 10, "each is sent once more");
  await eventually(async () => (await waiting("silent", 1)) === 6, "each has one recorded attempt");
  expect(attempts()).toBe(10);
  expect(await runtime.redis.exists([leases, inFlight])).toBe(0);
}, 300_000);
