/** Whether another process has the embedded ClickHouse. */
import { join } from "node:path";
import type { Config } from "#core/platform/environment/config.ts";
import { tryLock } from "#core/platform/process/file-lock.ts";

/** The engine locks it for as long as it has the folder open. */
const LOCKED = "clickhouse/status";

/** Asked by a process that could not open the folder. */
export function isOpenElsewhere({ clickhouseUrl, dataDir }: Config): boolean {
  if (clickhouseUrl !== null) return false;
  try {
    const lock = tryLock(join(dataDir, LOCKED), "r");
    lock?.release();
    return lock === null;
  } catch {
    // No engine has had the folder, or we may not read it.
    return false;
  }
}
