/**
 * Releases the version that the argument names, in a clone of this repository: sets the version, closes
 * the changelog's section Unreleased, checks the code, commits, tags, and builds what is published. Only when all of it is done
 * do commit and tag come back and the artefacts go to `dist/1.2.0`, so that a failure changes nothing. `--dry-run` leaves it at
 * the clone, `--test` runs the tests too. Nothing is pushed or published.
 */
import { cp, exists, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { command } from "#core/platform/process/command-line.ts";
import { Refused } from "#core/runtime/runtime.ts";
import { buildArtefacts } from "./artefacts.ts";
import { attempt, failOnSignals, run } from "./command.ts";
import { providePackages } from "./packages.ts";
import { CHANGED_FILES, refusalOf, releasedText } from "./release-files.ts";

async function releaseVersion(version: string, isDry: boolean, isTested: boolean): Promise<void> {
  failOnSignals();
  await refuseUnready(version);
  const changes = await changesOf(version);
  const work = await mkdtemp(join(tmpdir(), "waybill-release-"));
  try {
    const clone = join(work, "clone");
    const artefacts = join(work, "artefacts");
    await mkdir(artefacts);
    await run(["git", "clone", "--quiet", "--shared", ".", clone], ".");
    await providePackages(".", clone);
    await commitVersion(clone, version, changes);
    tell("checking");
    await run(["npm", "run", "check"], clone);
    if (isTested) await run(["npm", "test"], clone);
    tell("building");
    tell(await buildArtefacts(clone, artefacts, version));
    if (!isDry) await bringBack(clone, artefacts, version);
    const names = (await readdir(artefacts)).sort().join(", ");
    tell(isDry ? `dry run: nothing was changed; built ${names}` : `dist/${version}: ${names}`);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function refuseUnready(version: string): Promise<void> {
  const { version: current } = await Bun.file("package.json").json();
  const refusal = refusalOf(version, current, await run(["git", "tag", "--list"], "."));
  if (refusal !== null) throw new Refused(refusal);
  if ((await run(["git", "status", "--porcelain"], ".")) !== "") {
    throw new Refused("There are changes that are not committed.");
  }
  if (await exists(join("dist", version))) throw new Refused(`dist/${version} exists.`);
}

/** The files that name the version, as they are to be committed. */
async function changesOf(version: string): Promise<Map<string, string>> {
  const day = new Date().toISOString().slice(0, 10);
  const changes = new Map<string, string>();
  for (const path of CHANGED_FILES) {
    changes.set(path, releasedText(path, await Bun.file(path).text(), version, day));
  }
  return changes;
}

async function commitVersion(
  clone: string,
  version: string,
  changes: ReadonlyMap<string, string>,
): Promise<void> {
  for (const [path, text] of changes) await Bun.write(join(clone, path), text);
  for (const name of ["user.name", "user.email"]) {
    const value = await attempt(["git", "config", "--get", name], ".");
    if (value !== null) await run(["git", "config", name, value], clone);
  }
  await run(["git", "commit", "--quiet", "--all", "-m", `house: Release ${version}`], clone);
  await run(["git", "tag", "--annotate", `v${version}`, "-m", `Waybill ${version}`], clone);
}

async function bringBack(clone: string, artefacts: string, version: string): Promise<void> {
  const tag = `v${version}`;
  const out = join("dist", version);
  let isTagged = false;
  try {
    await cp(artefacts, out, { recursive: true });
    await run(["git", "fetch", "--quiet", "--no-tags", clone, "tag", tag], ".");
    isTagged = true;
    await run(["git", "merge", "--quiet", "--ff-only", tag], ".");
  } catch (error) {
    if (isTagged) await attempt(["git", "tag", "--delete", tag], ".");
    await rm(out, { recursive: true, force: true });
    throw error;
  }
}

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

export const tool = command({
  name: "npm run tool -- release",
  forms: ["VERSION [--dry-run] [--test]"],
  about:
    "Sets the version, closes the changelog's section, checks, commits, tags and builds what is published.",
  options: {
    "dry-run": { type: "boolean", about: "does everything but the commit and the tag" },
    test: { type: "boolean", about: "runs all tests too" },
  },
  operands: [1, 1],
  run: ({ values, operands: [version = ""] }) =>
    releaseVersion(version, values["dry-run"] === true, values.test === true),
});
