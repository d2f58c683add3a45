/**
 * Answer time of the shipment search: `bun bench/search.ts [--shipments 1m] [--questions 200]`. One channel, loaded through
 * `createShipments`, a year of ship dates; the status changes are then put into the indices as `commit.lua` leaves them:
 * most shipments delivered two to five days after they were shipped, the latest still underway. Every documented filter and
 * combination is asked with random values, for pages near the start and deep ones. Redis runs without append-only file:
 * what is measured only reads.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { STATUSES, type Status } from "#core/domain/status.ts";
import { createLog } from "#core/log.ts";
import { binary, connectRedis, type Redis } from "#core/redis/client.ts";
import { ROWS_PER_BLOCK } from "#core/redis/columns.ts";
import type { SortOrder } from "#core/redis/index-ranges.ts";
import { companyKeys, companyPartition, indexMember } from "#core/redis/keys.ts";
import { searchShipments } from "#core/redis/search.ts";
import type { ShipmentQuery } from "#core/redis/shipment-query.ts";
import { createShipments } from "#core/redis/shipments.ts";

const COMPANY = 1;
const CHANNEL = 1;
const DAYS = 365;
const BATCH = 1_000;
const WARM_UP = 20;
/** No command may hold Redis longer. */
const SLOW_COMMAND_US = 5_000;
const LIMIT_MS = 20;
const DAY_SECONDS = 86_400;

const say = (text: string) => process.stdout.write(`${text}\n`);

interface Loaded {
  readonly firstDay: number;
  readonly lastDay: number;
  readonly now: number;
  readonly count: number;
}

const dateOf = (day: number) => new Date(day * DAY_SECONDS * 1_000).toISOString().slice(0, 10);

async function load(redis: Redis, count: number): Promise<Loaded> {
  const now = Math.floor(Date.now() / 1_000);
  const lastDay = Math.floor(now / DAY_SECONDS);
  const firstDay = lastDay - DAYS + 1;
  const keys = companyKeys(companyPartition(COMPANY));
  const index = (order: "id" | "ship" | "upd", status?: Status) =>
    keys.index(CHANNEL, order, status);
  const ranks: { second: number; status: Status }[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => {
      // Shipments are created in the order of their ship dates, give or take a week.
      const place = firstDay + ((from + at) / count) * DAYS + (Math.random() - 0.5) * 7;
      return Math.min(lastDay, Math.max(firstDay, Math.floor(place)));
    });
    const ids = await createShipments(
      redis,
      COMPANY,
      rows.map((day, at) => shipment(from + at, dateOf(day))),
    );
    const moved = rows.map((day, at) => {
      const age = lastDay - day;
      const status = statusOf(age);
      const last = day + (status === "DELIVERED" ? 2 + Math.random() * 3 : Math.random() * 2);
      const second = Math.min(now, Math.floor(last * DAY_SECONDS));
      return { id: ids[at] ?? 0, day, status, second };
    });
    const waiting = "WAITING_TO_COMPUTE";
    ranks.push(...moved);
    const pipeline = redis.multi();
    for (const order of ["id", "ship", "upd"] as const) pipeline.del(index(order, waiting));
    const members = (own: typeof moved, score: (row: (typeof moved)[number]) => number) =>
      own.map((row) => ({ score: score(row), value: indexMember(row.id) }));
    pipeline.zAdd(
      index("upd"),
      members(moved, ({ second }) => second),
    );
    for (const [status, own] of Map.groupBy(moved, (row) => row.status)) {
      pipeline.zAdd(
        index("id", status),
        members(own, ({ id }) => id),
      );
      pipeline.zAdd(
        index("ship", status),
        members(own, ({ day }) => day),
      );
      pipeline.zAdd(
        index("upd", status),
        members(own, ({ second }) => second),
      );
    }
    pipeline.del(keys.changes);
    await pipeline.execAsPipeline();
    if (from % 100_000 === 0) say(`loaded ${from}`);
  }
  await changeRows(redis, ranks);
  return { firstDay, lastDay, now, count };
}

/** As `commit.lua` leaves the rows. */
async function changeRows(
  redis: Redis,
  ranks: ReadonlyArray<{ readonly second: number; readonly status: Status }>,
): Promise<void> {
  const keys = companyKeys(companyPartition(COMPANY));
  for (let block = 0; block * ROWS_PER_BLOCK < ranks.length; block += 1) {
    const key = keys.block(CHANNEL, block);
    const bytes = (await binary(redis).get(key)) as unknown as Buffer;
    const own = ranks.slice(block * ROWS_PER_BLOCK, (block + 1) * ROWS_PER_BLOCK);
    own.forEach(({ second, status }, row) => {
      bytes.writeUInt32LE(second, row * 16 + 4);
      bytes.writeUInt8(STATUSES.indexOf(status), row * 16 + 12);
    });
    await redis.set(key, bytes);
    await redis.hIncrBy(keys.blockVersions(CHANNEL), String(block), 1);
  }
}

function statusOf(ageDays: number): Status {
  const draw = Math.random();
  if (ageDays < 2) return draw < 0.5 ? "IN_TRANSIT" : "OUT_FOR_DELIVERY";
  if (ageDays < 6 && draw < 0.3) return "IN_TRANSIT";
  if (draw < 0.02) return "RETURNED";
  return draw < 0.03 ? "EXCEPTION" : "DELIVERED";
}

function shipment(at: number, shipDate: string) {
  const trackingNumber = `BENCH${at}`;
  const orderReference = `order-${Math.floor(at / 2)}`;
  const ids = {
    companyId: COMPANY,
    channelId: CHANNEL,
    courier: "GLS_ITA",
    trackingNumber,
    shipDate,
  };
  const customAttributes = { custom1: `group-${at % 500}`, custom2: `half-${at % 2}` };
  return {
    record: {
      ...ids,
      ...{ orderReference, customAttributes, language: "it" as const, createdAtMs: 0 },
      planning: { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null },
    },
    meta: {
      ...ids,
      isPlaceholder: false,
      orderReference,
      destCap: null,
      originCap: null,
      weightKg: null,
    },
  };
}

type Filters = Partial<Omit<ShipmentQuery, "companyId" | "channelIds">>;
type Question = readonly [name: string, filters: (loaded: Loaded) => Filters];

const random = (from: number, to: number) => Math.floor(from + Math.random() * (to - from));
const by = (order: SortOrder["by"], descending: boolean): Filters => ({
  order: { by: order, descending },
});
const SORTS: readonly (readonly [string, Filters])[] = [
  ["id_desc", by("id", true)],
  ["id_asc", by("id", false)],
  ["shipDate_desc", by("ship", true)],
  ["shipDate_asc", by("ship", false)],
  ["updatedAt_desc", by("upd", true)],
  ["updatedAt_asc", by("upd", false)],
];

/** Filters that are asked in every sort. */
const FILTERS: readonly Question[] = [
  ["none", () => ({})],
  ["status, 1", () => ({ statuses: ["DELIVERED"] })],
  ["status, 3", () => ({ statuses: ["IN_TRANSIT", "EXCEPTION", "DELIVERED"] })],
  ["ship date, 1 day", (l) => range(l, 1)],
  ["ship date, 30 days", (l) => range(l, 30)],
  ["ship date, 180 days", (l) => range(l, 180)],
  ["updatedAfter, 1 hour", (l) => after(l, 1 / 24)],
  ["updatedAfter, 7 days", (l) => after(l, 7)],
  ["updatedAfter, 90 days", (l) => after(l, 90)],
  ["ship 30 days + status", (l) => ({ ...range(l, 30), statuses: ["DELIVERED"] })],
  ["updatedAfter 30 days + status", (l) => ({ ...after(l, 30), statuses: ["RETURNED"] })],
  ["ship 30 days + updatedAfter 7 days", (l) => ({ ...recent(l, 30), ...after(l, 7) })],
  ["ship 180 days + updatedAfter 180 days", (l) => ({ ...range(l, 180), ...after(l, 180) })],
  [
    "ship + updatedAfter + status",
    (l) => ({ ...range(l, 90), ...after(l, 60), statuses: ["DELIVERED", "EXCEPTION"] }),
  ],
  ["custom1 of 2,000", () => ({ exact: { custom1: `group-${random(0, 500)}` } })],
  [
    "custom1 + ship 30 days",
    (l) => ({ exact: { custom1: `group-${random(0, 500)}` }, ...range(l, 30) }),
  ],
  [
    "custom1 + updatedAfter + status",
    (l) => ({
      exact: { custom1: `group-${random(0, 500)}` },
      ...after(l, 60),
      statuses: ["DELIVERED"],
    }),
  ],
];
/** Filters whose matches are few in any sort. */
const SINGLE: readonly Question[] = [
  ["trackingNumber", ({ count }) => ({ trackingNumber: `BENCH${random(0, count)}` })],
  [
    "orderReference",
    ({ count }) => ({ exact: { orderReference: `order-${random(0, count / 2)}` } }),
  ],
  [
    "orderReference + custom1",
    ({ count }) => ({
      exact: { orderReference: `order-${random(0, count / 2)}`, custom1: "group-1" },
    }),
  ],
  ["custom2 of half the channel", () => ({ exact: { custom2: "half-1" } })],
];

function range({ firstDay, lastDay }: Loaded, days: number): Filters {
  const shipFrom = random(firstDay, lastDay - days + 2);
  return { shipFrom, shipTo: shipFrom + days - 1 };
}

const recent = ({ lastDay }: Loaded, days: number): Filters => ({
  shipFrom: lastDay - days,
  shipTo: lastDay,
});
const after = ({ now }: Loaded, days: number): Filters => ({
  updatedFrom: now - Math.floor(days * DAY_SECONDS * (0.5 + Math.random())),
});

type SlowEntry = readonly [id: number, at: number, microseconds: number, command: string[]];

interface Row {
  readonly name: string;
  readonly p50: number;
  readonly p99: number;
}

async function ask(
  redis: Redis,
  loaded: Loaded,
  questions: number,
  [name, filters]: Question,
  more: Filters,
): Promise<Row> {
  const times: number[] = [];
  for (let n = -WARM_UP; n < questions; n += 1) {
    const query: ShipmentQuery = {
      ...{ companyId: COMPANY, channelIds: [CHANNEL], trackingNumber: null, exact: {} },
      ...{ shipFrom: null, shipTo: null, statuses: null, updatedFrom: null },
      ...{ order: { by: "id", descending: true }, offset: 0, limit: 20 },
      ...filters(loaded),
      ...more,
    };
    const from = performance.now();
    await searchShipments(redis, query);
    if (n >= 0) times.push(performance.now() - from);
  }
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.ceil(share * times.length) - 1] ?? 0;
  return { name, p50: at(0.5), p99: at(0.99) };
}

function tell({ name, p50, p99 }: Row): void {
  const mark = p99 < LIMIT_MS ? "" : "  <-- over the limit";
  say(`${name.padEnd(62)} ${p50.toFixed(1).padStart(8)} ${p99.toFixed(1).padStart(8)}${mark}`);
}

async function measure(redis: Redis, loaded: Loaded, questions: number): Promise<void> {
  say(`${"filter, sort, page".padEnd(62)} ${"p50 ms".padStart(8)} ${"p99 ms".padStart(8)}`);
  for (const question of SINGLE) tell(await ask(redis, loaded, questions, question, {}));
  for (const [name, filters] of FILTERS) {
    for (const [sort, order] of SORTS) {
      for (const [page, offset] of [
        ["first", 0],
        ["1,000th", 19_980],
      ] as const) {
        const named: Question = [`${name}, ${sort}, ${page} page`, filters];
        tell(await ask(redis, loaded, questions, named, { ...order, offset }));
      }
    }
  }
}

async function startRedis() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const address = join(folder, "redis.sock");
  const child = spawn(
    "redis-server",
    [
      "--port",
      "0",
      "--unixsocket",
      address,
      "--dir",
      folder,
      "--save",
      "",
      "--slowlog-log-slower-than",
      String(SLOW_COMMAND_US),
    ],
    { stdio: "ignore" },
  );
  const ended = new Promise((resolve) => child.once("exit", resolve));
  while (!existsSync(address)) await Bun.sleep(10);
  return {
    address,
    async stop() {
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function numberOf(text: string): number {
  const [, digits = "0", unit = ""] = /^(\d+)([km]?)$/i.exec(text) ?? [];
  return Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
}

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "1m" },
    questions: { type: "string", default: "200" },
  },
});
const server = await startRedis();
const redis = await connectRedis(server.address, createLog("warn"));
try {
  const from = performance.now();
  const loaded = await load(redis, numberOf(values.shipments));
  say(`${loaded.count} shipments loaded in ${Math.round((performance.now() - from) / 1_000)} s`);
  await redis.sendCommand(["SLOWLOG", "RESET"]);
  await measure(redis, loaded, numberOf(values.questions));
  const slow = (await redis.sendCommand(["SLOWLOG", "GET", "128"])) as unknown as SlowEntry[];
  say(`commands that held Redis for more than ${SLOW_COMMAND_US / 1_000} ms: ${slow.length}`);
  for (const [, , microseconds, [name = "", ...rest]] of slow.slice(0, 10)) {
    say(`  ${microseconds} us: ${name} ${rest.join(" ").slice(0, 80)}`);
  }
} finally {
  await redis.close();
  await server.stop();
}
