/**
 * The folder of a backup. A manifest written last lists every file with its digest, so that a copy that was cut short is
 * never taken for a backup.
 *
 * | Path                       | Holds                                                |
 * |----------------------------|------------------------------------------------------|
 * | `redis/dump.rdb`           | the snapshot of Redis                                |
 * | `clickhouse/<table>/<part>`| the parts of a table                                 |
 * | `secrets/`                 | generated secrets, without which Redis is unreadable |
 */
import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { Config } from "#core/platform/environment/config.ts";
import { Refused } from "#core/runtime/runtime.ts";

const MANIFEST = "waybill-backup.json";
const FORMAT = 1;
/** No name begins with a dot. */
const PATH = "^(redis|clickhouse|secrets)(/[\\w%-][\\w.%-]*){1,4}$";

const Manifest = Type.Object({
  format: Type.Literal(FORMAT),
  takenAt: Type.String(),
  layout: Type.Number(),
  /** SHA-256 by path: names become folders and parts of statements, so no others are taken. */
  files: Type.Record(Type.String({ pattern: PATH }), Type.String(), {
    additionalProperties: false,
  }),
});
export type Manifest = Static<typeof Manifest>;
const manifestChecker = TypeCompiler.Compile(Manifest);

/** @throws {Refused} where a store is not embedded */
export function refuseServers(config: Config, done: string, verb: string): void {
  if (config.redisUrl ?? config.redisClusterUrls ?? config.clickhouseUrl) {
    throw new Refused(
      `Only the embedded stores are ${done} by this command; docs/operations/backup.md says how to ${verb} servers.`,
    );
  }
}

/** Copies a file, or all files of a folder, and notes their digests under their new paths. */
export async function copyInto(
  backup: string,
  files: Manifest["files"],
  from: string,
  to: string,
): Promise<void> {
  const target = join(backup, to);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await copyFile(from, target);
  await chmod(target, 0o600);
  files[to] = await digestOf(target);
}

export async function filesBelow(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

export async function writeManifest(backup: string, manifest: Omit<Manifest, "format">) {
  const text = JSON.stringify({ format: FORMAT, ...manifest }, null, 2);
  await writeFile(join(backup, MANIFEST), `${text}\n`, { mode: 0o600 });
}

/** @throws {Refused} if it is no backup, or not what was written */
export async function readManifest(backup: string): Promise<Manifest> {
  const text = await readFile(join(backup, MANIFEST), "utf8").catch(() => {
    throw new Refused(`${backup} is not a complete backup: it has no ${MANIFEST}.`);
  });
  const manifest: unknown = JSON.parse(text);
  if (!manifestChecker.Check(manifest)) {
    throw new Refused(
      `${backup} was made by another version of Waybill: restore it with that one.`,
    );
  }
  for (const [path, digest] of Object.entries(manifest.files)) {
    const found = await digestOf(join(backup, path)).catch(() => null);
    if (found !== digest)
      throw new Refused(`The backup is damaged: ${path} is not what was written.`);
  }
  return manifest;
}

async function digestOf(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest("hex");
}
