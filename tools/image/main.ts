/**
 * Builds what the container image has under /app: the sources of the roles, the files of packages that
 * they reach, the panel's application as bundled, the clients' packages, and a list of the packages (`sbom.json`). The Dockerfile copies the folder.
 */
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BUILT_CLIENTS } from "#api/reference/client-packages.ts";
import { command } from "#core/platform/process/command-line.ts";
import { Refused } from "#core/runtime/runtime.ts";
import { guideFiles } from "#panel/server/pages/guides.ts";
import { BUILT, buildWeb } from "#panel/server/pages/web-bundle.ts";
import { buildClientPackages } from "#tools/client-packages/packages.ts";
import { noticesText } from "#tools/licences/notices.ts";
import { cycloneDx } from "#tools/sbom/cyclonedx.ts";
import { builtManifest } from "./built-manifest.ts";
import { reachedFiles } from "./reached-files.ts";

/** Copied whole, but for the application: of that and of the client's package, only what these import. */
const FOLDERS = ["analytics", "api", "core", "ingest", "panel", "processors", "cli", "demo"];
const WEB = "panel/web";
/** Of the bundled application's packages too, which are in no folder of the image. */
const NOTICES = "NOTICES.txt";
const OTHER_SOURCES = ["docs", "client/examples"];

async function buildTree(out: string, commit?: string): Promise<void> {
  if ((await readdir(out).catch(() => [])).length > 0) throw new Refused(`${out} is not empty`);
  const { packages, files, sources } = await reachedFiles();
  await mkdir(out, { recursive: true });
  for (const folder of [...FOLDERS, ...OTHER_SOURCES]) {
    const filter = (path: string) => path !== WEB && path !== BUILT;
    await cp(folder, join(out, folder), { recursive: true, filter });
  }
  await writeFile(join(out, "package.json"), await builtManifest(commit));
  for (const path of [...sources, ...files, ...guideFiles()]) {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await cp(path, join(out, path), { dereference: true });
  }
  await buildWeb(join(out, BUILT));
  await mkdir(join(out, BUILT_CLIENTS), { recursive: true });
  await buildClientPackages(join(out, BUILT_CLIENTS));
  const sbom = cycloneDx(await Bun.file("package-lock.json").json(), packages);
  await writeFile(join(out, "sbom.json"), `${JSON.stringify(sbom, null, 2)}\n`);
  await writeFile(join(out, NOTICES), await noticesText());
}

export const tool = command({
  name: "npm run tool -- image-tree",
  forms: ["FOLDER [COMMIT]"],
  about:
    "Builds what the container image has under /app. The commit is asked of git where none is named.",
  options: {},
  operands: [1, 2],
  run: ({ operands: [out = "", commit] }) => buildTree(out, commit),
});
