/** The licences of what is shipped, with their texts: most ask for no more than that these are passed on. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type ShippedPackage, shippedPackages } from "./shipped.ts";

const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.|-|$)/i;

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

export async function noticesText(): Promise<string> {
  const lockFile: LockFile = await Bun.file("package-lock.json").json();
  const packages = shippedPackages(lockFile);
  const parts = await Promise.all(
    packages.map(async (one) => {
      const texts = await textsOf(one, lockFile);
      const head = `${one.name} ${one.version}: ${one.licence}`;
      return [`${head}\n${"=".repeat(head.length)}`, ...texts].join("\n\n");
    }),
  );
  return `Waybill contains these packages.\n\n${parts.join("\n\n")}\n`;
}

async function textsOf({ name, version }: ShippedPackage, { packages }: LockFile) {
  const path = Object.keys(packages).find(
    (at) => at.endsWith(`node_modules/${name}`) && packages[at]?.version === version,
  );
  const names = path === undefined ? [] : await readdir(path).catch(() => []);
  const files = names.filter((file) => LICENCE_FILE.test(file)).sort();
  return Promise.all(files.map((file) => Bun.file(join(path ?? "", file)).text()));
}
