/**
 * Builds standalone programs of roles (`bun run binary FOLDER [ROLE…]`, all roles by default): Bun, the code and its scripts
 * in one file, and beside it what is read by its path. They need Redis and a ClickHouse server: the embedded ClickHouse is a
 * library of its own, which no binary contains.
 */
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BESIDE_BINARY } from "#core/platform/process/own-files.ts";
import { guarded, Refused } from "#core/runtime/runtime.ts";
import { BUILT_DOCTOR, bundle } from "#ingest/reference/doctor-file.ts";
import { guideFiles } from "#panel/server/pages/guides.ts";
import { BUILT, buildWeb } from "#panel/server/pages/web-bundle.ts";
import { builtManifest } from "#tools/image/built-manifest.ts";
import { EMBEDDED, filesReadByPath } from "#tools/image/reached-files.ts";

const ROLES = ["ingest", "api", "processors", "analytics", "panel"];
const OWN_FILES = [
  "docs",
  "client/examples",
  "panel/server/pages/style.css",
  "panel/server/shipments/tracking-page.css",
];

await guarded(async () => {
  const [out, ...named] = process.argv.slice(2);
  const strange = named.filter((role) => !ROLES.includes(role));
  if (out === undefined || strange.length > 0) {
    throw new Refused(`usage: bun run binary FOLDER [${ROLES.join("|")} …]`);
  }
  if ((await readdir(out).catch(() => [])).length > 0) throw new Refused(`${out} is not empty`);
  const roles = named.length > 0 ? named : ROLES;
  await putBeside(join(out, BESIDE_BINARY));
  for (const role of roles) {
    await Bun.build({
      entrypoints: [`${role}/main.ts`],
      target: "bun",
      external: EMBEDDED,
      compile: { outfile: join(out, `waybill-${role}`) },
    });
  }
});

async function putBeside(folder: string): Promise<void> {
  for (const path of [...OWN_FILES, ...guideFiles(), ...filesReadByPath()]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(path, join(folder, path), { recursive: true, dereference: true });
  }
  await writeFile(join(folder, "package.json"), await builtManifest());
  await buildWeb(join(folder, BUILT));
  await mkdir(dirname(join(folder, BUILT_DOCTOR)), { recursive: true });
  await writeFile(join(folder, BUILT_DOCTOR), await bundle());
}
