/** Rows that search scans: every process sees every change at once, in a company and in no other (document 1, search). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { binary } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { addYears, romeDate } from "#core/platform/time/rome-time.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import {
  type Answer,
  type Call,
  item,
  openTestApi,
  type TestApi,
} from "#test/support/product/api.ts";

let api: TestApi;
let another: Call;
let token: string;
let ids: number[];

beforeAll(async () => {
  api = await openTestApi(testSetup());
  another = await api.another();
  token = await api.token("key_acme_main");
  ids = await create(token, 0, 100);
});
afterAll(() => api.end());

async function create(as: string, from: number, count: number): Promise<number[]> {
  const shipments = Array.from({ length: count }, (_, at) =>
    item(`COL-${from + at}`, { shipDate: at % 2 === 0 ? "2026-11-10" : "2026-11-11" }),
  );
  const { body } = await api.call("POST", "/v2/shipments", { token: as, body: { shipments } });
  return body.items.map(({ id }: { id: number }) => id);
}

/** Filtered by one index and sorted by another: answered by the rows. */
const SHIPPED = "shipDateFrom=2026-11-10&shipDateTo=2026-11-10&sortBy=updatedAt_desc&limit=100";

const search = (call: Call, query: string, as = token): Promise<Answer> =>
  call("GET", `/v2/shipments?${query}`, { token: as });

const idsOf = ({ body }: Answer): number[] => body.items.map(({ id }: { id: number }) => id);

test("a created shipment is found by the next request to any process", async () => {
  for (let round = 0; round < 5; round += 1) {
    for (const call of [api.call, another]) await search(call, SHIPPED);
    const [fresh] = await create(token, 1_000 + round, 1);
    for (const call of [api.call, another]) {
      expect(idsOf(await search(call, SHIPPED))).toContain(fresh ?? 0);
    }
  }
});

test("a changed shipment stands at its new rank, in any process", async () => {
  for (const shipmentId of [ids[4], ids[40], ids[98]]) {
    await applyEvents(api.runtime, [{ shipmentId: shipmentId ?? 0, code: "TRN" }]);
    await api.advance(2);
    for (const call of [api.call, another]) {
      const found = await search(call, SHIPPED);
      expect(found.body.items[0]).toMatchObject({ id: shipmentId, status: "IN_TRANSIT" });
      const moving = await search(call, `${SHIPPED}&status=IN_TRANSIT`);
      expect(idsOf(moving)[0]).toBe(shipmentId ?? 0);
    }
  }
});

test("companies, and channels of one company, are kept apart", async () => {
  const outlet = await api.token("key_acme_outlet");
  const beta = await api.token("key_beta_main");
  const inOutlet = await create(outlet, 0, 2);
  const inBeta = await create(beta, 0, 2);
  expect(idsOf(await search(api.call, SHIPPED, outlet))).toEqual(inOutlet.slice(0, 1));
  expect(idsOf(await search(api.call, SHIPPED, beta))).toEqual(inBeta.slice(0, 1));
  const wide = await search(api.call, `${SHIPPED}&scope=company`);
  expect(wide.body.total).toBe(50 + 5 + 1);
});

test("the first ship date and the last", async () => {
  const last = addYears(romeDate(api.runtime.live.now()), 1);
  const shipments = [item("OLD", { shipDate: "2000-01-01" }), item("LATE", { shipDate: last })];
  await api.call("POST", "/v2/shipments", { token, body: { shipments } });
  const old = await search(api.call, "shipDateTo=2000-01-01&sortBy=id_asc");
  const late = await search(api.call, `shipDateFrom=${last}&sortBy=updatedAt_asc`);
  const numbers = [old, late].map(({ body }) => body.items[0].trackingNumber);
  expect(numbers).toEqual(["OLD", "LATE"]);
});

describe("a process whose row log does not go on from what it has read reads all again", () => {
  const moving = async () =>
    (await search(api.call, `${SHIPPED}&status=OUT_FOR_DELIVERY`)).body.total;

  const change = (at: number, code: string) =>
    applyEvents(api.runtime, [{ shipmentId: ids[at] ?? 0, code }]);

  function keysOf() {
    const { companyId, id } = channelOf(api.runtime);
    const keys = companyKeys(companyPartition(companyId));
    return { log: keys.rowLog(id), block: keys.block(id, 0) };
  }

  test("since it was unavailable for longer than entries are kept", async () => {
    const before = await moving();
    const { redis } = api.runtime;
    const { log } = keysOf();
    await change(10, "OUT");
    const bytes = (await binary(redis).get(log)) as unknown as Buffer;
    const gone = Buffer.alloc(8);
    gone.writeDoubleLE(bytes.readDoubleLE(0) + (bytes.length - 8) / 4);
    await redis.set(log, gone);
    expect(await moving()).toBe(before + 1);
  });

  test("since a failover has lost entries, and others stand in their place", async () => {
    const { redis } = api.runtime;
    const keys = Object.values(keysOf());
    const before = await moving();
    const held = await Promise.all(keys.map((key) => binary(redis).dump(key)));
    await change(20, "OUT");
    expect(await moving()).toBe(before + 1);
    for (const [at, key] of keys.entries()) {
      await redis.restore(key, 0, held[at] as unknown as Buffer, { REPLACE: true });
    }
    for (const at of [30, 32]) await change(at, "OUT");
    expect(await moving()).toBe(before + 2);
  });

  test("since entries are lost that it had found when it read everything", async () => {
    const { redis } = api.runtime;
    const keys = Object.values(keysOf());
    const held = await Promise.all(keys.map((key) => binary(redis).dump(key)));
    const fresh = await api.another();
    const found = async () =>
      idsOf(await search(fresh, `${SHIPPED}&status=OUT_FOR_DELIVERY`)) as (number | undefined)[];
    await change(50, "OUT");
    expect(await found()).toContain(ids[50]);
    for (const [at, key] of keys.entries()) {
      await redis.restore(key, 0, held[at] as unknown as Buffer, { REPLACE: true });
    }
    await change(52, "OUT");
    const after = await found();
    expect([after.includes(ids[50]), after.includes(ids[52])]).toEqual([false, true]);
  });
});
