/**
 * Builds what the container image has under /app (`bun run image-tree FOLDER [COMMIT]`): the sources of the roles, the files of packages that
 * they reach, the panel's application as bundled, and a list of the packages (`sbom.json`). The Dockerfile copies the folder.
 */
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { guarded, Refused } from "#core/runtime/runtime.ts";
import { guideFiles } from "#panel/server/pages/guides.ts";
import { BUILT, buildWeb } from "#panel/server/pages/web-bundle.ts";
import { cycloneDx } from "#tools/sbom/cyclonedx.ts";
import { builtManifest } from "./built-manifest.ts";
import { reachedFiles } from "./reached-files.ts";

/** Copied whole, but for the application: of that, only what the server imports. */
const ROOMS = ["analytics", "api", "core", "ingest", "panel", "processors", "cli", "demo", "tools"];
const WEB = "panel/web";
const OTHER_SOURCES = ["docs", "client/examples"];

await guarded(async () => {
  const [out, commit] = process.argv.slice(2);
  if (out === undefined) throw new Refused("usage: bun run image-tree FOLDER [COMMIT]");
  if ((await readdir(out).catch(() => [])).length > 0) throw new Refused(`${out} is not empty`);
  const { packages, files, sources } = await reachedFiles();
  await mkdir(out, { recursive: true });
  for (const room of [...ROOMS, ...OTHER_SOURCES]) {
    const filter = (path: string) => path !== WEB && path !== BUILT;
    await cp(room, join(out, room), { recursive: true, filter });
  }
  await writeFile(join(out, "package.json"), await builtManifest(commit));
  const ofWeb = sources.filter((path) => path.startsWith(`${WEB}/`));
  for (const path of [...ofWeb, ...files, ...guideFiles()]) {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await cp(path, join(out, path), { dereference: true });
  }
  await buildWeb(join(out, BUILT));
  const sbom = cycloneDx(await Bun.file("package-lock.json").json(), packages);
  await writeFile(join(out, "sbom.json"), `${JSON.stringify(sbom, null, 2)}\n`);
});
