/** Design, "A new shipment": registration is repeated from the change log, so a crash cannot leave one unfound. */
import { expect, test } from "bun:test";
import {
  REGISTRATIONS_PER_CALL,
  registerReferences,
  resolveReferences,
} from "#core/events/store/references.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import {
  changeLogs,
  companyKeys,
  deadLetterKey,
  shipmentPartition,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { referencesHandler } from "#processors/track/references.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { recordCalls } from "#test/support/scripts/script-calls.ts";

const runtime = forAll(() => openTestRuntime(testSetup()));

/** A shipment as a crash between creation and registration leaves it. */
async function createOnly(trackingNumber: string): Promise<number> {
  const channel = runtime.live.configuration().channelByCode.get("acme-it");
  if (!channel) throw new Error("no channel");
  const common = {
    companyId: channel.companyId,
    channelId: channel.id,
    courier: "GLS_ITA",
    trackingNumber,
    shipDate: "2026-11-10",
  };
  const planning = { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null };
  const [created] = await createShipments(runtime.redis, channel.companyId, [
    {
      record: { ...common, language: "it", planning, createdAtMs: 0 },
      meta: {
        ...common,
        isPlaceholder: false,
        orderReference: null,
        destCap: null,
        originCap: null,
        weightKg: null,
      },
    },
  ]);
  if (!created?.isNew) throw new Error("not created");
  return created.id;
}

async function statusOf(id: number): Promise<string | undefined> {
  return (await readHotShipments(runtime.redis, [id])).get(id)?.state.pair.status;
}

async function foundBy(trackingNumber: string): Promise<number[]> {
  const reference = trackingReference("GLS_ITA", trackingNumber);
  const candidates = await resolveReferences(runtime.redis, [reference]);
  return [...candidates.values()].flat().map(({ shipmentId }) => shipmentId);
}

test("a shipment that was created and not registered is registered from the change log", async () => {
  const id = await createOnly("crashed");
  expect(await statusOf(id)).toBe("WAITING_TO_COMPUTE");
  const { redis, live, log } = runtime;
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "references",
    handler: referencesHandler({ redis, live, eventsPerDay: 1_000 }),
    batch: 100,
  });
  await eventually(async () => (await statusOf(id)) === "PENDING", "the shipment is PENDING");
  expect(await foundBy("crashed")).toEqual([id]);
  await consumer.stop();
});

test("repeating the registration changes nothing", async () => {
  const id = await createOnly("repeated");
  const register = () => registerShipments(runtime.redis, runtime.live.configuration(), [id]);
  await register();
  const [before] = (await readHotShipments(runtime.redis, [id])).values();
  await register();
  const [after] = (await readHotShipments(runtime.redis, [id])).values();
  expect(after).toEqual(before);
  expect(await foundBy("repeated")).toEqual([id]);
});

test("a status that a courier event has set already stays, and the references are registered", async () => {
  const id = await createOnly("early");
  await applyEvents(runtime, [{ shipmentId: id, code: "TRN" }]);
  await registerShipments(runtime.redis, runtime.live.configuration(), [id]);
  expect(await statusOf(id)).toBe("IN_TRANSIT");
  expect(await foundBy("early")).toEqual([id]);
});

test("concurrent registrations of many shipments leave each PENDING and found once", async () => {
  const numbers = Array.from({ length: 150 }, (_, at) => `together-${at}`);
  const ids: number[] = [];
  for (const number of numbers) ids.push(await createOnly(number));
  const configuration = runtime.live.configuration();
  await Promise.all([1, 2, 3].map(() => registerShipments(runtime.redis, configuration, ids)));
  const hot = await readHotShipments(runtime.redis, ids);
  expect(new Set([...hot.values()].map(({ state }) => state.pair.status))).toEqual(
    new Set(["PENDING"]),
  );
  for (const [at, number] of numbers.entries())
    expect(await foundBy(number)).toEqual([ids[at] ?? 0]);
});

test("an entry that is none of ours fails alone", async () => {
  const { redis, live } = runtime;
  const id = await createOnly("beside");
  const { changes } = companyKeys(shipmentPartition(id));
  const good = { key: changes, id: "1-1", fields: { s: String(id), created: "{}" } };
  const bad = { key: changes, id: "1-2", fields: { s: "x" } };
  const failures = await referencesHandler({ redis, live, eventsPerDay: 1_000 })([bad, good]);
  expect(failures.map(({ entry }) => entry)).toEqual([bad]);
  expect(await statusOf(id)).toBe("PENDING");
  expect(await redis.exists(changeLogs().map(deadLetterKey))).toBe(0);
});

for (const [count, sizes] of [
  [REGISTRATIONS_PER_CALL, [REGISTRATIONS_PER_CALL]],
  [REGISTRATIONS_PER_CALL + 1, [REGISTRATIONS_PER_CALL, 1]],
] as const) {
  test(`${count} references of one partition are registered in calls of ${sizes.join(" and ")}`, async () => {
    const references = Array.from({ length: 10_000 }, (_, n) =>
      trackingReference("GLS_ITA", `CALLS-${count}-${n}`),
    )
      .filter(({ partition }, _, all) => partition === all[0]?.partition)
      .slice(0, count);
    const { redis, calls } = recordCalls(runtime.redis);
    const common = { companyId: 1, channelId: 1, isPlaceholder: false, orderReference: null };
    await registerReferences(
      redis,
      references.map((reference, n) => ({ ...common, shipmentId: n + 1, shipDay: 1, reference })),
    );
    expect(calls.map(({ keys }) => keys.length)).toEqual([...sizes]);
    const found = await resolveReferences(runtime.redis, references);
    expect(references.map(({ key }) => found.get(key)?.length)).toEqual(Array(count).fill(1));
  });
}
