/**
 * Deliverers through an outage of the store that is longer than a lease: what receivers have taken is not sent again, by
 * whichever process leases first when the store is back.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { claimAlert, readAlerts, removeAlert } from "#core/redis/alerts.ts";
import { connectRedis, type Redis } from "#core/redis/client.ts";
import { webhookKeys } from "#core/redis/keys.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  createAuthority,
  type Receiver,
  startReceiver,
  type TestAuthority,
} from "#test/support/receiver.ts";
import { type RedisServer, startRedisServer } from "#test/support/redis-server.ts";
import type { TestRuntime } from "#test/support/runtime.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  newShipment,
  openWebhookRuntime,
  type Pipeline,
  STATUS,
  sendDeps,
  startPipeline,
} from "#test/support/webhooks.ts";

/** Shorter than in production, in the same proportions. */
const LIMITS = { leaseMs: 1_500, recoveryMs: 3_000 };
const OUTAGE_MS = 2 * LIMITS.leaseMs;
const DELIVERIES = 20;
/** The receiver keeps its answers until the store is gone. */
const OUTAGES: ReadonlyArray<readonly [string, string[], string[]]> = [
  ["a read-only store", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
  ["a full memory", ["CONFIG", "SET", "maxmemory", "1mb"], ["CONFIG", "SET", "maxmemory", "0"]],
  [
    "a store without its replicas",
    ["CONFIG", "SET", "min-replicas-to-write", "1"],
    ["CONFIG", "SET", "min-replicas-to-write", "0"],
  ],
];

let authority: TestAuthority;
let receiver: Receiver;
let server: RedisServer;
let runtime: TestRuntime;
let other: Redis;
let pipelines: Pipeline[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  receiver = await startReceiver(await authority.issue(["localhost"]));
  server = await startRedisServer();
  const given = { address: server.url, stop: server.stop };
  runtime = await openWebhookRuntime([{ url: receiver.url }], {}, given);
});

afterAll(async () => {
  await runtime.end();
  await receiver.stop();
  await authority.end();
});

beforeEach(async () => {
  receiver.requests.length = 0;
  other = await connectRedis(server.url, runtime.log);
  const deps = () => sendDeps(runtime, authority.pem);
  // Two processes: the second one has a connection of its own.
  pipelines = [
    startPipeline(runtime, deps(), LIMITS),
    startPipeline({ ...runtime, redis: other }, deps(), LIMITS),
  ];
});

afterEach(async () => {
  for (const pipeline of pipelines) await pipeline.stop();
  await other.close();
});

test.each(OUTAGES)(
  "%s longer than a lease: each delivery reaches its receiver once",
  async (_, begin, end) => {
    const gate = Promise.withResolvers<void>();
    receiver.behave((_request, response) => void gate.promise.then(() => response.end()));
    for (let n = 0; n < DELIVERIES; n += 1) {
      await applyEvents(runtime, await newShipment(runtime), [{ status: STATUS.inTransit }]);
    }
    await eventually(() => receiver.open() >= 10, "the endpoint has all it may have under way");
    const underWay = receiver.open();
    await server.send(...begin);
    gate.resolve();
    await eventually(() => receiver.open() === 0, "all are answered");
    expect(receiver.requests.length).toBe(underWay);
    const overAtMs = performance.now() + OUTAGE_MS;
    await eventually(() => performance.now() > overAtMs, "the leases have ended");
    // What was not begun before is not begun now.
    expect(receiver.requests.length).toBe(underWay);
    await server.send(...end);
    await eventually(
      async () => {
        const all = await deliveriesOf(runtime, endpointOf(runtime, "main"));
        return all.every(({ state }) => state === "delivered");
      },
      "all are delivered",
      30_000,
    );
    const told = receiver.requests.map(({ body }) => body.id);
    expect([told.length, new Set(told).size]).toEqual([DELIVERIES, DELIVERIES]);
  },
  60_000,
);

test("a claim of an alert that cannot be looked at is free again at once", async () => {
  const { redis } = runtime;
  const about = { endpointId: "gone", kind: "warning", sinceMs: "1", atMs: "1" };
  await redis.xAdd(webhookKeys(3).alerts, "*", about);
  const alert = (await readAlerts(redis, 1)).find(({ partition }) => partition === 3);
  if (!alert) throw new Error("no alert");
  await server.send("ACL", "SETUSER", "default", "-xrange");
  await expect(claimAlert(redis, alert)).rejects.toThrow("NOPERM");
  await server.send("ACL", "SETUSER", "default", "+xrange");
  const claim = await claimAlert(redis, alert);
  expect(claim).not.toBeNull();
  await removeAlert(redis, alert);
  await claim?.release();
});
