/** The archive of shipments that are over, for the roles that read shipments. */
import type { ClickHouseClient } from "@clickhouse/client";
import { countHits, readHits, readMarks } from "#analytics/archive/archive-questions.ts";
import {
  openRow,
  readAhead,
  readBytes,
  readProgress,
  readRows,
  type SealedRow,
} from "#analytics/archive/archive-table.ts";
import {
  clickhouseErrorType,
  keepClickhouse,
  openClickhouse,
} from "#analytics/clickhouse/clickhouse.ts";
import { CATCH_UP_MS } from "#analytics/clickhouse/time-limits.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import type { SearchableArchive } from "#core/search/store/archive-search.ts";

/** Questions of one process that wait for their answers; one more is refused at once. */
export const ARCHIVE_WAITING = limit(
  200,
  "questions to the archive waiting, of one process",
  "503",
);

export interface OpenArchive extends SearchableArchive {
  readonly close: () => Promise<void>;
}

/** Opens when it is first asked: an installation that never archived anything never does. */
export function openArchive(
  config: Config,
  vault: Pick<Vault, "keyFor">,
  log?: Pick<Log, "error">,
): OpenArchive {
  const store = keepClickhouse(() => openClickhouse(config, "read"));
  let waiting = 0;

  async function ask<T>(question: (client: ClickHouseClient) => Promise<T>): Promise<T> {
    if (waiting >= ARCHIVE_WAITING) throw unavailable();
    waiting += 1;
    try {
      return await question(await store.client());
    } catch (error) {
      if (error instanceof RangeError) throw error;
      const type = clickhouseErrorType(error);
      if (type === "UNKNOWN_TABLE" || type === "UNKNOWN_SETTING") await store.forget();
      throw unavailable();
    } finally {
      waiting -= 1;
    }
  }

  /**
   * What a replica lacked a moment ago: a proxy may have moved on to one that has not fetched the latest rows yet. Asked for once more.
   * @throws {Problem} 503 where rows are missing and the replica is known to be behind the others
   */
  async function readLate(
    found: readonly SealedRow[],
    ids: readonly number[],
    channelIds: readonly number[],
  ): Promise<SealedRow[]> {
    const present = new Set(found.map(({ id }) => Number(id)));
    const missing = ids.filter((id) => !present.has(id));
    if (missing.length === 0) return [];
    let progress = await ask(readProgress);
    if (progress !== "in step") {
      await Bun.sleep(CATCH_UP_MS);
      progress = await ask(readProgress);
    }
    const late = await ask((client) => readRows(client, missing, channelIds));
    const isWhole = new Set(late.map(({ id }) => id)).size === missing.length;
    if (!isWhole && progress === "behind") throw unavailable();
    return late;
  }

  return {
    async read(ids, channelIds, onDamaged) {
      const rows = await ask((client) => readRows(client, ids, channelIds));
      if (config.clickhouseCluster !== null) rows.push(...(await readLate(rows, ids, channelIds)));
      return rows.flatMap((row) => {
        try {
          return [openRow(vault, row)];
        } catch (error) {
          // Words of the fault may repeat what is personal.
          const fault = (error as Error).name;
          log?.error({ shipment: row.id, fault }, "a row of the archive cannot be read");
          onDamaged?.({ companyId: row.company, batch: row.batch, whole: { id: row.id } });
          return [];
        }
      });
    },
    ahead: (after) => ask((client) => readAhead(client, after)),
    hits: (question, offset, limit) =>
      ask((client) => readHits(client, vault, question, offset, limit)),
    count: (question) => ask((client) => countHits(client, vault, question)),
    marks: (question, distance, end) =>
      ask((client) => readMarks(client, vault, question, distance, end)),
    storedBytes: () => ask(readBytes),
    close: store.close,
  };
}

function unavailable(): Problem {
  const message = "Archived shipments cannot be read at the moment; try again.";
  return new Problem(503, "ARCHIVE_UNAVAILABLE", message, {
    headers: { "retry-after": "5" },
  });
}
