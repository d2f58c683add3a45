/** `waybill backup DIR`: copies the embedded stores and the generated secrets at one moment, while the product runs or while it does not. */

import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { freezeTables, unfreezeTables } from "#analytics/backup/freeze.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { readNamedConfig } from "#cli/store-config.ts";
import { type FrozenTables, requestBackup } from "#core/configuration/store/backup-requests.ts";
import { checkLayout } from "#core/configuration/store/layout.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { command, JSON_OPTION } from "#core/platform/process/command-line.ts";
import { commandLog } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  beginSnapshot,
  SNAPSHOT_NAME,
  snapshotWritten,
} from "#core/platform/redis/embedded/snapshot.ts";
import { BACKUP_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { openStore, Refused } from "#core/runtime/runtime.ts";
import {
  copyInto,
  filesBelow,
  type Manifest,
  refuseServers,
  writeManifest,
} from "./backup-folder.ts";

/** A restored store holds the lock of its own backup until the lease is over. */
const LOCK = { leaseMs: 5_000, waitLimitMs: 10_000 };

/** @returns the parts of every table, at the moment of the snapshot that Redis has begun */
async function fixMoment(config: Config, redis: Redis): Promise<FrozenTables> {
  const answer = await requestBackup(redis);
  if (answer !== null) {
    if ("fault" in answer) throw new Refused(`The backup failed: ${answer.fault}`);
    return answer.tables;
  }
  const own = await openClickhouse(config, "write");
  try {
    const before = await writesSoFar(own);
    const tables = await freezeTables(own, join(config.dataDir, "clickhouse"));
    await beginSnapshot(redis);
    if ((await writesSoFar(own)) === before) return tables;
    throw new Refused("The product was started while the backup was taken: repeat the command.");
  } finally {
    await own.close();
  }
}

/** Changes only if somebody writes to the embedded ClickHouse. */
async function writesSoFar(clickhouse: ClickHouseClient): Promise<string> {
  const query = `SELECT (SELECT sum(value) FROM system.events WHERE event = 'InsertedRows') AS rows,
    (SELECT count() FROM system.mutations) AS changes`;
  return (await clickhouse.query({ query, format: "JSONEachRow" })).text();
}

async function copyStores(
  config: Config,
  redis: Redis,
  backup: string,
): Promise<Manifest["files"]> {
  const files: Manifest["files"] = {};
  const tables = await fixMoment(config, redis);
  for (const [table, parts] of Object.entries(tables)) {
    for (const part of parts) {
      for (const file of await filesBelow(part)) {
        const to = join("clickhouse", table, basename(part), file);
        await copyInto(backup, files, join(part, file), to);
      }
    }
  }
  await unfreezeTables(join(config.dataDir, "clickhouse"));
  await snapshotWritten(redis);
  const snapshot = join(config.dataDir, "redis", SNAPSHOT_NAME);
  await copyInto(backup, files, snapshot, join("redis", SNAPSHOT_NAME));
  await rm(snapshot);
  const secrets = join(config.dataDir, "secrets");
  for (const name of await filesBelow(secrets)) {
    await copyInto(backup, files, join(secrets, name), join("secrets", name));
  }
  return files;
}

/** @returns how many files there are in the backup */
async function backUp(config: Config, folder: string, takenAt: string): Promise<number> {
  const store = await openStore(config, commandLog());
  try {
    const { version } = await checkLayout(store.redis);
    const lock = await takeLock(store.redis, BACKUP_LOCK_KEY, LOCK);
    if (lock === null) throw new Refused("Another backup is under way.");
    const draft = `${folder}.part`;
    try {
      await rm(draft, { recursive: true, force: true });
      await mkdir(draft, { recursive: true, mode: 0o700 });
      const files = await copyStores(config, store.redis, draft);
      await writeManifest(draft, { takenAt, layout: version, files });
      await rename(draft, folder);
      return Object.keys(files).length;
    } finally {
      await lock.release();
    }
  } finally {
    await store.close();
  }
}

export const backup = command({
  name: "waybill backup",
  forms: ["DIR [--json]"],
  about: `Copies the embedded Redis and ClickHouse and the generated secrets as of one moment into DIR, which must not exist, while the
product runs or is stopped. Prints the number of files. docs/operations/backup.md says how to back up servers.`,
  options: { json: JSON_OPTION },
  operands: [1, 1],
  async run({ operands: [given = ""], env, report }) {
    const config = await readNamedConfig(env);
    refuseServers(config, "backed up", "back up");
    const folder = resolve(given);
    if (existsSync(folder)) throw new Refused(`${folder} exists: name a folder that does not.`);
    const takenAt = new Date().toISOString();
    const files = await backUp(config, folder, takenAt);
    report({ folder, files, takenAt }, `${counted(files, "file")} in ${folder}`);
  },
});
