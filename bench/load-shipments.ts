/**
 * Shipments in number, for the measurements that need them there: `loadShipments` puts them into the store with the code
 * that creates and registers them, in batches, by several processes of this file. While it lasts Redis keeps no append-only
 * file; it is written whole at the end and kept from then on.
 */
import { parseArgs } from "node:util";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { companyKeys, companyPartition, PARTITIONS } from "#core/platform/redis/keys.ts";
import { openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { prepareShipment } from "#core/shipments/rules/new-shipment.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";

/** One a partition, with one channel each. */
export const COMPANIES = PARTITIONS;
export const COURIER = "GLS_ITA";
const CREATED_AT_ONCE = 1_000;
/** Batches of one process under way: it packs one while Redis writes another. */
const COMPANIES_AT_ONCE = 2;
const REWRITE_LIMIT_MS = 900_000;
const POLL_MS = 200;
const TELL_EVERY_MS = 15_000;

/**
 * Every channel has an endpoint whose filter no event of a measurement passes: all decisions are made and recorded, and
 * what sending costs is measured elsewhere (rows 7 and 8).
 */
export function benchSetup(): SetupFile {
  const [company] = testSetup().companies ?? [];
  const channel = company?.channels?.[0];
  if (!company || !channel) throw new Error("no channel");
  const companies = Array.from({ length: COMPANIES }, (_, n) => {
    const code = companyCode(n);
    const webhook = {
      code: "hook",
      url: "https://shop.example.com/hook",
      alertEmail: "ops@example.com",
      trigger: "status_change" as const,
      statuses: ["RETURNED" as const],
      secret: WEBHOOK_SECRET,
    };
    const apiKeys = [{ code: "main", key: `key_of_company_${n}` }];
    return { ...company, code, channels: [{ ...channel, code, apiKeys, webhooks: [webhook] }] };
  });
  const couriers = (testSetup().couriers ?? []).map((courier) => ({
    ...courier,
    rateLimit: { perSecond: 100_000, burst: 1_000_000 },
  }));
  return { ...testSetup(), couriers, companies };
}

function companyCode(n: number): string {
  return `c${n % COMPANIES}`;
}

/** Shipments are dealt to the companies in turn. */
export function trackingNumberOf(n: number): string {
  return `${companyCode(n)}-${Math.floor(n / COMPANIES)}`;
}

/** What the store has called the n-th one: a company's shipments are created one after the other. */
export function shipmentIdOf({ live }: Pick<Runtime, "live">, n: number): number {
  const { companyId } = channelOf(live, n);
  return (Math.floor(n / COMPANIES) + 1) * PARTITIONS + companyPartition(companyId);
}

export function channelOf(live: Runtime["live"], n: number) {
  const channel = live.configuration().channelByCode.get(companyCode(n));
  if (!channel) throw new Error("no channel");
  return channel;
}

/** An ordinary Italian parcel. */
export function preparedShipment({ live }: Pick<Runtime, "live">, n: number) {
  const item = {
    trackingNumber: trackingNumberOf(n),
    courier: COURIER,
    shipDate: `2026-10-${String(1 + (n % 31)).padStart(2, "0")}`,
    orderReference: `IT-2026-${n}`,
    consignee: {
      name: `Mario Rossi ${n % 977}`,
      street: `Via Giuseppe Garibaldi ${1 + (n % 240)}`,
      city: "Roma",
      postcode: "00118",
      country: "IT",
    },
    parcels: [{ weight: 1 + (n % 50) / 10, boxCode: "S" }],
    orderItems: [{ sku: `SKU-${n % 977}`, name: "Maglietta girocollo", quantity: 1, price: 19.9 }],
  };
  const context = creationContext(live.configuration(), channelOf(live, n));
  const prepared = prepareShipment(item, context, live.now());
  if (prepared.kind === "rejected") throw new Error(JSON.stringify(prepared.errors));
  return prepared;
}

/**
 * @param env as a role of the product is given it
 * @throws when a process fails, or the append-only file is not written in time
 */
export async function loadShipments(
  { redis }: Runtime,
  env: Readonly<Record<string, string>>,
  count: number,
  processes = 2,
): Promise<void> {
  await redis.configSet("appendonly", "no");
  const exits = Array.from({ length: processes }, (_, part) => {
    const range = ["--count", String(count), "--part", String(part), "--parts", String(processes)];
    const given = ["--env", JSON.stringify(env)];
    const command = [process.execPath, import.meta.path, ...range, ...given];
    return Bun.spawn(command, { env, stdio: ["ignore", "ignore", "inherit"] }).exited;
  });
  const progress = setInterval(() => void tellProgress(redis, count), TELL_EVERY_MS);
  const statuses = await Promise.all(exits).finally(() => clearInterval(progress));
  if (statuses.some((status) => status !== 0)) throw new Error("loading failed");
  await redis.configSet("appendonly", "yes");
  await appendOnlyFileIsWritten(redis);
}

async function tellProgress(redis: Runtime["redis"], count: number): Promise<void> {
  const counters = Array.from({ length: PARTITIONS }, (_, n) => companyKeys(n).shipmentIds);
  const created = await Promise.all(counters.map((key) => redis.get(key)));
  const sum = created.reduce((total, one) => total + Number(one ?? 0), 0);
  process.stderr.write(`  ${sum} of ${count} shipments loaded\n`);
}

async function appendOnlyFileIsWritten(redis: Runtime["redis"]): Promise<void> {
  const deadline = performance.now() + REWRITE_LIMIT_MS;
  const busy = /aof_rewrite_(in_progress|scheduled):1/;
  while (busy.test(await redis.info("persistence"))) {
    if (performance.now() > deadline) throw new Error("the append-only file is not written");
    await Bun.sleep(POLL_MS);
  }
}

/** The shipments of every company that is this process' part. */
export async function loadPart(runtime: Runtime, count: number, part: number, parts: number) {
  const own = Array.from({ length: COMPANIES }, (_, n) => n).filter((n) => n % parts === part);
  const worker = async () => {
    for (let first = own.pop(); first !== undefined; first = own.pop()) {
      await loadCompany(runtime, first, count);
    }
  };
  await Promise.all(Array.from({ length: COMPANIES_AT_ONCE }, worker));
}

async function loadCompany(runtime: Runtime, first: number, count: number): Promise<void> {
  const { redis, live } = runtime;
  const { companyId } = channelOf(live, first);
  const { changes } = companyKeys(companyPartition(companyId));
  for (let from = first; from < count; from += CREATED_AT_ONCE * COMPANIES) {
    const length = Math.min(CREATED_AT_ONCE, Math.ceil((count - from) / COMPANIES));
    const ready = Array.from({ length }, (_, at) =>
      preparedShipment(runtime, from + at * COMPANIES),
    );
    const ids = (await createShipments(redis, companyId, ready)).map(({ id }) => id);
    if (ids[0] !== shipmentIdOf(runtime, from)) throw new Error("ids are dealt in another order");
    await registerShipments(redis, live.configuration(), ids);
    // Nobody reads it yet, and what it tells has been done.
    await redis.xTrim(changes, "MAXLEN", 0);
  }
}

async function main(): Promise<void> {
  const number = { type: "string", default: "0" } as const;
  const env = { type: "string", default: "{}" } as const;
  const { values } = parseArgs({ options: { count: number, part: number, parts: number, env } });
  const [count = 0, part = 0, parts = 1] = [values.count, values.part, values.parts].map(Number);
  const runtime = await openRuntime(readConfig(JSON.parse(values.env)), createLog("warn"));
  await loadPart(runtime, count, part, parts);
  await runtime.close();
}

if (import.meta.main) await main();
