/** What a consumer does for the partitions that it has left behind. */
import { expect, test } from "bun:test";
import { followBehind } from "#core/platform/log/behind.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis } from "#core/platform/redis/client.ts";
import { followOutage } from "#core/platform/redis/outage.ts";
import { eventually } from "#test/support/eventually.ts";
import { startRedisServer } from "#test/support/servers/redis-server.ts";

const KEY = "{k1}:changes";

test("a partition that fails again while it is caught up with is caught up with once more", async () => {
  const server = await startRedisServer();
  const log = createLog("silent");
  const redis = await connectRedis(server.url, log);
  const firstRound = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let rounds = 0;
  const behind = followBehind({
    redis,
    outage: followOutage(log, "test"),
    onBack: () => {},
    async catchUp() {
      rounds += 1;
      begun.resolve();
      await firstRound.promise;
    },
  });
  behind.add(KEY, new Error("away"), performance.now());
  await begun.promise;
  behind.add(KEY, new Error("away"), performance.now());
  firstRound.resolve();
  await eventually(() => behind.isEmpty(), "it has caught up");
  expect(rounds).toBe(2);
  await behind.stop();
  await redis.close();
  await server.stop();
});
