/** Messages and imports when the store is unavailable, or an error of ours comes in between: no verdict, no repetition. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { acceptJob, importChunks, readJob } from "#core/merchants/store/jobs/import-jobs.ts";
import { acceptMessages, type Message } from "#core/merchants/store/messages.ts";
import { readNotifications } from "#core/merchants/store/notifications.ts";
import { atWork } from "#core/platform/process/background.ts";
import { connectRedis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition, shipmentPartition } from "#core/platform/redis/keys.ts";
import { readMoment } from "#core/webhooks/store/shipment-moment.ts";
import { startJobs } from "#processors/jobs/start.ts";
import { startNotify } from "#processors/notify/start.ts";
import { shipmentItem } from "#test/support/clients/merchant.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

/** Longer than a lease of work (6 s). */
const OUTAGE_MS = 7_000;

let server: RedisServer;
let runtime: TestRuntime;
let gateway: ReturnType<typeof Bun.serve>;
const sent: string[] = [];
/** What happens to the store after the gateway has taken a message and before it says so. */
let afterTaking = (): Promise<unknown> => Promise.resolve();

beforeAll(async () => {
  server = await startRedisServer();
  runtime = await openTestRuntime(testSetup(), {}, { address: server.url, stop: server.stop });
  gateway = Bun.serve({
    port: 0,
    async fetch(request) {
      sent.push(((await request.json()) as { id: string }).id);
      await afterTaking();
      return new Response(null, { status: 202 });
    },
  });
});

afterAll(async () => {
  await gateway.stop(true);
  await runtime.end();
});

const OUTAGES: ReadonlyArray<readonly [string, string[], string[]]> = [
  ["read-only", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
  ["full", ["CONFIG", "SET", "maxmemory", "1mb"], ["CONFIG", "SET", "maxmemory", "0"]],
];

test.each(OUTAGES)(
  "a message that has gone out while the store is %s is recorded when it is back, and goes out once",
  async (name, begin, end) => {
    const { redis, live, config, log } = runtime;
    sent.length = 0;
    const shipmentId = await addShipment(runtime, `SMS-${name}`);
    const other = await connectRedis(server.url, log);
    const withSms = { ...config, smsGatewayUrl: `http://127.0.0.1:${gateway.port}/` };
    const workers = [
      await startNotify({ ...runtime, config: withSms }),
      await startNotify({ ...runtime, redis: other, config: withSms }),
    ];
    afterTaking = () => server.send(...begin);
    const message: Message = {
      messageId: crypto.randomUUID(),
      type: "sms",
      shipmentId,
      to: "+39000",
      from: null,
      subject: "",
      text: "arrivata",
      html: null,
    };
    await acceptMessages(redis, [{ message, topic: name, oncePerMs: null }], live.now());
    await eventually(() => sent.length === 1, "it has gone out");
    const overAtMs = performance.now() + OUTAGE_MS;
    await eventually(() => performance.now() > overAtMs, "its lease has ended", 10_000);
    afterTaking = () => Promise.resolve();
    await server.send(...end);
    const messageKey = companyKeys(shipmentPartition(shipmentId)).message(message.messageId);
    await eventually(async () => (await redis.exists(messageKey)) === 0, "it is recorded");
    const moment = await readMoment(redis, shipmentId, [...live.configuration().channels.keys()]);
    if (!moment) throw new Error("no shipment");
    const notifications = await readNotifications(redis, moment, live.configuration(), live.now());
    expect(notifications.map(({ type, result }) => [type, result])).toEqual([["sms", "OK"]]);
    for (const worker of workers) await worker.stop();
    await other.close();
    expect(sent).toEqual([message.messageId]);
  },
  120_000,
);

/** An import of shipments with these tracking numbers. */
async function acceptImport(numbers: readonly string[]) {
  const { redis, live } = runtime;
  const channel = [...live.configuration().channels.values()].find(
    ({ code }) => code === "acme-it",
  );
  if (!channel) throw new Error("no channel");
  const { companyId, id: channelId } = channel;
  const items = importChunks();
  for (const number of numbers) items.add(shipmentItem(number));
  const total = numbers.length;
  const job = { companyId, channelId, chunks: items.chunks(), total, webhookUrl: null };
  const jobId = await acceptJob(redis, job, live.now());
  if (jobId === null) throw new Error("too many jobs");
  return { partition: companyPartition(companyId), jobId };
}

/** Somewhat more than `AT_WORK_MS`. */
const ALONE_AFTER_MS = 1_100;

// In small steps beside others, in one step alone.
test.each(["beside others", "alone"])(
  "an import %s goes on where it was when the store was away",
  async (when) => {
    const { redis, live } = runtime;
    const numbers = Array.from({ length: 100 }, (_, n) => `AWAY-${when}-${n}`);
    const { partition, jobId } = await acceptImport(numbers);
    const { shipmentIds } = companyKeys(partition);
    const work = () => void (when === "beside others" && atWork(null));
    if (when === "alone") await Bun.sleep(ALONE_AFTER_MS);
    work();
    const others = setInterval(work, 50);
    const before = Number(await redis.get(shipmentIds));
    const jobs = await startJobs(runtime);
    await eventually(
      async () => Number(await redis.get(shipmentIds)) > before,
      "a step is done",
      60_000,
      2,
    );
    await server.send("REPLICAOF", "127.0.0.1", "1");
    await Bun.sleep(1_200);
    await server.send("REPLICAOF", "NO", "ONE");
    const ended = await eventually(async () => {
      const now = await readJob(redis, partition, jobId, live.now());
      return now?.status !== "processing" && now;
    }, "it ends");
    clearInterval(others);
    await jobs.stop();
    expect(ended).toMatchObject({ status: "completed", processedItems: 100, failedItems: 0 });
  },
  60_000,
);

test("an internal error does not end an import, which completes once the error is fixed", async () => {
  const { redis, live } = runtime;
  const { partition, jobId } = await acceptImport(["JOB-1"]);
  const chunks = companyKeys(partition).jobItems(jobId);
  const good = (await redis.hGet(chunks, "0")) ?? "";
  await redis.hSet(chunks, "0", "{half");
  const jobs = await startJobs(runtime);
  const state = async () => (await readJob(redis, partition, jobId, live.now()))?.status;
  await eventually(async () => {
    const due = await redis.zScore(`{k${partition}}:w:imports`, jobId);
    return due !== null && due > Date.now();
  }, "it waits for its next try");
  expect(await state()).toBe("processing");
  await redis.hSet(chunks, "0", good);
  await eventually(async () => (await state()) === "completed", "it is completed");
  await jobs.stop();
});
