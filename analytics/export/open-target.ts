/** Where exported files go: a folder, or a bucket of an S3-compatible store. A file is there whole or not at all. */
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Config } from "#core/platform/environment/config.ts";

export interface ExportTarget {
  /** Null = there is no such file. */
  readonly readText: (name: string) => Promise<string | null>;
  /** Replaces the file of that name by a local one, which is gone afterwards. */
  readonly take: (name: string, localPath: string) => Promise<void>;
  /** A folder for local files that will be taken. */
  readonly workFolder: string;
}

const S3 = "s3://";

type TargetConfig = Pick<Config, "dataDir" | "s3"> & { readonly exportTo: string };

export function openTarget({ exportTo, dataDir, s3 }: TargetConfig): ExportTarget {
  if (!exportTo.startsWith(S3)) return folderTarget(exportTo);
  const [bucket = "", ...folders] = exportTo.slice(S3.length).split("/").filter(Boolean);
  const client = new Bun.S3Client({
    bucket,
    ...(s3.endpoint !== null && { endpoint: s3.endpoint }),
    ...(s3.region !== null && { region: s3.region }),
    accessKeyId: s3.accessKeyId ?? "",
    secretAccessKey: s3.secretAccessKey ?? "",
  });
  const keyOf = (name: string) => [...folders, name].join("/");
  return {
    workFolder: join(dataDir, "export"),
    async readText(name) {
      try {
        return await client.file(keyOf(name)).text();
      } catch (error) {
        if ((error as { code?: string }).code === "NoSuchKey") return null;
        throw error;
      }
    },
    async take(name, localPath) {
      await client.write(keyOf(name), Bun.file(localPath));
      await rm(localPath);
    },
  };
}

/** Local files wait in the same folder, so that they can be renamed; readers of a lake ignore names with a dot. */
function folderTarget(folder: string): ExportTarget {
  return {
    workFolder: join(folder, ".export"),
    async readText(name) {
      try {
        return await readFile(join(folder, name), "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    async take(name, localPath) {
      const path = join(folder, name);
      await mkdir(dirname(path), { recursive: true });
      await rename(localPath, path);
    },
  };
}
