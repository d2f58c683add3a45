/** The packages of a clone: hard links to the installed ones where they match the lock file, otherwise a fresh `npm ci`. */
import { readFile, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { attempt, run } from "./command.ts";

type Locked = Readonly<Record<string, { readonly version?: string; readonly optional?: boolean }>>;

export async function providePackages(from: string, clone: string): Promise<void> {
  const installed = await packagesIn(join(from, "node_modules/.package-lock.json"));
  const wanted = await packagesIn(join(clone, "package-lock.json"));
  const isSame = Object.entries(wanted).every(([path, { version, optional }]) => {
    const found = installed[path];
    return path === "" || (found ? found.version === version : optional === true);
  });
  const target = join(clone, "node_modules");
  // Not every system's `cp` makes hard links, and none between file systems.
  const link = async () =>
    attempt(["cp", "-al", await realpath(join(from, "node_modules")), target], from);
  if (isSame && (await link()) !== null) return;
  await rm(target, { recursive: true, force: true });
  await run(["npm", "ci"], clone);
}

async function packagesIn(path: string): Promise<Locked> {
  const text = await readFile(path, "utf8").catch(() => '{"packages":{}}');
  return JSON.parse(text).packages;
}
