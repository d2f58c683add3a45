/**
 * Builds standalone programs: `waybill` with its commands, and one for each role. Each is one file with Bun, the code and its scripts;
 * beside it is what is read by its path. They need Redis and a ClickHouse server: the embedded ClickHouse is a library of its own,
 * which no binary contains.
 */
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BUILT_CLIENTS } from "#api/reference/client-packages.ts";
import { command, WrongUsage } from "#core/platform/process/command-line.ts";
import { BESIDE_BINARY } from "#core/platform/process/own-files.ts";
import { Refused } from "#core/runtime/runtime.ts";
import { BUILT_DOCTOR, bundle } from "#ingest/reference/doctor-file.ts";
import { guideFiles } from "#panel/server/pages/guides.ts";
import { BUILT, buildWeb } from "#panel/server/pages/web-bundle.ts";
import { buildClientPackages } from "#tools/client-packages/packages.ts";
import { builtManifest } from "#tools/image/built-manifest.ts";
import { EMBEDDED, filesReadByPath } from "#tools/image/reached-files.ts";

/** The program's entry, by the name of the file. */
const PROGRAMS: Readonly<Record<string, string>> = {
  waybill: "cli/main.ts",
  "waybill-ingest": "ingest/main.ts",
  "waybill-api": "api/main.ts",
  "waybill-processors": "processors/main.ts",
  "waybill-analytics": "analytics/main.ts",
  "waybill-panel": "panel/main.ts",
};
const OWN_FILES = [
  "docs",
  "client/examples",
  "panel/server/pages/style.css",
  "panel/server/shipments/tracking-page.css",
];

async function putBeside(folder: string): Promise<void> {
  for (const path of [...OWN_FILES, ...guideFiles(), ...filesReadByPath()]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(path, join(folder, path), { recursive: true, dereference: true });
  }
  await writeFile(join(folder, "package.json"), await builtManifest());
  await buildWeb(join(folder, BUILT));
  await mkdir(join(folder, BUILT_CLIENTS), { recursive: true });
  await buildClientPackages(join(folder, BUILT_CLIENTS));
  await mkdir(dirname(join(folder, BUILT_DOCTOR)), { recursive: true });
  await writeFile(join(folder, BUILT_DOCTOR), await bundle());
}

export const tool = command({
  name: "npm run tool -- binary",
  forms: [`FOLDER [${Object.keys(PROGRAMS).join("|")} …]`],
  about: "Builds standalone programs into an empty folder, all of them by default.",
  options: {},
  operands: [1, Object.keys(PROGRAMS).length + 1],
  async run({ operands: [out = "", ...named] }) {
    const strange = named.find((name) => !Object.hasOwn(PROGRAMS, name));
    if (strange !== undefined) throw new WrongUsage(`Unknown program '${strange}'.`);
    if ((await readdir(out).catch(() => [])).length > 0) throw new Refused(`${out} is not empty`);
    await putBeside(join(out, BESIDE_BINARY));
    for (const [name, entry] of Object.entries(PROGRAMS)) {
      if (named.length > 0 && !named.includes(name)) continue;
      await Bun.build({
        entrypoints: [entry],
        target: "bun",
        external: EMBEDDED,
        compile: { outfile: join(out, name) },
      });
    }
  },
});
