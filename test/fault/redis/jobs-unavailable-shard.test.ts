/** Imports, messages and test parcels while one shard of a cluster is unavailable: other companies' go on, and nothing is done twice. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import type { Channel } from "#core/configuration/store/configuration.ts";
import { decodeLoggedEvent, splitEvents } from "#core/events/store/event-log.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { acceptJob, importChunks, readJob } from "#core/merchants/store/jobs/import-jobs.ts";
import { acceptMessages } from "#core/merchants/store/messages.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import {
  companyKeys,
  companyPartition,
  companyTag,
  eventLogs,
  shipmentPartition,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import { TEST_COURIER } from "#core/shipments/rules/test-parcel.ts";
import { createItems } from "#core/shipments/store/create-items.ts";
import { startJobs } from "#processors/jobs/start.ts";
import { startTestParcels } from "#processors/jobs/test-parcels.ts";
import { startNotify } from "#processors/notify/start.ts";
import { referencesHandler } from "#processors/track/references.ts";
import { shipmentItem } from "#test/support/clients/merchant.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

const LIMIT_MS = 60_000;

let cluster: TestCluster;
let runtime: TestRuntime;
let recover = async () => {};

beforeAll(async () => {
  cluster = await startTestCluster();
  const setup = testSetup();
  for (const { channels } of setup.companies ?? []) {
    channels?.[0]?.apiKeys?.push({ code: "test", mode: "test", key: crypto.randomUUID() });
  }
  const given = { address: "/", stop: cluster.stop };
  runtime = await openTestRuntime(setup, { REDIS_CLUSTER_URLS: cluster.urls }, given);
}, 120_000);
afterEach(async () => {
  await recover();
  recover = async () => {};
});
afterAll(() => runtime.end(), 60_000);

async function lose(tag: string): Promise<void> {
  recover = await cluster.loseShard(tag);
}

async function bringBack(): Promise<void> {
  await recover();
  recover = async () => {};
}

/** A company without boxes takes it too. */
const itemOf = (number: string, members = {}) =>
  shipmentItem(number, {
    parcels: [{ weight: 2.5, length: 30, width: 20, height: 10 }],
    ...members,
  });
const channelOf = (code: string): Channel => {
  const channel = runtime.live.configuration().channelByCode.get(code);
  if (!channel) throw new Error(`no channel ${code}`);
  return channel;
};
const partitionOf = ({ companyId }: Channel) => companyPartition(companyId);

async function acceptImport(channel: Channel, numbers: readonly string[]): Promise<string> {
  const chunks = importChunks();
  for (const number of numbers) chunks.add(itemOf(number));
  const { companyId, id: channelId } = channel;
  const job = {
    companyId,
    channelId,
    chunks: chunks.chunks(),
    total: numbers.length,
    webhookUrl: null,
  };
  return (await acceptJob(runtime.redis, job, runtime.live.now())) ?? "";
}

const importOf = (channel: Channel, id: string) =>
  readJob(runtime.redis, partitionOf(channel), id, runtime.live.now());

test("imports of other companies finish without the shard, those of the shard once it is back, and every shipment is found by events", async () => {
  const { redis, live } = runtime;
  const [acme, beta] = [channelOf("acme-it"), channelOf("beta-it")];
  const numbersOf = (name: string) => Array.from({ length: 30 }, (_, n) => `${name}-${n}`);
  // As many of the shard as are in work at once, before the other one.
  const waiting = [
    await acceptImport(acme, numbersOf("LOST-1")),
    await acceptImport(acme, numbersOf("LOST-2")),
  ];
  await lose(companyTag(partitionOf(acme)));
  const jobs = await startJobs(runtime);
  const handler = referencesHandler({ redis, live, eventsPerDay: 1_000 });
  const { log } = runtime;
  const group = "references";
  const consumer = startConsumer({ redis, log, source: "change", group, batch: 10, handler });
  const done = { status: "completed", processedItems: 30, failedItems: 0 };
  for (const round of ["THERE-1", "THERE-2"]) {
    const id = await acceptImport(beta, numbersOf(round));
    await eventually(
      async () => (await importOf(beta, id))?.status === "completed",
      "the import of the other company ends",
      LIMIT_MS,
    );
    expect(await importOf(beta, id)).toMatchObject(done);
  }
  await bringBack();
  for (const id of waiting) {
    await eventually(
      async () => (await importOf(acme, id).catch(() => null))?.status === "completed",
      "the import of the shard ends",
      LIMIT_MS,
    );
    expect(await importOf(acme, id)).toMatchObject(done);
  }
  const numbers = ["LOST-1", "LOST-2", "THERE-1", "THERE-2"].flatMap(numbersOf);
  const references = numbers.map((number) => trackingReference("GLS_ITA", number));
  await eventually(
    async () => {
      const found = await resolveReferences(redis, references);
      return references.every(({ key }) => found.get(key)?.length === 1);
    },
    "each number leads to one shipment",
    LIMIT_MS,
  );
  await Promise.all([jobs.stop(), consumer.stop()]);
}, 300_000);

test("messages of the shard that wait to be recorded hold up no others, and each goes out once", async () => {
  const { redis, live, config } = runtime;
  const sent: string[] = [];
  const taken = Promise.withResolvers<void>();
  const gateway = Bun.serve({
    port: 0,
    async fetch(request) {
      const { id } = (await request.json()) as { id: string };
      sent.push(id);
      if (id.startsWith("lost")) await taken.promise;
      return new Response(null, { status: 202 });
    },
  });
  const smsGatewayUrl = `http://127.0.0.1:${gateway.port}/`;
  const shipments = {
    lost: await addShipment(runtime, "SMS-1"),
    there: await addShipment(runtime, "SMS-2", { channel: "beta-it" }),
  };
  const accept = async (name: keyof typeof shipments, count: number) => {
    const messages = Array.from({ length: count }, (_, n) => ({
      message: {
        messageId: `${name}-${n}`,
        type: "sms" as const,
        shipmentId: shipments[name],
        to: "+39000",
        from: null,
        subject: "",
        text: "arrivata",
        html: null,
      },
      topic: String(n),
      oncePerMs: null,
    }));
    expect(new Set(await acceptMessages(redis, messages, live.now()))).toEqual(
      new Set(["accepted"]),
    );
  };
  const areRecorded = (name: keyof typeof shipments, count: number) =>
    eventually(
      async () => {
        const id = shipments[name];
        const key = companyKeys(shipmentPartition(id)).notifications(id);
        return (await redis.lLen(key).catch(() => -1)) === count;
      },
      `messages of ${name} are recorded`,
      LIMIT_MS,
    );
  const notify = await startNotify({ ...runtime, config: { ...config, smsGatewayUrl } });
  // As many as are sent at once, and more.
  await accept("lost", 12);
  await eventually(() => sent.length === 10, "they are under way");
  await lose(companyTag(shipmentPartition(shipments.lost)));
  taken.resolve();
  await accept("there", 12);
  await areRecorded("there", 12);
  await bringBack();
  await areRecorded("lost", 12);
  await notify.stop();
  await gateway.stop(true);
  const all = Array.from({ length: 12 }, (_, n) => [`lost-${n}`, `there-${n}`]).flat();
  expect(sent.toSorted()).toEqual(all.toSorted());
}, 300_000);

test("test parcels of other companies go on without the shard, those of the shard once it is back, and no event is sent twice", async () => {
  const { redis, live, log } = runtime;
  const shadows = [...live.configuration().channels.values()].filter(({ testOf }) => testOf);
  const create = async (code: string) => {
    const shadow = shadows.find(({ testOf }) => testOf === channelOf(code).id);
    if (!shadow) throw new Error("no shadow");
    const items = Array.from({ length: 40 }, (_, n) =>
      itemOf(`TEST_LOST-${n}`, { courier: TEST_COURIER }),
    );
    const deps = { redis, log, configuration: live.configuration() };
    const created = await createItems(deps, shadow, items as never, live.now());
    return created.map((one) => (one.kind === "created" ? one.id : 0));
  };
  const [lost, there] = [await create("acme-it"), await create("beta-it")];
  const eventIds = (id: number) => [0, 1, 2, 3].map((index) => `test-${id}-own-${index}`);
  const lostShard = await cluster.shardOf(companyTag(partitionOf(channelOf("acme-it"))));
  const places = new Map<string, number>();
  for (const key of eventLogs()) places.set(key, await cluster.shardOf(key));
  const logOf = (eventId: string) => eventLogs()[seenBucket(TEST_COURIER, eventId).partition] ?? "";
  const inReach = there.filter((id) =>
    eventIds(id).every((eventId) => places.get(logOf(eventId)) !== lostShard),
  );
  expect(inReach.length).toBeGreaterThan(0);
  /** How often each event stands in the logs in reach. */
  const logged = async () => {
    const counts = new Map<string, number>();
    for (const key of eventLogs()) {
      for (const { message } of (await redis.xRange(key, "-", "+").catch(() => null)) ?? []) {
        for (const { e = "" } of splitEvents(message as Record<string, string>)) {
          const { eventId } = decodeLoggedEvent(e).event;
          if (eventId.startsWith("test-")) counts.set(eventId, (counts.get(eventId) ?? 0) + 1);
        }
      }
    }
    return counts;
  };
  const areSent = (ids: readonly number[], what: string) =>
    eventually(
      async () => {
        const counts = await logged();
        return ids.flatMap(eventIds).every((eventId) => counts.has(eventId));
      },
      what,
      LIMIT_MS,
    );
  await lose(companyTag(partitionOf(channelOf("acme-it"))));
  const parcels = startTestParcels(runtime);
  await areSent(inReach, "the parcels of the other company live to their end");
  await bringBack();
  await areSent([...lost, ...there], "all of them do");
  await parcels.stop();
  expect(new Set((await logged()).values())).toEqual(new Set([1]));
}, 300_000);
