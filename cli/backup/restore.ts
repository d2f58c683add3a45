/** `waybill restore DIR`: puts a backup into an empty `DATA_DIR`. */
import { copyFile, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { attachParts } from "#analytics/backup/freeze.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import {
  beginRestore,
  endRestore,
  isRestoreUnfinished,
} from "#core/configuration/store/restore-mark.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { command, JSON_OPTION } from "#core/platform/process/command-line.ts";
import { SNAPSHOT_NAME } from "#core/platform/redis/embedded/snapshot.ts";
import { Refused } from "#core/runtime/runtime.ts";
import { readManifest, refuseServers } from "./backup-folder.ts";

const PARTS = ["redis", "clickhouse", "secrets"];
/** The append-only file begins with what the snapshot holds; Redis reads the manifest at its start. */
const BASE_NAME = "appendonly.aof.1.base.rdb";
const AOF_MANIFEST = `file ${BASE_NAME} seq 1 type b\n`;

async function copyOut(backup: string, path: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await copyFile(join(backup, path), target);
}

async function restoreClickhouse(config: Config, backup: string, paths: string[]): Promise<void> {
  const clickhouse = await openClickhouse(config, "write");
  try {
    await applySchema(clickhouse, config);
    await attachParts(clickhouse, join(config.dataDir, "clickhouse"), async (table, into) => {
      const prefix = `clickhouse/${table}/`;
      const own = paths.filter((path) => path.startsWith(prefix));
      for (const path of own) await copyOut(backup, path, join(into, path.slice(prefix.length)));
      return [...new Set(own.map((path) => path.slice(prefix.length).split("/")[0] ?? ""))];
    });
  } finally {
    await clickhouse.close();
  }
}

/** @returns when the backup was taken @throws {Refused} unless DATA_DIR is empty, or was left by an interrupted restore */
async function restoreInto(config: Config, backup: string): Promise<string> {
  const { dataDir } = config;
  const isAgain = await isRestoreUnfinished(dataDir);
  const present = (await readdir(dataDir)).filter((name) => PARTS.includes(name));
  if (present.length > 0 && !isAgain) {
    throw new Refused(
      `${dataDir} has data already (${present.join(", ")}): restore into an empty DATA_DIR.`,
    );
  }
  const { files, takenAt } = await readManifest(backup);
  const paths = Object.keys(files);
  await beginRestore(dataDir, backup);
  const empty = async () => {
    for (const part of PARTS) await rm(join(dataDir, part), { recursive: true, force: true });
  };
  // What an interrupted restore has left.
  await empty();
  try {
    await restoreClickhouse(config, backup, paths);
    for (const path of paths.filter((one) => one.startsWith("secrets/"))) {
      await copyOut(backup, path, join(dataDir, path));
    }
    const folder = join(dataDir, "redis", "appendonlydir");
    await copyOut(backup, join("redis", SNAPSHOT_NAME), join(folder, BASE_NAME));
    await writeFile(join(folder, "appendonly.aof.manifest"), AOF_MANIFEST);
  } catch (error) {
    await empty();
    await endRestore(dataDir);
    throw error;
  }
  await endRestore(dataDir);
  return takenAt;
}

export const restore = command({
  name: "waybill restore",
  forms: ["DIR [--json]"],
  about: `Puts the backup in DIR into an empty DATA_DIR. Then start the product on that folder. If a restore was interrupted, run the same
command again.`,
  options: { json: JSON_OPTION },
  operands: [1, 1],
  async run({ operands: [given = ""], env, report }) {
    const config = readConfig(env);
    refuseServers(config, "restored", "restore");
    const takenAt = await restoreInto(config, resolve(given));
    const { dataDir } = config;
    report({ dataDir, takenAt }, `${dataDir} is as it was at ${takenAt}; start the product on it`);
  },
});
