/** Creating shipments from several processes at once: ids, ranks in the index and rows of search agree whoever is faster. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { idStride } from "#core/platform/redis/partitions.ts";
import { searchShipments } from "#core/search/store/search.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { BYTES_PER_ROW, ROWS_PER_BLOCK } from "#core/shipments/store/columns.ts";
import { createItems } from "#core/shipments/store/create-items.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";

let runtime: TestRuntime;
/** As two API processes have them. */
let clients: Redis[];

beforeAll(async () => {
  const server = await startTestRedis();
  runtime = await openTestRuntime(testSetup(), {}, server);
  clients = [runtime.redis, await connectRedis(server.address, runtime.log)];
});
afterAll(async () => {
  clients[1]?.destroy();
  await runtime.end();
});

function item(number: string, orderReference = "SAME"): ShipmentInput {
  return {
    courier: "GLS_ITA",
    trackingNumber: number,
    shipDate: "2026-11-09",
    language: "it",
    orderReference,
    destination: { postcode: "00118", country: "IT" },
  } as unknown as ShipmentInput;
}

async function create(redis: Redis, code: string, items: readonly ShipmentInput[]) {
  const { log, live } = runtime;
  const deps = { redis, log, configuration: live.configuration() };
  return createItems(deps, channelOf(runtime, code), items, live.now());
}

/** Every shipment of a channel stands at its rank in the index by id, in its head and among the rows. */
async function expectAgreement(code: string, shipments: number): Promise<void> {
  const { redis } = runtime;
  const { id: channelId, companyId } = channelOf(runtime, code);
  const keys = companyKeys(companyPartition(companyId));
  const ids = (await redis.zRange(keys.index(channelId, "id"), 0, -1)).map(Number);
  expect(ids.length).toBe(shipments);
  const hot = await readHotShipments(redis, ids);
  expect(ids.map((id) => hot.get(id)?.rank)).toEqual(ids.map((_, rank) => rank));
  const { hits } = await searchShipments(redis, {
    companyId,
    channelIds: [channelId],
    order: { by: "id", descending: false } as const,
    offset: 0,
    limit: shipments,
    exact: {},
    trackingNumber: null,
    shipFrom: null,
    shipTo: null,
    updatedFrom: null,
    statuses: ["PENDING"],
  });
  expect(hits.map(({ id }) => id)).toEqual(ids);
}

test("processes that create in one channel at the same time assign every id once, and rows are at the ranks of their ids", async () => {
  const ROUNDS = 12;
  const EACH = 37;
  const outcomes = await Promise.all(
    Array.from({ length: ROUNDS * 2 }, (_, round) => {
      const items = Array.from({ length: EACH }, (_, at) => item(`R${round}-${at}`));
      return create(clients[round % 2] as Redis, "acme-it", items);
    }),
  );
  const ids = outcomes.flat().flatMap((one) => (one.kind === "created" ? [one.id] : []));
  expect(new Set(ids).size).toBe(ROUNDS * 2 * EACH);
  expect(new Set(ids.map((id) => id % idStride())).size).toBe(1);
  await expectAgreement("acme-it", ROUNDS * 2 * EACH);
}, 300_000);

test("an item that two processes create at the same time exists once", async () => {
  const items = Array.from({ length: 50 }, (_, at) => item(`BOTH-${at}`));
  const outcomes = await Promise.all(clients.map((redis) => create(redis, "acme-outlet", items)));
  const kinds = items.map((_, at) => outcomes.map((list) => list[at]?.kind).sort());
  expect(kinds).toEqual(items.map(() => ["created", "rejected"]));
  await expectAgreement("acme-outlet", items.length);
});

test("rows continue in the next blocks, and no number is left out, while another process still assumes an earlier one", async () => {
  const { redis } = runtime;
  const { id: channelId, companyId } = channelOf(runtime, "beta-it");
  const keys = companyKeys(companyPartition(companyId));
  const PER_CALL = 500;
  const calls = Math.ceil((2 * ROWS_PER_BLOCK + 1) / PER_CALL);
  await create(clients[1] as Redis, "beta-it", [item("FIRST")]);
  const ids: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const items = Array.from({ length: PER_CALL }, (_, at) => item(`B${call}-${at}`, `O${call}`));
    const outcomes = await create(redis, "beta-it", items);
    ids.push(...outcomes.flatMap((one) => (one.kind === "created" ? [one.id] : [])));
  }
  const [first = 0] = ids;
  expect(ids).toEqual(Array.from({ length: calls * PER_CALL }, (_, at) => first + at * idStride()));
  const [last] = await create(clients[1] as Redis, "beta-it", [item("LAST")]);
  const count = 2 + calls * PER_CALL;
  const rank = count - 1;
  const length = await redis.strLen(keys.block(channelId, Math.floor(rank / ROWS_PER_BLOCK)));
  expect(length).toBe(((rank % ROWS_PER_BLOCK) + 1) * BYTES_PER_ROW);
  expect(last?.kind).toBe("created");
  await expectAgreement("beta-it", count);
}, 300_000);
