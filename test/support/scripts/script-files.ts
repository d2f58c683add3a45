/** The Lua files of the store: those that are called by name, and the parts that some of them include. */
import { basename, dirname } from "node:path";

const FILES = [...new Bun.Glob("core/**/*.lua").scanSync(".")].sort();
const isPart = (path: string) => basename(dirname(path)) === "parts";

export const SCRIPT_FILES = FILES.filter((path) => !isPart(path));
export const PART_FILES = FILES.filter(isPart);

export function scriptName(path: string): string {
  return basename(path, ".lua");
}
