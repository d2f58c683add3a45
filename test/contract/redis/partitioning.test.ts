/** How many partitions a store has is chosen at the first start on it; a store of an earlier version keeps what it has (design.md, "Redis: what lives together"). */
import { expect, test } from "bun:test";
import { checkLayout } from "#core/configuration/store/layout.ts";
import { LayoutRefused } from "#core/configuration/store/layout-refused.ts";
import { MIGRATIONS } from "#core/configuration/store/migrations.ts";
import { loadPartitioning } from "#core/configuration/store/partitioning.ts";
import {
  beginGeneration,
  compactReferences,
  forgetReferences,
  resolveCompact,
} from "#core/events/store/compact-references.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis } from "#core/platform/redis/client.ts";
import {
  companyPartition,
  indexMember,
  LAYOUT_KEY,
  partitionTags,
  shipmentPartition,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import {
  FIRST_PARTITIONING,
  idAt,
  idPartition,
  newPartitioning,
  partitioning,
} from "#core/platform/redis/partitions.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startRestartableRedis, startTestRedis } from "#test/support/servers/servers.ts";

/** Numbers that shipments of a large installation reach after years. */
const LATE = 2 ** 35;

async function sameReferenceIsFound({ redis }: TestRuntime): Promise<void> {
  await beginGeneration(redis, Date.now(), 1_000);
  const reference = trackingReference("GLS_ITA", "LATE-1");
  const shipmentId = idAt(LATE, partitioning().k - 1);
  const candidate = {
    shipmentId,
    channelId: 7,
    companyId: 1,
    isPlaceholder: false,
    shipDay: 20_000,
    orderReference: null,
    archived: { endedAtMs: null, ownsNumber: true, orderHash: 9 },
  };
  await redis.set(reference.key, `[${shipmentId},7,0,null,0,1,20000]`);
  await compactReferences(redis, [{ reference, isNumber: true, candidate }]);
  const found = (await resolveCompact(redis, [reference])).get(reference.key);
  expect(found).toMatchObject({
    kind: "compact",
    candidate: { shipmentId, channelId: 7, archived: { ownsNumber: true, orderHash: 9 } },
  });
  expect(await forgetReferences(redis, [{ reference, shipmentId: shipmentId - 1 }])).toBe(0);
  expect(await forgetReferences(redis, [{ reference, shipmentId }])).toBe(1);
}

test.each([
  [undefined, 1],
  ["4", 4],
  ["16", 16],
])(
  "a new store on one server with STORE_PARTITIONS=%p has %i partitions of each family, and ids leave room for 4,096",
  async (asked, partitions) => {
    const runtime = await openTestRuntime(testSetup(), asked ? { STORE_PARTITIONS: asked } : {});
    expect(partitioning()).toEqual(newPartitioning(partitions));
    expect(partitionTags()).toHaveLength(3 * partitions);
    const [one, other] = [await addShipment(runtime, "A"), await addShipment(runtime, "B")];
    expect(other - one).toBe(4_096);
    expect(shipmentPartition(one)).toBe(companyPartition(channelOf(runtime).companyId));
    expect(idPartition(idAt(LATE, partitions - 1))).toBe(partitions - 1);
    expect(indexMember(idAt(LATE, 0)).length).toBe(indexMember(1).length);
    await sameReferenceIsFound(runtime);
    await runtime.end();
  },
);

test("a store of an earlier version keeps 16 partitions, and its ids their meaning, whatever is asked for", async () => {
  const server = await startRestartableRedis();
  const redis = await connectRedis(server.address, createLog("silent"));
  await redis.hSet(LAYOUT_KEY, "layout", JSON.stringify({ version: 1, oldest: 1, cursor: "" }));
  const runtime = await openTestRuntime(testSetup(), { STORE_PARTITIONS: "1" }, server);
  expect(partitioning()).toEqual(FIRST_PARTITIONING);
  const [one, other] = [await addShipment(runtime, "A"), await addShipment(runtime, "B")];
  expect(other - one).toBe(16);
  expect(indexMember(one)).toHaveLength(12);
  await sameReferenceIsFound(runtime);
  // Processes of the version before may still join it.
  await checkLayout(redis, MIGRATIONS.slice(0, -1));
  redis.destroy();
  await runtime.end();
});

test("processes of a version that does not ask for the number are refused on a new store, and so are added partitions here", async () => {
  const server = await startTestRedis();
  const runtime = await openTestRuntime(testSetup(), {}, server);
  await expect(checkLayout(runtime.redis, MIGRATIONS.slice(0, -1))).rejects.toThrow(LayoutRefused);
  const added = JSON.stringify({ e: [1, 16], t: [1], k: [1], stride: 4_096 });
  await runtime.redis.hSet(LAYOUT_KEY, "partitions", added);
  await expect(loadPartitioning(runtime.redis)).rejects.toThrow(LayoutRefused);
  await runtime.end();
});
