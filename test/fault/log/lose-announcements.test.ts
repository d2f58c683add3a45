/** Announcements on a cluster whose nodes are demoted and lost. */
import { expect, test } from "bun:test";
import type { createCluster } from "redis";
import { createLog } from "#core/platform/process/log.ts";
import { connectCluster, type Redis } from "#core/platform/redis/client.ts";
import { companyTag, wakeChannel } from "#core/platform/redis/keys.ts";
import { eventually } from "#test/support/eventually.ts";
import { listenTo } from "#test/support/product/listener.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";

const log = createLog("silent");

/** The masters that somebody listens to, by their ports. */
async function listenedTo(redis: Redis): Promise<number[]> {
  const { masters } = redis as unknown as ReturnType<typeof createCluster>;
  const ask = ["PUBSUB", "CHANNELS", wakeChannel("messages")];
  const found = masters.map(async ({ port, client }) => {
    const channels = await client?.sendCommand(ask).catch(() => "");
    return String(channels) === "" ? [] : [port];
  });
  return (await Promise.all(found)).flat();
}

/** Enough that every shard has one. */
const TAGS = 16;

test("when a cluster's node that brings announcements is demoted or gone for good, another brings them", async () => {
  const own = await startTestCluster();
  const open = () => connectCluster(own.urls.split(","), log);
  const [waiting, other] = [await open(), await open()];
  const { isHeard, close } = listenTo(other, waiting);
  const useEveryShard = async () => {
    const keys = Array.from({ length: TAGS }, (_, at) => `${companyTag(at)}key`);
    const writes = [waiting, other].flatMap((redis) => keys.map((key) => redis.set(key, "1")));
    return (await Promise.allSettled(writes)).every(({ status }) => status === "fulfilled");
  };
  await isHeard("it is heard");
  const [first = 0, ...more] = await listenedTo(other);
  expect(more).toEqual([]);
  await own.demote(first);
  await eventually(useEveryShard, "both have met the new master");
  let second = 0;
  await eventually(async () => {
    [second = 0] = await listenedTo(other);
    return second > 0;
  }, "another one is listened to");
  await isHeard("it is heard after the demotion");
  await own.loseNode(second);
  await isHeard("it is heard after the loss");
  close();
  for (const client of [waiting, other]) client.destroy();
  await own.stop();
}, 300_000);
