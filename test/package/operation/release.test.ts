/**
 * `npm run tool -- release` in a small repository that has this one's clients, chart and changelog. Its `check` and `tool` are short:
 * those of this repository are run by CI, by `test/package/operation/image.test.ts` and by
 * `test/package/merchants/client-package.test.ts`. The container engine is a party outside, played by a program that notes what it is asked.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import {
  chmod,
  cp,
  exists,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { CHANGED_FILES, refusalOf, releasedText } from "#tools/release/release-files.ts";

const NEXT = "7.8.9";
const TOOLS = resolve("tools/main.ts");
const SCRIPTS = {
  check: "test ! -e broken.txt && if test -e slow.txt; then echo slow >> $ASKED; sleep 600; fi",
  tool: "sh tool.sh",
};
/** Its arguments are the name of the tool and a folder. */
const TOOL_SCRIPT = `case $1 in
  image-tree) mkdir "$2" && cp package.json "$2" && echo "{}" > "$2/sbom.json" ;;
  client-packages) cp client/package.json "$2/waybill-client.tgz" ;;
esac
`;
/** Prints the version for `docker version`, notes everything else. */
const ENGINE = 'test "$1" = version && echo 29 || echo "$@" >> "$ASKED"\n';

let folder: string;
let repository: string;
let beginning: string;
/** What the engine and the builder were asked. */
let asked: string;

const text = (path: string) => readFile(join(repository, path), "utf8");
const git = (...args: string[]) => output(["git", ...args]);

async function output(command: string[]): Promise<string> {
  const done = await outcomeOf(startCommand(command, {}, { cwd: repository }));
  expect([command, done.status, done.status === 0 ? "" : done.errors]).toEqual([command, 0, ""]);
  return done.output.trim();
}

/** As an operator runs it; its temporary folder is ours. */
function startRelease(...args: string[]) {
  const env = { TMPDIR: join(folder, "tmp"), ASKED: asked };
  const programs = [join(folder, "bin"), resolve("node_modules/.bin")];
  return startCommand([process.execPath, TOOLS, "release", ...args], env, {
    cwd: repository,
    programs,
  });
}

const release = (...args: string[]) => outcomeOf(startRelease(...args));

async function commit(message: string): Promise<string> {
  await git("add", "--all");
  await git("commit", "--quiet", "-m", message);
  return git("rev-parse", "HEAD");
}

async function writeProgram(name: string, script: string): Promise<void> {
  const path = join(folder, "bin", name);
  await writeFile(path, `#!/bin/sh\n${script}`);
  await chmod(path, 0o755);
}

/** What a release may touch. */
async function state(): Promise<object> {
  return {
    head: await git("rev-parse", "HEAD"),
    branches: await git("branch", "--list"),
    tags: await git("tag"),
    changes: await git("status", "--porcelain"),
    isBuilt: await exists(join(repository, "dist", NEXT)),
    temporary: await readdir(join(folder, "tmp")),
  };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-release-test-"));
  repository = join(folder, "repository");
  asked = join(folder, "asked.txt");
  for (const name of ["repository", "tmp", "bin"]) await mkdir(join(folder, name));
  const files = await outcomeOf(startCommand(["git", "ls-files", "client", ...CHANGED_FILES], {}));
  for (const path of files.output.trim().split("\n")) {
    await mkdir(dirname(join(repository, path)), { recursive: true });
    await cp(path, join(repository, path));
  }
  const name = "waybill";
  const version = "0.1.0";
  const lock = { name, version, lockfileVersion: 3, packages: { "": { name, version } } };
  const manifest = JSON.stringify({ name, version, scripts: SCRIPTS }, null, 2);
  await writeFile(join(repository, "package.json"), `${manifest}\n`);
  await writeFile(join(repository, "package-lock.json"), `${JSON.stringify(lock, null, 2)}\n`);
  await writeFile(join(repository, "tool.sh"), TOOL_SCRIPT);
  await writeFile(join(repository, ".gitignore"), "node_modules/\ndist/\n");
  await mkdir(join(repository, "node_modules"));
  await writeFile(join(repository, "node_modules/.package-lock.json"), JSON.stringify(lock));
  await writeProgram("docker", ENGINE);
  await git("init", "--quiet", "--initial-branch", "main");
  await git("config", "user.name", "Releaser");
  await git("config", "user.email", "releaser@example.com");
  beginning = await commit("Begin");
}, 300_000);

beforeEach(async () => {
  await git("reset", "--quiet", "--hard", beginning);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("a version that is none, not newer or tagged, and a wrong flag are refused", async () => {
  expect(refusalOf("1.2", "0.1.0", "")).toBe('"1.2" is no version such as 1.2.3.');
  expect(refusalOf("0.1.0", "0.1.0", "")).toBe("The version is 0.1.0 already.");
  expect(refusalOf("0.0.9", "0.1.0", "")).toBe("0.0.9 is older than 0.1.0.");
  expect(refusalOf("0.10.0", "0.9.0", "v0.10.0")).toBe("The tag v0.10.0 exists.");
  expect(refusalOf("0.10.0", "0.9.0", "v0.9.0")).toBeNull();
  expect((await release(NEXT, "--fast")).errors).toStartWith("Unknown option '--fast'.\nusage: ");
  await git("tag", `v${NEXT}`);
  expect((await release(NEXT)).errors).toBe(`The tag v${NEXT} exists.\n`);
  await git("tag", "--delete", `v${NEXT}`);
});

test("changes that are not committed, and a changelog without news, are refused in one line", async () => {
  const empty = "# Changelog\n\n## Unreleased\n\n### Operators\n\n## 0.1.0\n\n- First.\n";
  await writeFile(join(repository, "CHANGELOG.md"), empty);
  expect((await release(NEXT)).errors).toBe("There are changes that are not committed.\n");
  await commit("Empty the changelog");
  expect((await release(NEXT)).errors).toBe("CHANGELOG.md has nothing under Unreleased\n");
});

test("a check that fails, or is interrupted, leaves everything as it was", async () => {
  await writeFile(join(repository, "broken.txt"), "");
  await commit("Break");
  const broken = await state();
  const { errors, status } = await release(NEXT);
  expect([status, errors]).toEqual([1, expect.stringContaining("npm run check failed")]);
  expect(await state()).toEqual(broken);

  await git("reset", "--quiet", "--hard", beginning);
  await writeFile(join(repository, "slow.txt"), "");
  await commit("Take long");
  const slow = await state();
  const child = startRelease(NEXT);
  const isChecking = async () => {
    const lines = await readFile(asked, "utf8").catch(() => "");
    return lines.includes("slow");
  };
  await eventually(isChecking, "the check is under way");
  child.kill("SIGTERM");
  expect(await child.exited).toBe(1);
  expect(await state()).toEqual(slow);
}, 300_000);

test("a release that is interrupted between two commands begins no other, and can still undo", async () => {
  const program = `
    import { attempt, failOnSignals, run } from "#tools/release/command.ts";
    failOnSignals();
    process.on("SIGTERM", async () => {
      console.log(await run(["echo", "went on"], ".").catch(({ message }) => message));
      console.log(await attempt(["echo", "undone"], "."));
      process.exit();
    });
    process.kill(process.pid, "SIGTERM");
    await Bun.sleep(60_000);
  `;
  const { output: printed } = await outcomeOf(startCommand([process.execPath, "-e", program], {}));
  expect(printed).toBe("interrupted before echo went on\nundone\n");
});

test("a dry run does all of it and changes nothing; a failure at the very end leaves nothing either", async () => {
  const before = await state();
  const dry = await release(NEXT, "--dry-run");
  expect([dry.status, dry.errors]).toEqual([0, ""]);
  expect(dry.output).toContain(
    `dry run: nothing was changed; built image, sbom.json, waybill-client.tgz`,
  );
  expect(await state()).toEqual(before);

  // Git refuses to move the branch while another command holds its index.
  await writeFile(join(repository, ".git/index.lock"), "");
  const late = await release(NEXT);
  await rm(join(repository, ".git/index.lock"));
  expect([late.status, late.errors]).toEqual([1, expect.stringContaining("git merge")]);
  expect(await state()).toEqual(before);
}, 300_000);

test("a release sets the version, closes the changelog's section, tags, and builds what is published", async () => {
  await rm(asked, { force: true });
  const { errors, status, output: told } = await release(NEXT);
  expect([status, errors]).toEqual([0, ""]);
  expect(await git("rev-list", "-n", "1", `v${NEXT}`)).toBe(await git("rev-parse", "HEAD"));
  expect(await git("rev-parse", "HEAD~1")).toBe(beginning);
  expect(await git("log", "-1", "--format=%s, %an")).toBe(`house: Release ${NEXT}, Releaser`);
  for (const path of ["package.json", "package-lock.json", "client/package.json"]) {
    expect([path, JSON.parse(await text(path)).version]).toEqual([path, NEXT]);
  }
  expect(await text("client/python/pyproject.toml")).toContain(`\nversion = "${NEXT}"\n`);
  const chart = Bun.YAML.parse(await text("deploy/helm/waybill/Chart.yaml"));
  expect(chart).toMatchObject({ version: NEXT, appVersion: NEXT });
  expect(await text("CHANGELOG.md")).toMatch(
    /## Unreleased\n\n## 7\.8\.9 \(\d{4}-\d\d-\d\d\)\n\n### Merchants\n/,
  );
  const built = await readdir(join(repository, "dist", NEXT));
  expect(built.toSorted()).toEqual(["image", "sbom.json", "waybill-client.tgz"]);
  expect(JSON.parse(await text(`dist/${NEXT}/image/package.json`)).version).toBe(NEXT);
  expect(JSON.parse(await text(`dist/${NEXT}/waybill-client.tgz`)).version).toBe(NEXT);
  expect(await readFile(asked, "utf8")).toBe(
    `build --quiet --label org.opencontainers.image.version=${NEXT} --tag waybill:${NEXT} .\n`,
  );
  expect(told).toContain(`image waybill:${NEXT}\n`);
  expect(await git("status", "--porcelain")).toBe("");
}, 300_000);

test("what this repository's files name as the version is found in each of them", async () => {
  for (const path of CHANGED_FILES) {
    expect([path, releasedText(path, await readFile(path, "utf8"), NEXT, "2026-11-23")]).toEqual([
      path,
      expect.stringContaining(NEXT),
    ]);
  }
});
