/** `expectedDelivery` of `GET /v2/shipments/{id}` (docs/analytics.md, "Expected delivery"), from deliveries that the product took. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { startAnalytics } from "#analytics/main.ts";
import { DELIVERIES, deliveredShipmentRow, EVENTS, eventTableRow } from "#analytics/write/rows.ts";
import { readStayCells } from "#core/benchmarks/store/stay-cells.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import { workingDay, workingDayNumber } from "#core/platform/time/working-days.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { deliveredShipments } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

const LANE = { destCap: "00184", originCap: "20121", weightKg: 2 };

let api: TestApi;
let shipped: number;

beforeAll(async () => {
  api = await openTestApi(testSetup(), "embedded");
  shipped = workingDayNumber(daysAgo(60, api.runtime.live.now()));
  await deliver();
  const analytics = await startAnalytics(api.runtime);
  await eventually(
    async () => await readStayCells(api.runtime.redis, "GLS_ITA", LANE.destCap),
    "the deliveries are counted",
  );
  await analytics.stop();
});
afterAll(() => api?.end());

/** 25 deliveries: DEPARTED a working day after the ship date, there two days later; 5 of them stayed a day longer in DEPARTED. */
async function deliver(): Promise<void> {
  const rows = deliveredShipments(25, (at) => ({
    ...LANE,
    shipmentId: 1 + at,
    shipDate: workingDay(shipped),
    deliveredOn: workingDay(shipped + (at < 20 ? 3 : 4)),
  }));
  const owner = { company: "c".repeat(16), channel: "d".repeat(16) };
  const facts = rows.flatMap(({ shipmentId, shipDate }, at) =>
    (["DEPARTED", "IN_TRANSIT"] as const).map((status, step) => {
      const day = workingDay(shipped + (step === 0 ? 1 : at < 20 ? 2 : 3));
      const atMs = Date.parse(`${day}T12:00:00Z`);
      return eventTableRow(
        { shipmentId, ...owner },
        {
          key: status,
          courier: "GLS_ITA",
          code: status,
          reasonCode: null,
          occurredAtMs: atMs,
          receivedAtMs: atMs,
          messageIndex: 0,
          status,
          detail: 0,
          terminal: false,
          outOfOrder: false,
          isReturn: false,
          destCap: LANE.destCap,
          originCap: LANE.originCap,
          weightKg: LANE.weightKg,
          shipDate,
          version: 1,
        },
      );
    }),
  );
  const { config } = api.runtime;
  const client = await openClickhouse(config, "write");
  await applySchema(client, config);
  const deliveries = rows.map((row) =>
    deliveredShipmentRow({ shipmentId: row.shipmentId, ...owner }, row),
  );
  for (const [{ name, columns }, own] of [
    [DELIVERIES, deliveries],
    [EVENTS, facts],
  ] as const) {
    const values = own.map((row) => JSON.stringify(row)).join("\n");
    const query = `INSERT INTO ${name} (${columns}) FORMAT JSONCompactEachRow\n${values}`;
    await client.command({ query });
  }
  await client.close();
}

let counter = 0;

async function create(members: object = {}, key = "key_acme_main") {
  counter += 1;
  const shipDate = romeDate(api.runtime.live.now());
  const consignee = { name: "Anna", postcode: LANE.destCap };
  const given = { shipDate, consignee, parcels: [{ weight: 2, boxCode: "S" }], ...members };
  const body = { shipments: [item(`X-${counter}`, given)] };
  const answer = await api.call("POST", "/v2/shipments", { token: await api.token(key), body });
  expect([answer.status, answer.body.errors ?? []]).toEqual([201, []]);
  return answer.body.items[0].id as number;
}

async function expected(id: number) {
  const token = await api.token("key_acme_main");
  const { body } = await api.call("GET", `/v2/shipments/${id}`, { token });
  return { expectedDelivery: body.expectedDelivery, reason: body.expectedDeliveryReason };
}

test("three dates of a shipment on its way, from its lane, its status and how long it has been in it; null with a reason otherwise, while no analytics run", async () => {
  const { runtime } = api;
  const id = await create();
  const today = workingDayNumber(romeDate(runtime.live.now()));
  const sample = { grain: "origin_cap_dest_weight", sampleSize: 25, asOf: expect.any(String) };
  const dates = (p10: number, p50: number, p90: number) => ({
    p10: workingDay(today + p10),
    p50: workingDay(today + p50),
    p90: workingDay(today + p90),
  });
  expect(await expected(id)).toEqual({
    expectedDelivery: { ...dates(3, 3, 3), ...sample },
    reason: undefined,
  });
  await applyEvents(runtime, [{ shipmentId: id, code: "DEP" }]);
  expect((await expected(id)).expectedDelivery).toEqual({ ...dates(2, 2, 2), ...sample });
  await applyEvents(runtime, [{ shipmentId: id, code: "TRN" }]);
  expect((await expected(id)).expectedDelivery).toEqual({ ...dates(1, 1, 1), ...sample });
  await applyEvents(runtime, [{ shipmentId: id, code: "DLV" }]);
  expect(await expected(id)).toEqual({ expectedDelivery: null, reason: "ENDED" });

  const foreign = await create({ consignee: { name: "Anna", postcode: "75001", country: "FR" } });
  expect((await expected(foreign)).reason).toBe("NO_LANE");
  const elsewhere = await create({ consignee: { name: "Anna", postcode: "90121" } });
  expect((await expected(elsewhere)).reason).toBe("TOO_FEW_DELIVERIES");
});
