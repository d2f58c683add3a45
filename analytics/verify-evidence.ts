/** What ClickHouse holds about shipments, compared with the reference model: benchmark rows and the archive. Reads only. */

import type { ClickHouseClient } from "@clickhouse/client";
import { countingRows, listed, whole } from "#analytics/archive/archive-table.ts";
import { keepClickhouse, openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import type { Archive } from "#core/archive/store/archive.ts";
import { counts, readArchiveSummary } from "#core/archive/store/archive-summary.ts";
import type { ArchivedShipment } from "#core/archive/store/restore-shipments.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { readOldestOpen } from "#core/platform/log/streams.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { type ShipmentMeta, type ShipmentRecord, shipDay } from "#core/shipments/rules/shipment.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { DAY_SHIFT } from "#core/shipments/store/columns.ts";
import { missingOf } from "#core/shipments/store/shipments.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import {
  compareState,
  compareStatistics,
  type Difference,
  differencesOf,
} from "#core/verify/rules/compare.ts";
import { type ModelStatistics, modelStatistics } from "#core/verify/rules/reference-model.ts";
import { compareReferences } from "#core/verify/store/read-evidence.ts";
import type { AnalyticsEvidence } from "#core/verify/store/verify-shipments.ts";

/** Archived shipments read at once. */
const PAGE = 50;
/** What analytics has not written after this long is late, and is not held against the rows. */
const LATE_MS = 5_000;
const ARCHIVED = "design, Archive: a shipment moves whole, and stands on exactly one side";

interface EvidenceDeps {
  readonly redis: Redis;
  readonly config: Config;
  readonly archive: Archive;
  readonly configuration: Configuration;
}

export interface OpenEvidence extends AnalyticsEvidence {
  readonly close: () => Promise<void>;
}

export function openEvidence({
  redis,
  config,
  archive,
  configuration,
}: EvidenceDeps): OpenEvidence {
  const store = keepClickhouse(() => openClickhouse(config, "survey"));

  async function compareArchived(channelId: number, ids: readonly number[]) {
    const client = await store.client();
    const rows = await countingOf(
      redis,
      configuration,
      channelId,
      await archive.read(ids, [channelId]),
    );
    const places = await readPlaces(
      client,
      channelId,
      rows.map(({ whole: { id } }) => id),
    );
    const hot = new Set(ids);
    for (const id of await missingOf(redis, ids)) hot.delete(id);
    const shipments = rows.map(({ whole: { id }, facts }) => {
      return { id, meta: facts.meta, state: facts.shipment.state };
    });
    const subjects = rows.map(({ whole: { id }, facts }): Subject => {
      return { id, meta: facts.meta, record: facts.shipment.record, history: facts.facts() };
    });
    return [
      ...rows.flatMap((row) => archivedDifferences(row, places, hot)),
      ...(await compareReferences(redis, configuration, shipments)),
      ...(await statisticsDifferences(redis, client, subjects)),
    ];
  }

  return {
    compareArchived,
    async compareHot(kept) {
      const subjects = kept
        .filter(({ from }) => from.state.dropped === 0)
        .map(({ from: { id, meta }, history, shipment }) => ({
          id,
          meta,
          history,
          record: shipment.record,
        }));
      if (subjects.every((one) => !isBenchmarked(one))) return [];
      return statisticsDifferences(redis, await store.client(), subjects);
    },
    async archivedAfter(channelId, after) {
      const companyId = configuration.channels.get(channelId)?.companyId ?? 0;
      if (!(await readArchiveSummary(redis, companyId))) return null;
      const answer = await (await store.client()).query({
        query: `SELECT DISTINCT id FROM archived_shipments
                WHERE channel = ${whole(channelId)} AND id > ${whole(after)} ORDER BY id LIMIT ${PAGE}`,
        format: "JSONEachRow",
      });
      return (await answer.json<{ id: number | string }>()).map(({ id }) => Number(id));
    },
    async compareCounts(companyId, channelId) {
      const summary = await readArchiveSummary(redis, companyId);
      const expected = summary?.channels.get(channelId)?.counts;
      if (!summary || !expected) return [];
      const conditions = [`channel = ${whole(channelId)}`, ...countingRows(summary)].join(" AND ");
      const answer = await (await store.client()).query({
        query: `SELECT status, count() AS n FROM archived_shipments WHERE ${conditions} GROUP BY status`,
        format: "JSONEachRow",
      });
      const rows = await answer.json<{ status: number; n: number | string }>();
      const found = Object.fromEntries(rows.map(({ status, n }) => [status, Number(n)]));
      const wanted = Object.fromEntries([...expected].filter(([, n]) => n > 0));
      return differencesOf(null, [[`archive.${channelId}.counts`, found, wanted, ARCHIVED]]);
    },
    close: store.close,
  };
}

async function countingOf(
  redis: Redis,
  { channels }: Configuration,
  channelId: number,
  rows: readonly ArchivedShipment[],
): Promise<ArchivedShipment[]> {
  const summary = await readArchiveSummary(redis, channels.get(channelId)?.companyId ?? 0);
  const isCounting = summary ? counts(summary) : () => false;
  return rows.filter(({ batch, whole: { id } }) => isCounting({ id, batch }));
}

interface Place {
  readonly source: "row" | "index";
  readonly id: number;
  readonly batch: number;
  readonly updated: number;
  readonly shipped: number;
  readonly status: number;
}

async function readPlaces(
  client: ClickHouseClient,
  channelId: number,
  ids: readonly number[],
): Promise<readonly Place[]> {
  if (ids.length === 0) return [];
  const condition = `channel = ${whole(channelId)} AND id IN (${listed(ids)})`;
  const columns = "id, batch, updated, shipped, status";
  const answer = await client.query({
    query: `SELECT 'row' AS source, ${columns} FROM archived_shipments WHERE ${condition}
            UNION ALL SELECT 'index' AS source, ${columns} FROM archived_index WHERE kind = 0 AND ${condition}`,
    format: "JSONEachRow",
  });
  const rows = await answer.json<Place>();
  return rows.map((row) => ({ ...row, id: Number(row.id), batch: Number(row.batch) }));
}

function archivedDifferences(
  { batch, whole: { id }, facts }: ArchivedShipment,
  places: readonly Place[],
  hot: ReadonlySet<number>,
): Difference[] {
  const { state, statusUpdatedAtMs } = facts.shipment;
  const expected = {
    updated: (statusUpdatedAtMs ?? 0) / 1_000,
    shipped: shipDay(facts.meta.shipDate) + DAY_SHIFT,
    status: STATUSES.indexOf(state.pair.status),
  };
  const placeIn = (source: Place["source"]) => {
    const found = places.find(
      (one) => one.source === source && one.id === id && one.batch === batch,
    );
    return found ? { updated: found.updated, shipped: found.shipped, status: found.status } : null;
  };
  return [
    ...differencesOf(id, [
      ["archive.row", placeIn("row"), expected, ARCHIVED],
      ["archive.index", placeIn("index"), expected, ARCHIVED],
      ["archive.side", hot.has(id), false, ARCHIVED],
    ]),
    ...(state.dropped === 0 ? compareState(id, state, facts.facts()) : []),
  ];
}

/** What a benchmark row is made of. */
interface Subject {
  readonly id: number;
  readonly meta: ShipmentMeta;
  readonly record: ShipmentRecord;
  readonly history: readonly Fact[];
}

/** A corrected postcode counts from the shipment's next change on, and test mode is no evidence. */
function isBenchmarked({ meta, record }: Subject): boolean {
  const corrected = (record.corrections ?? []).flatMap(({ fields }) => fields);
  const isMoved = corrected.some(
    (field) => field === "consignee" || /^consignee\.(postcode|country)$/.test(field),
  );
  return meta.destCap !== null && !isMoved && !isTestCourier(meta.courier);
}

async function statisticsDifferences(
  redis: Redis,
  client: ClickHouseClient,
  all: readonly Subject[],
): Promise<Difference[]> {
  const subjects = all.filter(isBenchmarked);
  if (subjects.length === 0) return [];
  const oldest = await readOldestOpen(redis, "change", "analytics");
  if (oldest !== null && Date.now() - oldest > LATE_MS) return [];
  const rows = await readStatistics(client, subjects);
  return subjects.flatMap(({ id, meta, history }) =>
    compareStatistics(id, rows.get(id) ?? null, modelStatistics(history, meta)),
  );
}

/** By shipment; the primary key begins with the destination and the courier. */
async function readStatistics(
  client: ClickHouseClient,
  subjects: readonly Subject[],
): Promise<Map<number, ModelStatistics>> {
  const answer = await client.query({
    query: `SELECT shipment_id AS id, courier, dest_cap AS destCap, origin_cap AS originCap, weight_band AS weightBand,
              toString(ship_date) AS shipDate, toString(delivered_on) AS deliveredOn, lead_days AS leadDays,
              transit_days AS transitDays, attempts, exceptions, is_return AS isReturn
            FROM deliveries FINAL
            WHERE dest_cap IN {caps: Array(String)} AND courier IN {couriers: Array(String)}
              AND shipment_id IN (${listed(subjects.map(({ id }) => id))})`,
    query_params: {
      caps: [...new Set(subjects.map(({ meta }) => meta.destCap ?? ""))],
      couriers: [...new Set(subjects.map(({ meta }) => meta.courier))],
    },
    format: "JSONEachRow",
  });
  const rows = await answer.json<ModelStatistics & { id: number | string }>();
  return new Map(rows.map(({ id, ...row }) => [Number(id), row]));
}
