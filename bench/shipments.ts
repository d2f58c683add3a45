/**
 * Shipments in number, for the measurements that need them there: `loadShipments` puts them into the store with the code
 * that creates and registers them, in batches, by several processes of this file. While it lasts Redis keeps no append-only
 * file; it is written whole at the end and kept from then on.
 */
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { changeLogs, companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { idAt } from "#core/platform/redis/partitions.ts";
import { openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { prepareShipment } from "#core/shipments/rules/new-shipment.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forEach, type Store } from "./harness.ts";

/** One a partition, with one channel each. */
const COMPANIES = 16;
/** Variables of a store in which every company has a partition of its own, so that ids are known beforehand. */
export const PARTITION_EACH = { STORE_PARTITIONS: String(COMPANIES) };
export const COURIER = "GLS_ITA";
const CREATED_AT_ONCE = 1_000;
/** Batches of one process under way: it packs one while Redis writes another. */
const COMPANIES_AT_ONCE = 2;
const PROCESSES = 2;
const REWRITE_LIMIT_MS = 900_000;
const RATE = { perSecond: 100_000, burst: 1_000_000 };

/**
 * Every channel has an endpoint whose filter no event of a measurement passes: all decisions are made and recorded, and
 * what sending costs is measured elsewhere (rows 7 and 8).
 */
export function benchSetup(): SetupFile {
  const [company] = testSetup().companies ?? [];
  const channel = company?.channels?.[0];
  if (!company || !channel) throw new Error("no channel");
  const webhook = {
    code: "hook",
    url: "https://shop.example.com/hook",
    alertEmail: "ops@example.com",
    trigger: "status_change" as const,
    statuses: ["RETURNED" as const],
    secret: WEBHOOK_SECRET,
  };
  const companies = Array.from({ length: COMPANIES }, (_, n) => {
    const code = companyCode(n);
    const apiKeys = [{ code: "main", key: `key_of_company_${n}` }];
    return { ...company, code, channels: [{ ...channel, code, apiKeys, webhooks: [webhook] }] };
  });
  return { ...testSetup(), couriers: fastCouriers(), companies };
}

/** Whose events are never refused for their rate. */
const fastCouriers = () =>
  (testSetup().couriers ?? []).map((courier) => ({ ...courier, rateLimit: RATE }));

/** Companies of one channel each, for the measurements of webhooks. @param urls of the endpoints of each */
export function webhookSetup(
  urls: readonly (readonly string[])[],
  trigger?: "every_event",
): SetupFile {
  const companies = urls.map((own, at) => {
    const webhooks = own.map((url, n) => ({
      code: `hook-${n}`,
      url,
      alertEmail: "ops@bench.test",
      secret: WEBHOOK_SECRET,
      ...(trigger && { trigger }),
    }));
    const couriers = [{ code: COURIER }];
    return { code: `company-${at}`, channels: [{ code: `channel-${at}`, couriers, webhooks }] };
  });
  return { ...testSetup(), couriers: fastCouriers(), companies };
}

/** Shipments are dealt to the companies in turn. */
const companyCode = (n: number) => `c${n % COMPANIES}`;
export const trackingNumberOf = (n: number) => `${companyCode(n)}-${Math.floor(n / COMPANIES)}`;

/** Of `count`, the one that stands at so much of the way through all of a company's, of every company in turn. */
export function spreadOver(count: number, at: number, of: number): number {
  return Math.floor((Math.floor(at / COMPANIES) * count) / of) * COMPANIES + (at % COMPANIES);
}

/** What a store of `PARTITION_EACH` has called the n-th one: a company's shipments are created one after the other. */
export function shipmentIdOf({ live }: Pick<Runtime, "live">, n: number): number {
  const { companyId } = channelOf(live, companyCode(n));
  return idAt(Math.floor(n / COMPANIES) + 1, companyPartition(companyId));
}

function channelOf(live: Runtime["live"], code: string) {
  const channel = live.configuration().channelByCode.get(code);
  if (!channel) throw new Error(`no channel ${code}`);
  return channel;
}

/** An ordinary Italian parcel with two order lines: names and streets differ from one to the next. */
export function itemOf(n: number, trackingNumber: string): ShipmentInput {
  return {
    trackingNumber,
    courier: COURIER,
    shipDate: `2026-11-${String(1 + (n % 28)).padStart(2, "0")}`,
    orderReference: `IT-2026-${100_000 + n}`,
    orderDate: "2026-11-01",
    origin: "shopify",
    consignee: {
      name: `${["Mario", "Giulia", "Luca", "Sara"][n % 4]} ${["Rossi", "Bianchi", "Ferrari"][n % 3]}`,
      street: `Via Giuseppe Garibaldi ${1 + (n % 240)}`,
      city: ["Roma", "Torino", "Napoli"][n % 3] ?? "Roma",
      postcode: ["00118", "10121", "80121"][n % 3] ?? "00118",
      state: ["RM", "TO", "NA"][n % 3] ?? "RM",
      country: "IT",
      email: `cliente${n}@example.com`,
      phone: `+39 333 ${1_000_000 + n}`,
    },
    monetary: { totalValue: 20 + (n % 900) / 10, currency: "EUR" },
    parcels: [{ weight: 1 + (n % 50) / 10, boxCode: "S" }],
    orderItems: [
      { sku: `SKU-${n % 977}`, name: "Maglietta girocollo cotone", quantity: 1, price: 19.9 },
      { sku: `SKU-${n % 389}`, name: "Pantaloni chino slim", quantity: 2, price: 49.5 },
    ],
  };
}

/** Creates and registers. @returns their ids */
export async function createItems(
  { redis, live }: Pick<Runtime, "redis" | "live">,
  code: string,
  items: readonly ShipmentInput[],
): Promise<number[]> {
  const channel = channelOf(live, code);
  const context = creationContext(live.configuration(), channel);
  const ready = items.map((item) => {
    const prepared = prepareShipment(item, context, live.now());
    if (prepared.kind === "rejected") throw new Error(JSON.stringify(prepared.errors));
    return prepared;
  });
  const ids = (await createShipments(redis, channel.companyId, ready)).map(({ id }) => id);
  await registerShipments(redis, live.configuration(), ids);
  return ids;
}

/** @throws when a process fails, or the append-only file is not written in time */
export async function loadShipments({ runtime, env }: Store, count: number): Promise<void> {
  await withoutFile(runtime.redis, async () => {
    const exits = Array.from({ length: PROCESSES }, (_, part) => {
      const command = [process.execPath, import.meta.path, JSON.stringify({ env, count, part })];
      return Bun.spawn(command, { env, stdio: ["ignore", "ignore", "inherit"] }).exited;
    });
    const statuses = await Promise.all(exits);
    if (statuses.some((status) => status !== 0)) throw new Error("loading failed");
  });
}

/** Does the work without an append-only file, which is written whole at its end. */
export async function withoutFile<T>(redis: Redis, work: () => Promise<T>): Promise<T> {
  await redis.configSet("appendonly", "no");
  const result = await work();
  await redis.configSet("appendonly", "yes");
  const busy = /aof_rewrite_(in_progress|scheduled):1/;
  const isWritten = async () => !busy.test(await redis.info("persistence"));
  await eventually(isWritten, "the append-only file is written", REWRITE_LIMIT_MS, 200);
  return result;
}

/** The shipments of every company that is this process' part. */
export async function loadPart(runtime: Runtime, count: number, part: number, parts: number) {
  const own = Array.from({ length: COMPANIES }, (_, n) => n).filter((n) => n % parts === part);
  await forEach(own, COMPANIES_AT_ONCE, (first) => loadCompany(runtime, first, count));
}

async function loadCompany(runtime: Runtime, first: number, count: number): Promise<void> {
  const code = companyCode(first);
  const { changes } = companyKeys(companyPartition(channelOf(runtime.live, code).companyId));
  for (let from = first; from < count; from += CREATED_AT_ONCE * COMPANIES) {
    const length = Math.min(CREATED_AT_ONCE, Math.ceil((count - from) / COMPANIES));
    const numbers = Array.from({ length }, (_, at) => from + at * COMPANIES);
    const items = numbers.map((n) => itemOf(n, trackingNumberOf(n)));
    await createItems(runtime, code, items);
    await runtime.redis.xTrim(changes, "MAXLEN", 0);
  }
}

/** What the change logs tell is on its way to others; nobody reads it in a measurement that does this. */
export async function emptyLogs(
  redis: Redis,
  logs: readonly string[] = changeLogs(),
): Promise<void> {
  for (const log of logs) await redis.xTrim(log, "MAXLEN", 0);
}

if (import.meta.main) {
  const { env, count, part } = JSON.parse(process.argv[2] ?? "{}");
  const runtime = await openRuntime(readConfig(env), createLog("warn"));
  await loadPart(runtime, count, part, PROCESSES);
  await runtime.close();
}
