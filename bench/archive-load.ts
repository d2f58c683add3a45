/**
 * Millions of archived shipments for `bench/archive-reads.ts` within minutes: some are created, delivered and archived by the
 * product, and ClickHouse writes their rows again and again under other ids, times, statuses and values, in the order of their ids
 * and over three years. So a row has the size of a real one, and its neighbours are as many different ones as fit a block.
 *
 * What is encrypted is bound to its row. Whoever opens a copy asks `originalOf`, whose row has the same bytes.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import { completeIndex } from "#analytics/archive/archive-index.ts";
import { ARCHIVED_SHIPMENTS, valueHash } from "#analytics/archive/archive-rows.ts";
import { archiveAll } from "#analytics/archive/archiver.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { companyKeys, companyPartition, PARTITIONS } from "#core/platform/redis/keys.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { DAY_SHIFT } from "#core/shipments/store/columns.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { addShipments, SHIPMENTS_AT_ONCE } from "./ordinary-shipments.ts";
import { CHANNEL, COMPANY } from "./search-load.ts";

/** Shipments that the product archives: more than stand in one compressed block of the table. */
export const ORIGINALS = 5_000;
const ROWS_PER_INSERT = 1_000_000;
const DAY_SECONDS = 86_400;
const YEARS_DAYS = 3 * 365;
/** None of them ended later. */
const AGE_DAYS = 30;
const MERGE_LIMIT_MS = 60_000;

export interface ArchivedLoad {
  /** Of those that the product archived itself. */
  readonly originals: readonly number[];
  /** The id of any archived shipment, by a number from 0 to below `count`. */
  readonly idAt: (n: number) => number;
  readonly originalOf: (id: number) => number;
  readonly count: number;
  /** Days since 1970. */
  readonly firstDay: number;
  /** Parts of the table. */
  readonly parts: number;
}

export async function loadArchive(
  runtime: Pick<Runtime, "redis" | "live" | "secrets" | "config" | "log">,
  clickhouse: ClickHouseClient,
  wanted: number,
): Promise<ArchivedLoad> {
  const { redis, live, config } = runtime;
  await applySchema(clickhouse, config);
  await completeIndex(clickhouse, async () => {});
  const copies = Math.max(1, Math.ceil(wanted / ORIGINALS));
  const keys = companyKeys(companyPartition(COMPANY));
  await redis.set(keys.shipmentIds, String((copies + 1) * ORIGINALS));
  await beginGeneration(redis, live.now(), config.eventsPerDay);
  const originals: number[] = [];
  while (originals.length < ORIGINALS) {
    originals.push(...(await addShipments(runtime, originals.length, SHIPMENTS_AT_ONCE)));
  }
  await advanceClock(redis, 60 * DAY_SECONDS);
  await live.refresh();
  await archiveOriginals(runtime, clickhouse);
  const [first = 0] = originals;
  const span = ORIGINALS * PARTITIONS;
  const firstDay = Math.floor(Date.now() / 1_000 / DAY_SECONDS) - AGE_DAYS - YEARS_DAYS;
  const shape = { copies, span, firstDay, batch: await settledBatch(redis) };
  const perInsert = Math.max(1, Math.floor(ROWS_PER_INSERT / ORIGINALS));
  for (let from = 1; from <= copies; from += perInsert) {
    const count = Math.min(perInsert, copies - from + 1);
    const query = copyQuery(runtime, { ...shape, from, count, first });
    // A setting stays with the connection: without a token of their own these rows would count as those inserted before.
    await clickhouse.command({
      query,
      clickhouse_settings: {
        max_execution_time: 0,
        insert_deduplication_token: `copies from ${from}`,
      },
    });
  }
  await tellOf(redis, clickhouse, first);
  return {
    originals,
    count: copies * ORIGINALS,
    firstDay,
    parts: await settledParts(clickhouse),
    idAt: (n) => first - span * copies + n * PARTITIONS,
    originalOf: (id) => (id >= first ? id : first + ((((id - first) % span) + span) % span)),
  };
}

async function archiveOriginals(
  { redis, live, secrets, log }: Pick<Runtime, "redis" | "live" | "secrets" | "log">,
  clickhouse: ClickHouseClient,
): Promise<void> {
  const deps = { redis, live, log, vault: secrets.vault, clickhouse: async () => clickhouse };
  const moved = await archiveAll(
    {
      ...deps,
      afterDays: 30,
      isStopping: () => false,
      isTimeUp: () => false,
      prepare: async () => {},
      pace: async () => {},
    },
    async () => {},
  );
  if (moved !== ORIGINALS) throw new Error(`${moved} of ${ORIGINALS} shipments were archived`);
}

interface Shape {
  readonly copies: number;
  readonly span: number;
  readonly firstDay: number;
  readonly batch: number;
  /** The first copy of this insert, and how many. */
  readonly from: number;
  readonly count: number;
  /** Id of the first original. */
  readonly first: number;
}

/** The last copy is the oldest. Values are drawn by a hash of the id, so that two columns do not go together. */
function copyQuery({ secrets }: Pick<Runtime, "secrets">, shape: Shape): string {
  const { copies, span, firstDay, batch, from, count, first } = shape;
  const hash = (field: "custom1" | "custom2", value: string) =>
    valueHash(secrets.vault, COMPANY, field, value);
  const groups = Array.from({ length: 500 }, (_, n) => hash("custom1", `group-${n}`));
  const halves = [0, 1].map((n) => hash("custom2", `half-${n}`));
  const status = (name: (typeof STATUSES)[number]) => STATUSES.indexOf(name);
  const replaced: Readonly<Record<string, string>> = {
    id: "copy_id",
    updated: `toUInt32((${firstDay} + age + 3 + drawn % 1000 / 500) * ${DAY_SECONDS})`,
    shipped: `toUInt32(${firstDay + DAY_SHIFT} + age)`,
    status: `multiIf(drawn % 100 < 2, ${status("RETURNED")}, drawn % 100 < 3, ${status("EXCEPTION")}, ${status("DELIVERED")})`,
    numbers: "[drawn]",
    order_reference: "cityHash64(intDiv(copy_id, 32), 'order')",
    custom1: `[${groups.map((group) => `toUInt64(${group})`)}][1 + intDiv(drawn, 1000) % 500]`,
    custom2: `[${halves.map((half) => `toUInt64(${half})`)}][1 + intDiv(drawn, 1000000) % 2]`,
    archived_on: `toDate(toUInt32(${firstDay + AGE_DAYS} + age))`,
    words_text: "base64Encode(words)",
    sealed_text: "base64Encode(sealed)",
  };
  const columns = ARCHIVED_SHIPMENTS.columns.map(
    (name) => `${replaced[name] ?? name} AS c_${name}`,
  );
  return `INSERT INTO archived_shipments (${ARCHIVED_SHIPMENTS.columns})
    WITH id - (${from} + number) * ${span} AS copy_id, cityHash64(copy_id) AS drawn,
      (${copies} - ${from} - number) / ${copies} * ${YEARS_DAYS} AS age
    SELECT ${columns} FROM archived_shipments CROSS JOIN numbers(${count}) AS n
    WHERE channel = ${CHANNEL} AND id >= ${first} AND batch <= ${batch}`;
}

async function settledBatch(redis: Runtime["redis"]): Promise<number> {
  const keys = companyKeys(companyPartition(COMPANY));
  return Number(await redis.hGet(keys.archived(COMPANY), "batch"));
}

/** Tells Redis what the archive holds, as the archiver does; the originals are left out of what is highest. */
async function tellOf(
  redis: Runtime["redis"],
  clickhouse: ClickHouseClient,
  first: number,
): Promise<void> {
  const key = companyKeys(companyPartition(COMPANY)).archived(COMPANY);
  const rows = async <T>(query: string) =>
    (await clickhouse.query({ query, format: "JSONEachRow" })).json<T>();
  const counts = await rows<{ status: number; total: string }>(
    `SELECT status, count() AS total FROM archived_shipments WHERE channel = ${CHANNEL} GROUP BY status`,
  );
  for (const { status, total } of counts) {
    await redis.hSet(key, `n:${CHANNEL}:${status}`, String(total));
  }
  const [highest] = await rows<Record<"i" | "u" | "s", string>>(
    `SELECT max(id) AS i, max(updated) AS u, max(shipped) AS s FROM archived_shipments
     WHERE channel = ${CHANNEL} AND id < ${first}`,
  );
  for (const [name, value] of Object.entries(highest ?? {})) {
    await redis.hSet(key, `${name}:${CHANNEL}`, String(value));
  }
}

/** Waits while the engine merges what has just been inserted. @returns its parts */
async function settledParts(clickhouse: ClickHouseClient): Promise<number> {
  const untilMs = performance.now() + MERGE_LIMIT_MS;
  const numberOf = async (query: string) => {
    const answer = await clickhouse.query({ query, format: "JSONEachRow" });
    return Number((await answer.json<{ n: string }>())[0]?.n);
  };
  while (performance.now() < untilMs) {
    if ((await numberOf("SELECT count() AS n FROM system.merges")) === 0) break;
    await Bun.sleep(500);
  }
  return numberOf(
    "SELECT count() AS n FROM system.parts WHERE table = 'archived_shipments' AND active",
  );
}
