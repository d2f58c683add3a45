/** Shipments that an event ahead of its time decides recover, wherever they are, and what is told of it (design.md). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { readAhead } from "#analytics/archive/archive-table.ts";
import { type ArchiverDeps, archiveAll, SILENT_DAYS } from "#analytics/archive/archiver.ts";
import { type OpenArchive, openArchive } from "#analytics/archive.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import {
  type AheadPage,
  type ArchivePlace,
  readShipmentsAnywhere,
} from "#core/archive/store/archive.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { companyKeys, REMAP_KEYS, shipmentPartition } from "#core/platform/redis/keys.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { announceRemap, NO_PROGRESS, readRemap } from "#core/statuses/store/remaps.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { trackHandler } from "#processors/track/track.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { event } from "#test/support/clients/courier.ts";
import { type HeldEvent, hold } from "#test/support/data/held.ts";
import { isFoundIn } from "#test/support/data/search.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  deliveriesOf,
  endpointOf,
  openWebhookRuntime,
  passTime,
} from "#test/support/product/webhooks.ts";

const DAY_SECONDS = 86_400;
const held = async () => {};
const at = (time: string) => `2026-11-10T${time}:00+01:00`;

/** Delivered by now, and held in OUT_FOR_DELIVERY by an event from 2099. */
const BY_2099: readonly HeldEvent[] = [
  { code: "TRN", occurredAt: at("10:00"), receivedAt: at("10:00") },
  { code: "OUT", occurredAt: "2099-01-01T00:00:00Z", receivedAt: at("11:00") },
  { code: "DLV", occurredAt: at("12:00"), receivedAt: at("12:00") },
];
/** By an event whose sender has mixed up zones. */
const BY_ZONE: readonly HeldEvent[] = [
  { code: "OUT", occurredAt: at("13:00"), receivedAt: at("11:00") },
  { code: "DLV", occurredAt: at("12:00"), receivedAt: at("12:00") },
];

let runtime: TestRuntime;
let clickhouse: ClickHouseClient;
let archive: OpenArchive;
let counter = 0;

beforeAll(async () => {
  const url = "https://m.example";
  runtime = await openWebhookRuntime([
    { code: "change", url: `${url}/change` },
    { code: "first", url: `${url}/first`, trigger: "first_occurrence" },
    { code: "every", url: `${url}/every`, trigger: "every_event" },
  ]);
  clickhouse = await openClickhouse(runtime.config, "write");
  await applySchema(clickhouse, runtime.config);
  archive = openArchive(runtime.config, runtime.secrets.vault);
  await beginGeneration(runtime.redis, runtime.live.now(), runtime.config.eventsPerDay);
}, 300_000);

afterAll(async () => {
  await archive.close();
  await clickhouse.close();
  await runtime.end();
});

beforeEach(async () => {
  // As after the upgrade.
  await runtime.redis.del(REMAP_KEYS.refold);
});

const consumers: { stop: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const consumer of consumers.splice(0)) await consumer.stop();
});

function newShipment(): Promise<number> {
  counter += 1;
  return addShipment(runtime, `AHEAD${counter}`);
}

async function heldShipment(events: readonly HeldEvent[]): Promise<number> {
  const id = await newShipment();
  await hold(runtime, id, events);
  return id;
}

async function stored(id: number) {
  const [found] = await readShipments(runtime.redis, [id]);
  if (!found) throw new Error(`no shipment ${id}`);
  return found;
}

async function statusOf(id: number) {
  const channelIds = [...runtime.live.configuration().channels.keys()];
  const [one] = await readShipmentsAnywhere(runtime.redis, archive, [id], channelIds);
  return one?.state.pair.status;
}

/** A processor begins the refold, or goes on with it, to its end. */
async function sweep(): Promise<void> {
  const remaps = startRemaps({ ...runtime, archive });
  await eventually(
    async () => (await runtime.redis.hGet(REMAP_KEYS.refold, "state")) === "done",
    "the refold is done",
  );
  await remaps.stop();
}

/** Decides what the change log tells, then what each endpoint gets of a shipment. */
async function webhooksOf(id: number): Promise<string[]> {
  const { redis, log } = runtime;
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "webhooks",
    batch: 100,
    handler: decideHandler(runtime),
  });
  await eventually(async () => {
    const lags = await readLags(redis);
    return lags.every(({ group, entries }) => group !== "webhooks" || entries === 0);
  }, "all changes are decided");
  await consumer.stop();
  const sent: string[] = [];
  for (const code of ["change", "every", "first"]) {
    for (const one of await deliveriesOf(runtime, endpointOf(runtime, code))) {
      if (one.shipmentId === id) sent.push(`${code} ${one.fact.status}`);
    }
  }
  return sent;
}

async function archiveSilent(): Promise<void> {
  await passTime(runtime, (SILENT_DAYS + 1) * DAY_SECONDS);
  const { redis, live, log, secrets } = runtime;
  const deps: ArchiverDeps = {
    redis,
    live,
    log,
    vault: secrets.vault,
    clickhouse: async () => clickhouse,
    afterDays: 30,
    prepare: held,
    pace: held,
    isStopping: () => false,
    isTimeUp: () => false,
  };
  await archiveAll(deps, held);
}

const isArchived = async (id: number) => (await readShipments(runtime.redis, [id])).length === 0;

/** A late event, as the processors take it. */
async function late(id: number, code: string): Promise<void> {
  const { redis, live, config } = runtime;
  const sent = event({ status: { code, description: code }, occurredAt: at("08:00") });
  const { factKey } = seenBucket("GLS_ITA", sent.eventId);
  const logged = { shipmentId: id, messageIndex: 0, event: sent, courier: "GLS_ITA", factKey };
  const e = encodeLoggedEvent({ ...logged, receivedAtMs: live.now() });
  const handler = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay, archive });
  expect(await handler([{ key: "{e0}:log", id: "1-0", fields: { e } }])).toEqual([]);
}

describe("without a new event, after the upgrade", () => {
  test("a shipment that an event from 2099 held is in the status that its history says, and is found by it", async () => {
    const id = await heldShipment(BY_2099);
    const before = await stored(id);
    expect(before.state.pair.status).toBe("OUT_FOR_DELIVERY");
    await passTime(runtime, 60);
    await sweep();
    const after = await stored(id);
    expect(after.state.pair.status).toBe("DELIVERED");
    expect(after.statusUpdatedAtMs ?? 0).toBeGreaterThan(before.statusUpdatedAtMs ?? 0);
    expect(await isFoundIn(runtime, id, "DELIVERED")).toBe(true);
    expect(await isFoundIn(runtime, id, "OUT_FOR_DELIVERY")).toBe(false);
    expect((await readHistory(runtime.redis, id)).map((fact) => fact.event.occurredAt)).toEqual(
      BY_2099.map(({ occurredAt }) => occurredAt),
    );
  });

  test("its endpoints are told of the change once, as after a remap", async () => {
    const id = await heldShipment(BY_2099);
    await sweep();
    const told = ["change DELIVERED", "every DELIVERED", "first DELIVERED"];
    expect(await webhooksOf(id)).toEqual(told);
    await runtime.redis.del(REMAP_KEYS.refold);
    await sweep();
    expect(await webhooksOf(id)).toEqual(told);
  });

  test("a pair that it had been in before it was held is no first occurrence", async () => {
    const [transit, out, delivered] = BY_2099 as [HeldEvent, HeldEvent, HeldEvent];
    const id = await heldShipment([
      transit,
      { ...delivered, receivedAt: at("12:00") },
      { ...out, receivedAt: at("11:30") },
    ]);
    expect((await stored(id)).state.entered).toContain("DELIVERED:0");
    await sweep();
    expect(await webhooksOf(id)).toEqual(["change DELIVERED", "every DELIVERED"]);
  });

  test("one that an event some hours ahead decided is put right, and one that nothing ahead decides is not written", async () => {
    const zone = await heldShipment(BY_ZONE);
    const sound = await heldShipment(BY_2099.filter(({ code }) => code !== "OUT"));
    const { redis } = runtime;
    const head = () => redis.hGet(companyKeys(shipmentPartition(sound)).shipment(sound), "v");
    const before = await head();
    await sweep();
    expect((await stored(zone)).state.pair.status).toBe("DELIVERED");
    expect(await head()).toBe(before);
    expect(await webhooksOf(sound)).toEqual([]);
  });

  test("one that was cut short goes on where it stood, in another process", async () => {
    const [first, second] = [await heldShipment(BY_2099), await heldShipment(BY_2099)];
    const partition = shipmentPartition(first);
    const channel = (await stored(first)).record.channelId;
    const key = companyKeys(partition).index(channel, "id");
    const cursor = { partition, key, shipmentId: first };
    const progress = JSON.stringify({ ...NO_PROGRESS, isScan: true, cursor });
    await runtime.redis.hSet(REMAP_KEYS.refold, { progress, state: "running" });
    await sweep();
    // What stands before the cursor was done by the process that died: here nobody did it.
    expect([await statusOf(first), await statusOf(second)]).toEqual([
      "OUT_FOR_DELIVERY",
      "DELIVERED",
    ]);
  });

  test("a remap of one of its codes puts it right as well", async () => {
    const id = await heldShipment(BY_2099);
    const { redis, live } = runtime;
    const entry = { code: "TRN", description: "d", terminal: false };
    const before = { ...entry, status: "IN_TRANSIT" } as const;
    const after = { ...entry, status: "DELAY" } as const;
    const order = { courier: "GLS_ITA", by: "operator", reverts: null };
    const remap = await underSetupLock(redis, () =>
      announceRemap(redis, { ...order, entries: [{ code: "TRN", before, after }] }, live.now()),
    );
    await redis.hSet(REMAP_KEYS.refold, { progress: "{}", state: "done" });
    const remaps = startRemaps({ ...runtime, archive });
    await eventually(async () => (await readRemap(redis, remap))?.state === "done", "it is done");
    await remaps.stop();
    expect(await statusOf(id)).toBe("DELIVERED");
  });
});

describe("in the archive", () => {
  test("a shipment that an event from 2099 held comes back and is put right, and no other comes back", async () => {
    const [bad, sound] = [
      await heldShipment(BY_2099),
      await heldShipment(BY_2099.filter(({ code }) => code !== "OUT")),
    ];
    await archiveSilent();
    expect([await isArchived(bad), await isArchived(sound)]).toEqual([true, true]);
    await sweep();
    expect(await statusOf(bad)).toBe("DELIVERED");
    expect([await isArchived(bad), await isArchived(sound)]).toEqual([false, true]);
    expect(await webhooksOf(bad)).toEqual([
      "change DELIVERED",
      "every DELIVERED",
      "first DELIVERED",
    ]);
  }, 300_000);

  test("a late event that brings one back puts it right, and tells of both", async () => {
    const id = await heldShipment(BY_2099);
    await archiveSilent();
    expect(await isArchived(id)).toBe(true);
    await late(id, "INF");
    expect(await statusOf(id)).toBe("DELIVERED");
    expect((await webhooksOf(id)).filter((one) => !one.startsWith("every"))).toEqual([
      "change DELIVERED",
      "first DELIVERED",
    ]);
  }, 300_000);

  test("the rows are asked for in steps of bounded size, which leave none out", async () => {
    const ids = [await heldShipment(BY_2099), await heldShipment(BY_2099)];
    await archiveSilent();
    const found: number[] = [];
    let steps = 0;
    for (let after: ArchivePlace | null = { channelId: 0, id: 0 }; after !== null; steps += 1) {
      const page: AheadPage = await readAhead(clickhouse, after, 1);
      found.push(...page.ids);
      after = page.next;
    }
    expect(steps).toBeGreaterThan(2);
    expect(found).toEqual(expect.arrayContaining(ids));
    expect((await archive.ahead({ channelId: 0, id: 0 })).ids).toEqual(found);
  }, 300_000);
});
