/** Idle loops wait for announcements, on one server and on a cluster, and miss nothing where one is lost. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startConsumer } from "#core/platform/log/consumer.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectCluster, connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { wakeChannel } from "#core/platform/redis/keys.ts";
import { announce, openWaker } from "#core/platform/redis/wake.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { startDeliverer } from "#processors/webhooks/deliver.ts";
import { startTestSender } from "#processors/webhooks/test-events.ts";
import { eventually } from "#test/support/eventually.ts";
import { countAnnouncements, listenTo } from "#test/support/product/listener.ts";
import { openWebhookRuntime, sendDeps } from "#test/support/product/webhooks.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";
import { startTestRedis, type TestServer } from "#test/support/servers/servers.ts";

/** Longer than any test takes. */
const FAR_MS = 120_000;

let server: TestServer & { readonly address: string };
let cluster: TestCluster;
const clients: Redis[] = [];
const log = createLog("silent");

beforeAll(async () => {
  [server, cluster] = await Promise.all([startTestRedis(), startTestCluster()]);
}, 300_000);

afterAll(async () => {
  for (const client of clients) client.destroy();
  await Promise.all([server.stop(), cluster.stop()]);
});

async function connect(kind: "server" | "cluster"): Promise<Redis> {
  const client = await (kind === "server"
    ? connectRedis(server.address, log)
    : connectCluster(cluster.urls.split(","), log));
  clients.push(client);
  return client;
}

describe.each(["server", "cluster"] as const)("on a %s", (kind) => {
  test("an announcement of another process ends the wait", async () => {
    const [waiting, other] = [await connect(kind), await connect(kind)];
    const waker = openWaker(waiting, "change");
    let isOver = false;
    void waker.wait(FAR_MS).then(() => {
      isOver = true;
    });
    await eventually(() => {
      announce(other, "change");
      return isOver;
    }, "the wait is over");
    waker.close();
  }, 300_000);

  test("announcements of other topics do not", async () => {
    const [waiting, other] = [await connect(kind), await connect(kind)];
    const [own, others] = [countAnnouncements(), countAnnouncements()];
    // A topic of its own: the last announcement of the previous test may still be on its way.
    const waker = openWaker(waiting, "messages", own.hear);
    const another = openWaker(waiting, "event", others.hear);
    await eventually(() => {
      announce(other, "event");
      return others.heard() > 0;
    }, "the other topic is heard");
    expect(own.heard()).toBe(0);
    waker.close();
    another.close();
  }, 300_000);
});

test("an announcement between the look and the wait is not missed", async () => {
  const redis = await connect("server");
  const waker = openWaker(redis, "event");
  waker.reset();
  waker.wake();
  await waker.wait(FAR_MS);
  waker.close();
});

test("many announcements of a process are few messages, and the last one is among them", async () => {
  const [waiting, other] = [await connect("server"), await connect("server")];
  const { heard, hear } = countAnnouncements();
  const waker = openWaker(waiting, "imports", hear);
  const ask = () =>
    other.sendCommand<[string, number]>(["PUBSUB", "NUMSUB", wakeChannel("imports")]);
  await eventually(async () => (await ask())[1] === 1, "it listens");
  for (let n = 0; n < 1_000; n += 1) announce(other, "imports");
  await eventually(() => heard() === 2, "the first and the last are heard");
  waker.close();
});

test("who loses the connection for messages hears again once it is back", async () => {
  const [waiting, other] = [await connect("server"), await connect("server")];
  const { isHeard, close } = listenTo(other, waiting);
  await isHeard("it is heard");
  await other.sendCommand(["CLIENT", "KILL", "TYPE", "pubsub"]);
  await isHeard("it is heard again");
  close();
});

test("who waits no longer keeps no connection", async () => {
  const redis = await connect("server");
  const subscribers = async () => {
    const [, count] = await redis.sendCommand<[string, number]>([
      ...["PUBSUB", "NUMSUB", wakeChannel("webhooks")],
    ]);
    return count;
  };
  await eventually(async () => (await subscribers()) === 0, "nobody listens");
  const wakers = [openWaker(redis, "webhooks"), openWaker(redis, "event")];
  await eventually(async () => (await subscribers()) === 1, "one connection listens for both");
  for (const waker of wakers) waker.close();
  await eventually(async () => (await subscribers()) === 0, "nobody listens any more");
});

test("idle consumers, deliverers and test senders ask Redis for little", async () => {
  const runtime = await openWebhookRuntime([{ url: "https://localhost:1/" }]);
  const { redis, live } = runtime;
  const deps = sendDeps(runtime);
  const handler = decideHandler({ redis, live });
  const base = { redis, log, batch: 100 };
  const consumer = startConsumer({ ...base, source: "change", group: "webhooks", handler });
  const parts = [startDeliverer({ redis, log, ...deps }), startTestSender({ redis, log, ...deps })];
  const commands = async () => {
    const stats = await redis.info("stats");
    return Number(/total_commands_processed:(\d+)/.exec(stats)?.[1] ?? 0);
  };
  /** Polling every 15 to 100 ms was 16 * 67 + 40 + 10 a second; scripts count what they call, too. */
  const A_SECOND = 250;
  const seconds = 4;
  await eventually(async () => {
    const before = await commands();
    await Bun.sleep(1_000 * seconds);
    return (await commands()) - before <= seconds * A_SECOND;
  }, "few commands in a rest");
  await consumer.stop();
  for (const part of parts) await part.stop();
  deps.transport.close();
  await runtime.end();
}, 300_000);
