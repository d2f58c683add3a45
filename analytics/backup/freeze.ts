/**
 * The embedded ClickHouse at one moment: `FREEZE` makes hard links of every part, which never changes, so the moment costs no
 * time and no space, and the parts can be copied while new rows are written.
 */
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import type { FrozenTables } from "#core/configuration/store/backup-requests.ts";

/** The engine escapes other characters in the folder's name. */
const NAME = "waybill_backup";

interface Table {
  readonly name: string;
  /** Relative to the folder of the engine. */
  readonly path: string;
}

/** @returns by table, the folders of its parts */
export async function freezeTables(
  clickhouse: ClickHouseClient,
  folder: string,
): Promise<FrozenTables> {
  await unfreezeTables(folder);
  const frozen: Record<string, readonly string[]> = {};
  for (const { name, path } of await tablesOf(clickhouse)) {
    await clickhouse.command({ query: `ALTER TABLE ${name} FREEZE WITH NAME '${NAME}'` });
    const parts = join(folder, "shadow", NAME, path);
    const names = await readdir(parts).catch(() => []);
    if (names.length === 0 && (await hasRows(clickhouse, name))) {
      throw new Error(`no part of the table ${name} was frozen in ${parts}`);
    }
    frozen[name] = names.map((part) => join(parts, part));
  }
  return frozen;
}

export async function unfreezeTables(folder: string): Promise<void> {
  await rm(join(folder, "shadow", NAME), { recursive: true, force: true });
}

/**
 * Gives tables their parts back.
 * @param takeParts puts the parts of a table into a folder; @returns their names
 */
export async function attachParts(
  clickhouse: ClickHouseClient,
  folder: string,
  takeParts: (table: string, into: string) => Promise<string[]>,
): Promise<void> {
  for (const { name, path } of await tablesOf(clickhouse)) {
    const detached = join(folder, path, "detached");
    await mkdir(detached, { recursive: true });
    for (const part of await takeParts(name, detached)) {
      await clickhouse.command({ query: `ALTER TABLE ${name} ATTACH PART '${part}'` });
    }
  }
}

async function hasRows(clickhouse: ClickHouseClient, table: string): Promise<boolean> {
  const query = `SELECT count() > 0 AS found FROM ${table}`;
  const [answer] = await (await clickhouse.query({ query, format: "JSONEachRow" })).json<{
    found: number;
  }>();
  return answer?.found === 1;
}

async function tablesOf(clickhouse: ClickHouseClient): Promise<Table[]> {
  const answer = await clickhouse.query({
    query: `SELECT name, data_paths[1] AS path FROM system.tables
            WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name`,
    format: "JSONEachRow",
  });
  const found = await answer.json<Table>();
  return found.map(({ name, path }) => ({
    name,
    // The engine writes its folder without symbolic links.
    path: path.slice(path.lastIndexOf("/store/") + 1),
  }));
}
