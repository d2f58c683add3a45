/** The archive of a runtime of its own, whose shipments a test moves itself. */
import { expect } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { archiveRow } from "#analytics/archive/archive-rows.ts";
import { insertArchived } from "#analytics/archive/archive-table.ts";
import {
  type ArchiverDeps,
  archiveAll,
  deleteAbsent,
  moveToArchive,
} from "#analytics/archive/archiver.ts";
import { type OpenArchive, openArchive } from "#analytics/archive.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type Leaving, numberRows, readLeaving } from "#core/archive/store/remove-shipments.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { createItems } from "#core/shipments/store/create-items.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { channelOf } from "#test/support/data/setup.ts";
import type { TestRuntime } from "./runtime.ts";

/** Of a lock that nobody takes, and of a pace that nothing slows down. */
export const held = async () => {};

export interface TestArchive {
  readonly clickhouse: ClickHouseClient;
  readonly archive: OpenArchive;
  /** Of channel acme-it. */
  readonly companyId: number;
  readonly channelId: number;
  readonly deps: (members?: Partial<ArchiverDeps>) => ArchiverDeps & Pick<TestRuntime, "log">;
  /** A round of the archiver. @returns how many shipments have moved */
  readonly archiveNow: (members?: Partial<ArchiverDeps>) => Promise<number>;
  /** Moves shipments that have ended. @returns how many have */
  readonly move: (ids: readonly number[]) => Promise<number>;
  /** Writes the rows of a batch and does no more. */
  readonly insert: (leaving: readonly Leaving[], batch: number) => Promise<void>;
  readonly leavingOf: (ids: readonly number[]) => Promise<Leaving[]>;
  /** Rows that the archive has of shipments, those that no longer count too. */
  readonly rowsOf: (ids: readonly number[]) => Promise<number>;
  /** Deletes rows that no longer count. */
  readonly deleteObsolete: () => Promise<void>;
  readonly end: () => Promise<void>;
}

export async function openTestArchive(runtime: TestRuntime): Promise<TestArchive> {
  const { redis, live, log, config, secrets } = runtime;
  const clickhouse = await openClickhouse(config, "write");
  await applySchema(clickhouse, config);
  const archive = openArchive(config, secrets.vault);
  const { id: channelId, companyId } = channelOf(runtime);
  await beginGeneration(redis, live.now(), config.eventsPerDay);
  await numberRows(redis, companyId, channelId);
  const leavingOf = async (ids: readonly number[]) => readLeaving(redis, ids);
  const deps = (members: Partial<ArchiverDeps> = {}) => ({
    redis,
    live,
    vault: secrets.vault,
    clickhouse: async () => clickhouse,
    afterDays: 30,
    prepare: held,
    pace: held,
    isStopping: () => false,
    isTimeUp: () => false,
    ...members,
    log,
  });
  return {
    clickhouse,
    archive,
    companyId,
    channelId,
    deps,
    archiveNow: (members) => archiveAll(deps(members), held),
    move: async (ids) => moveToArchive(deps(), companyId, await leavingOf(ids), held),
    async insert(leaving, batch) {
      const rows = leaving.map((one) => archiveRow(secrets.vault, one, batch, "2026-11-22"));
      await insertArchived(clickhouse, rows);
    },
    leavingOf,
    rowsOf: async (ids) => (await archive.read(ids, [channelId])).length,
    deleteObsolete: () => deleteAbsent(deps(), companyId, 0),
    async end() {
      await archive.close();
      await clickhouse.close();
    },
  };
}

/** @returns ids of new shipments of GLS_ITA that their courier has delivered */
export async function deliver(
  runtime: TestRuntime,
  trackingNumbers: readonly string[],
): Promise<number[]> {
  const ids = await createAll(runtime, trackingNumbers);
  expect(ids).toHaveLength(trackingNumbers.length);
  await applyEvents(
    runtime,
    ids.map((shipmentId) => ({ shipmentId, code: "DLV" })),
  );
  return ids;
}

/** As a merchant creates them, each under an order of its own. @returns ids of those whose number was free */
export async function createAll(
  runtime: TestRuntime,
  trackingNumbers: readonly string[],
  channelCode = "acme-it",
): Promise<number[]> {
  const { redis, log, live } = runtime;
  const outcomes = await createItems(
    { redis, log, configuration: live.configuration() },
    channelOf(runtime, channelCode),
    trackingNumbers.map((trackingNumber) => ({
      trackingNumber,
      courier: "GLS_ITA",
      shipDate: "2026-11-10",
      orderReference: `O-${trackingNumber}`,
    })),
    live.now(),
  );
  return outcomes.flatMap((one) => (one.kind === "created" ? [one.id] : []));
}
