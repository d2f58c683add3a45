/** `waybill verify`: a store that is in order has no difference from the reference model, and each planted fault is found. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { openArchive } from "#analytics/archive.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type OpenEvidence, openEvidence } from "#analytics/verify-evidence.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { referencesOf } from "#core/events/store/references.ts";
import { binary } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  indexMember,
  shipmentPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import type { ShipmentState } from "#core/shipments/rules/fold.ts";
import { decodeHot, encodeHot } from "#core/shipments/store/shipment-codec.ts";
import { readHotHistories } from "#core/shipments/store/shipments.ts";
import { type VerifyDeps, verifyInstallation } from "#core/verify/store/verify-shipments.ts";
import { readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { channelOf, webhookSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";
import { STATUS } from "#test/support/product/webhooks.ts";

let product: TestAnalytics;
let evidence: OpenEvidence;
let clickhouse: ClickHouseClient;
/** A delivered shipment with webhooks, one under way, and an archived one. */
let [done, moving, archived] = [0, 0, 0];

const at = (hour: number) => `2026-11-10T${String(hour).padStart(2, "0")}:00:00+01:00`;

beforeAll(async () => {
  const setup = webhookSetup(
    // Nobody listens there: its deliveries wait for their retries.
    { code: "every", url: "https://127.0.0.1:1/every", trigger: "every_event" },
    { code: "change", url: "https://127.0.0.1:1/change" },
  );
  product = await openTestAnalytics(setup, "embedded", {
    ARCHIVE_AFTER_DAYS: "1",
    ARCHIVE_ROUND_SECONDS: "1",
  });
  const { runtime } = product;
  const { config, redis, live, secrets } = runtime;
  const archive = openArchive(config, secrets.vault);
  evidence = openEvidence({ redis, config, archive, configuration: live.configuration() });
  clickhouse = await openClickhouse(config, "write");
  archived = await addShipment(runtime, "OLD", { channel: "acme-outlet" });
  await send("OLD", [STATUS.departed, STATUS.inTransit, STATUS.delivered]);
  await product.settled();
  await advanceClock(redis, 2 * 86_400);
  const { shipment } = companyKeys(shipmentPartition(archived));
  await eventually(async () => (await redis.exists(shipment(archived))) === 0, "it is archived");
  done = await addShipment(runtime, "DONE", { orderReference: "ORDER" });
  moving = await addShipment(runtime, "MOVING", { parcelNumbers: ["PARCEL"] });
  await send("DONE", [STATUS.departed, STATUS.inTransit, STATUS.delivered]);
  await send("MOVING", [STATUS.departed, STATUS.unmapped], {
    delivery: { estimatedDeliveryDate: "2026-11-12", attemptNumber: 1 },
    trackingNumberChange: { newTrackingNumber: "MOVED" },
  });
  await send("NOBODYS", [STATUS.inTransit], {}, "unknownTracking");
  await product.settled();
  await isTried(done, 6);
}, 300_000);

afterAll(async () => {
  await evidence?.close();
  await clickhouse?.close();
  await product?.end();
});

async function send(
  trackingNumber: string,
  statuses: readonly CourierEvent["status"][],
  members: Partial<CourierEvent> = {},
  outcome = "accepted",
): Promise<void> {
  const events = statuses.map((status, hour) =>
    event({ trackingNumber, status, occurredAt: at(9 + hour), ...members }),
  );
  expect((await push(product.ingest, events)).body).toMatchObject({ [outcome]: events.length });
}

const isTried = (id: number, count: number) =>
  eventually(async () => {
    const { body } = await product.call("GET", `/panel/api/shipments/${id}/trace`);
    const text = JSON.stringify(body);
    return text.split('"attempt":1').length - 1 >= count;
  }, "every delivery was tried");

const ALL = { share: 1 };

function verify(terms: Partial<VerifyDeps> = {}) {
  const { redis, live } = product.runtime;
  const { refresh, now } = live;
  return verifyInstallation({ redis, refresh, analytics: evidence, now, rest: 0, ...terms }, ALL);
}

/** Nothing else changes the store. */
const AT_REST = { sleep: async () => {}, looksMs: [0] };

async function found(terms: Partial<VerifyDeps> = {}): Promise<string[]> {
  const { differences } = await verify({ ...AT_REST, ...terms });
  return differences.map(({ shipmentId, what }) => `${shipmentId} ${what}`);
}

/** Shipments that come while the store is compared. */
const TRAFFIC = 20;

describe("a healthy store", () => {
  test("has no difference, in Redis, the archive, the benchmarks and the ledger", async () => {
    expect(await verify()).toMatchObject({
      shipments: 2,
      archived: 1,
      differences: [],
      count: 0,
    });
  }, 300_000);

  test("has none while events, corrections of the mapping and an erasure change it", async () => {
    const { runtime } = product;
    let isOver = false;
    let rounds = 0;
    const busy = (async () => {
      for (; !isOver && rounds < TRAFFIC; rounds += 1) {
        const number = `BUSY-${rounds}`;
        const id = await addShipment(runtime, number);
        await send(number, [
          STATUS.departed,
          STATUS.heldInDepot,
          STATUS.inTransit,
          STATUS.delivered,
        ]);
        await send(number, [STATUS.outForDelivery], { delivery: { signedBy: "Zyxw" } });
        if (rounds % 5 === 1)
          await product.call("DELETE", `/panel/api/shipments/${id}/personal-data`);
        if (rounds === 2) {
          const entry = { description: "x", status: "DELAY", terminal: false };
          await product.call("PUT", "/panel/api/couriers/GLS_ITA/catalogue/XYZ", entry);
        }
      }
    })();
    await eventually(() => rounds >= 4, "there is traffic");
    const verified = await verify();
    isOver = true;
    await busy;
    await product.settled();
    expect(verified.differences).toEqual([]);
    expect(verified.shipments).toBeGreaterThan(4);
  }, 300_000);
});

/** Changes a value under a key of Redis, and what brings it back. */
async function plantedIn(
  key: string,
  change: () => Promise<unknown>,
): Promise<() => Promise<unknown>> {
  const bytes = binary(product.runtime.redis);
  const before = (await bytes.dump(key)) as unknown as Buffer | null;
  await change();
  return async () => {
    await product.runtime.redis.del(key);
    if (before) await bytes.restore(key, 0, before);
  };
}

const keysOf = (id: number) => companyKeys(shipmentPartition(id));

/** A stored state with other members. */
function state(of: () => number, members: (from: ShipmentState) => Partial<ShipmentState>) {
  return async () => {
    const { redis } = product.runtime;
    const key = keysOf(of()).shipment(of());
    return plantedIn(key, async () => {
      const { meta, state: from } = decodeHot(
        (await binary(redis).hGet(key, "st")) as unknown as Buffer,
      );
      await redis.hSet(key, "st", Buffer.from(encodeHot(meta, { ...from, ...members(from) })));
    });
  };
}

/** A change of an index of the channel. */
const index =
  (order: "id" | "ship" | "upd", change: (key: string) => Promise<unknown>) => async () => {
    const key = keysOf(done).index(channelOf(product.runtime).id, order);
    return plantedIn(key, () => change(key));
  };

const reference = (number: string) => async () => {
  const [first] = referencesOf("GLS_ITA", [number], [], []);
  const { key = "" } = first ?? {};
  return plantedIn(key, () => product.runtime.redis.del(key));
};

/** The first delivery of the delivered shipment. */
async function firstDelivery() {
  const { body } = await product.call("GET", `/panel/api/shipments/${done}/trace`);
  const [verdict] = body.events[0].decisions[0].verdicts;
  return {
    endpointId: verdict.endpointId as string,
    deliveryId: verdict.delivery.deliveryId as string,
  };
}

const delivery = (field: string, value: string) => async () => {
  const key = webhookKeys(shipmentPartition(done)).delivery((await firstDelivery()).deliveryId);
  return plantedIn(key, () => product.runtime.redis.hSet(key, field, value));
};

/** The verdicts about the first change, as one of them is put otherwise. */
const verdicts = (change: (text: string) => string) => async () => {
  const { redis } = product.runtime;
  const key = webhookKeys(shipmentPartition(done)).verdicts(done);
  const [first] = await readDecisions(redis, done);
  const field = first?.eventId ?? "";
  return plantedIn(key, async () =>
    redis.hSet(key, field, change((await redis.hGet(key, field)) ?? "")),
  );
};

/** A row of ClickHouse in another form, and the same again as it was. */
const rows =
  (table: string, key: string, of: () => number, column: string, value: string) => async () => {
    const update = (to: string) =>
      clickhouse.command({
        query: `ALTER TABLE ${table} UPDATE ${column} = ${to} WHERE ${key} = ${of()} SETTINGS mutations_sync = 2`,
      });
    const answer = await clickhouse.query({
      query: `SELECT toString(${column}) AS value FROM ${table} WHERE ${key} = ${of()} LIMIT 1`,
      format: "JSONEachRow",
    });
    const [before] = await answer.json<{ value: string }>();
    await update(value);
    return () => update(`'${before?.value}'`);
  };

const isDone = () => done;
const isMoving = () => moving;
const isArchived = () => archived;
const later = (ms: number) => ms + 1_000;

const PLANTS: readonly (readonly [
  name: string,
  what: RegExp,
  of: () => number | null,
  () => Promise<() => Promise<unknown>>,
])[] = [
  [
    "the status",
    /state\.status/,
    isDone,
    state(isDone, () => ({ pair: { status: "RETURNED", detail: 0 } })),
  ],
  [
    "the status detail",
    /state\.detail/,
    isMoving,
    state(isMoving, ({ pair }) => ({ pair: { ...pair, detail: 7 } })),
  ],
  [
    "the fact that decides",
    /state\.mapped/,
    isDone,
    state(isDone, ({ last, keys }) => ({
      mapped: last && {
        by: { ...last.by, key: keys.find((key) => key !== last.by.key) ?? "" },
        value: { status: "DELIVERED", detail: 0 },
      },
    })),
  ],
  [
    "the place",
    /state\.place/,
    isDone,
    state(isDone, ({ last }) => ({ last: last && { ...last, value: { place: "Elsewhere" } } })),
  ],
  [
    "a known event",
    /state\.keys/,
    isMoving,
    state(isMoving, ({ keys }) => ({ keys: keys.slice(1) })),
  ],
  [
    "the statuses of its events",
    /state\.pairs/,
    isDone,
    state(isDone, ({ pairs }) => ({ pairs: pairs.slice(1) })),
  ],
  [
    "the statuses that it has been in",
    /state\.entered/,
    isDone,
    state(isDone, () => ({ entered: [] })),
  ],
  [
    "the expected delivery",
    /state\.estimate/,
    isMoving,
    state(isMoving, ({ estimate }) => ({
      estimate: estimate && { ...estimate, value: { ...estimate.value, date: "2026-12-24" } },
    })),
  ],
  ["the further numbers", /state\.aliases/, isMoving, state(isMoving, () => ({ aliases: [] }))],
  ["the attempts", /state\.attemptNumber/, isMoving, state(isMoving, () => ({ attemptNumber: 3 }))],
  [
    "the failed attempts",
    /state\.failedAttempts/,
    isDone,
    state(isDone, () => ({ failedAttempts: 1 })),
  ],
  ["the exceptions", /state\.exceptions/, isDone, state(isDone, () => ({ exceptions: 2 }))],
  ["the unmapped events", /state\.unmapped/, isMoving, state(isMoving, () => ({ unmapped: 5 }))],
  ["the return", /state\.isReturn/, isDone, state(isDone, () => ({ isReturn: true }))],
  [
    "the departure",
    /state\.departedAt/,
    isDone,
    state(isDone, ({ departedAtMs }) => ({ departedAtMs: later(departedAtMs ?? 0) })),
  ],
  [
    "a missing member of the index by id",
    /channel\.\d+\.ship/,
    () => null,
    index("id", (key) => product.runtime.redis.zRem(key, indexMember(done))),
  ],
  [
    "a member of the index by id without a shipment",
    /index\.shipment/,
    () => 999_999,
    index("id", (key) =>
      product.runtime.redis.zAdd(key, { score: 999_999, value: indexMember(999_999) }),
    ),
  ],
  [
    "the ship date of the index",
    /index\.ship$/,
    isDone,
    index("ship", (key) => product.runtime.redis.zAdd(key, { score: 1, value: indexMember(done) })),
  ],
  [
    "statusUpdatedAt of the index",
    /index\.upd/,
    isDone,
    index("upd", (key) => product.runtime.redis.zAdd(key, { score: 1, value: indexMember(done) })),
  ],
  [
    "the row that search scans",
    /index\.row/,
    isDone,
    async () => {
      const key = keysOf(done).block(channelOf(product.runtime).id, 0);
      return plantedIn(key, () => product.runtime.redis.setRange(key, 4, "\0\0\0\0"));
    },
  ],
  [
    "an exact value",
    /index\.orderReference/,
    isDone,
    async () => {
      const key = keysOf(done).exact(channelOf(product.runtime).id, "orderReference", "ORDER");
      return plantedIn(key, () => product.runtime.redis.del(key));
    },
  ],
  [
    "the number on its channel",
    /index\.number/,
    isDone,
    async () => {
      const key = keysOf(done).numbers(channelOf(product.runtime).id, "DONE");
      return plantedIn(key, () => product.runtime.redis.hSet(key, "GLS_ITA", "1"));
    },
  ],
  ["the reference of its number", /reference\.number\.DONE/, isDone, reference("DONE")],
  [
    "the reference of a number that was announced",
    /reference\.number\.MOVED/,
    isMoving,
    reference("MOVED"),
  ],
  [
    "a verdict that cannot be",
    /verdict/,
    isDone,
    verdicts((text) => text.replace('"send"', '"unmapped"')),
  ],
  [
    "a verdict without its delivery",
    /delivery/,
    isDone,
    verdicts((text) => text.replace('"send"', '"filtered"')),
  ],
  ["a delivery's state", /state/, isDone, delivery("s", "delivered")],
  ["a delivery's next attempt", /due/, isDone, delivery("d", "1")],
  [
    "a delivery that the log lacks",
    /logged/,
    isDone,
    async () => {
      const { endpointId, deliveryId } = await firstDelivery();
      const key = webhookKeys(shipmentPartition(done)).log(endpointId);
      return plantedIn(key, () => product.runtime.redis.zRem(key, deliveryId));
    },
  ],
  [
    "the ledger",
    /ledger\.webhooks/,
    () => null,
    async () => {
      const { ledger } = keysOf(done);
      return plantedIn(ledger, () => product.runtime.redis.hIncrBy(ledger, "webhook:send", 3));
    },
  ],
  [
    "the lead time of a benchmark row",
    /benchmarks\.leadDays/,
    isDone,
    rows("deliveries", "shipment_id", isDone, "lead_days", "9"),
  ],
  [
    "the attempts of a benchmark row",
    /benchmarks\.attempts/,
    isDone,
    rows("deliveries", "shipment_id", isDone, "attempts", "4"),
  ],
  [
    "the weight band of an archived shipment's benchmark row",
    /benchmarks\.weightBand/,
    isArchived,
    rows("deliveries", "shipment_id", isArchived, "weight_band", "'50+'"),
  ],
  [
    "the status of an archive row",
    /archive\.row/,
    isArchived,
    rows("archived_shipments", "id", isArchived, "status", "11"),
  ],
  [
    "the time of an archive row",
    /archive\.row/,
    isArchived,
    rows("archived_shipments", "id", isArchived, "updated", "1"),
  ],
  [
    "the status in the archive's index",
    /archive\.index/,
    isArchived,
    rows("archived_index", "id", isArchived, "status", "11"),
  ],
  [
    "what the archive counts",
    /archive\.\d+\.counts/,
    () => null,
    async () => {
      const channel = channelOf(product.runtime, "acme-outlet");
      const key = keysOf(archived).archived(channel.companyId);
      return plantedIn(key, () => product.runtime.redis.hIncrBy(key, `n:${channel.id}:12`, 1));
    },
  ],
];

describe("a planted fault is found, and says whose it is", () => {
  test("there are at least thirty", () => {
    expect(PLANTS.length).toBeGreaterThanOrEqual(30);
  });

  test.each(PLANTS)(
    "%s",
    async (_, what, of, plant) => {
      const restore = await plant();
      const differences = await found();
      await restore();
      const own = differences.filter((one) => one.startsWith(`${of()} `));
      expect(own.filter((one) => what.test(one))).not.toEqual([]);
    },
    60_000,
  );

  test("and nothing is left of them", async () => {
    expect(await found()).toEqual([]);
    expect((await readHotHistories(product.runtime.redis, [done, moving])).length).toBe(2);
  }, 60_000);
});
