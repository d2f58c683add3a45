#!/usr/bin/env node
/**
 * Installs what is missing on a machine that has only Node.js and npm, then runs the program (`cli/main.ts`) or the tests with Bun.
 * Plain Node.js >= 20 without dependencies: `npx waybill COMMAND [arguments]`, `node cli/run.mjs test|test:slow [arguments]`.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { constants, platform } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MODULES = join(ROOT, "node_modules");
const TOOLS = join(MODULES, ".bin");
/** A busy machine may be many times slower; tests that wait for a condition give up earlier and name it. */
const TEST_TIMEOUT = "--timeout=300000";
const TEST = ["test", TEST_TIMEOUT];
const PROGRAM = "cli/main.ts";
/** Folders whose files take too long for every day: they end servers and whole products, open browsers and build packages. */
const SLOW = ["test/fault", "test/browser", "test/package"];
/** Tests that compare what they measure with a bound: nothing else runs beside them. */
const BOUNDS = "test/bounds";
/** Tests of the image, which `npm run tool -- image-test` builds first. */
const OF_IMAGE = "test/image";
const IGNORED = [...SLOW, BOUNDS, OF_IMAGE].map((folder) => `--path-ignore-patterns=${folder}/**`);
/**
 * This many processes share the files of a round. Tests wait more than they compute, those that start whole products less so.
 * Every day's tests load the product once for each process, not for each file.
 */
const ROUNDS = {
  test: [["--parallel=4", "--no-isolate", ...IGNORED]],
  "test:slow": [
    ["--parallel=3", ...SLOW],
    ["--parallel=1", BOUNDS],
  ],
};

/**
 * Bun's allocator keeps what it has freed for a minute (milliseconds) before it gives it back: at rest the process that runs all
 * roles then holds 300 MiB less. Processes of one role, which are there for load, keep it for ever, which saves them 5 to 10 % of
 * their CPU. Set where processes are started, since it is read before any code of theirs: here, in the scripts of package.json,
 * in the Dockerfile and in bench/harness.ts.
 */
const ALLOCATOR = { MIMALLOC_PURGE_DELAY: "60000" };
const NODE_MAJOR = 20;
const REDIS_MAJOR = 7;
const OUTFILE = "--reporter-outfile=";
const DOCKER_SOCKET = process.env.DOCKER_HOST?.replace(/^unix:\/\//, "") || "/var/run/docker.sock";
const DOCKER_WAIT_MS = 2_000;
const LINGER_MS = 200;

const REDIS_MISSING =
  `redis-server ${REDIS_MAJOR} or newer is missing: run "sudo apt-get install redis-server" or "brew install redis", ` +
  `or start it with "docker run -d -p 6379:6379 redis:7 redis-server --appendonly yes --appendfsync always ` +
  `--aof-load-truncated no --maxmemory-policy noeviction" and set REDIS_URL=redis://127.0.0.1:6379`;

const POPPLER_MISSING =
  'pdftoppm is missing, which the tests render labels with: run "sudo apt-get install poppler-utils" or ' +
  '"brew install poppler"';

const CHROMIUM_MISSING =
  'Chromium is missing, which the tests look at pages with: run "sudo apt-get install chromium" or ' +
  '"brew install --cask chromium"';
const CHROMIUM_PLACES = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

function tell(text) {
  process.stderr.write(`waybill: ${text}\n`);
}

function giveUp(text) {
  tell(text);
  process.exit(1);
}

/** Runs a program; its output goes to standard error, which keeps standard output for the product's log. */
function succeeds(program, args, options = {}) {
  const stdio = ["ignore", 2, 2];
  return spawnSync(program, args, { cwd: ROOT, stdio, ...options }).status === 0;
}

/** Standard output of a program, or null when it is not there or fails. */
function outputOf(program, args) {
  const { status, stdout } = spawnSync(program, args, { encoding: "utf8" });
  return status === 0 ? stdout : null;
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch {
    return null;
  }
}

/**
 * npm writes what it installed into a lock file of its own; optional packages are those of other platforms.
 * @param isTest tests alone need packages of development; nothing else asks for their versions
 */
function modulesMatch(isTest) {
  const { installed, wanted } = lockedPackages();
  if (installed === null || wanted === null) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "" || (!isTest && entry.dev)) return true;
    const found = installed[path];
    return found ? found.version === entry.version : entry.optional === true;
  });
}

function lockedPackages() {
  const installed = readPackages(join(MODULES, ".package-lock.json"));
  return { installed, wanted: readPackages(join(ROOT, "package-lock.json")) };
}

/**
 * What only development needs is a third of all: a start leaves it out where it is not installed yet, and tests then add it to
 * what is there.
 */
function installCommand(isTest) {
  const { installed, wanted } = lockedPackages();
  const isDeveloped = Object.keys(installed ?? {}).some((path) => wanted?.[path]?.dev);
  if (!isTest && !isDeveloped) return ["ci", "--omit=dev"];
  return modulesMatch(false) ? ["install", "--no-save", "--include=dev"] : ["ci", "--include=dev"];
}

function installModules(isTest) {
  tell("installing the npm packages; the first start after this takes about 10 s longer");
  // npm warns of packages that want a newer Node.js, which Bun runs.
  const command = [...installCommand(isTest), "--loglevel=error"];
  const npm = process.env.npm_execpath ?? "";
  const done = npm.endsWith("npm-cli.js")
    ? succeeds(process.execPath, [npm, ...command])
    : succeeds("npm", command, { shell: platform() === "win32" });
  if (!done) giveUp(`"npm ${command.join(" ")}" failed, see above`);
}

/** npm may have refused to run Bun's install script, which puts the platform's program in its place. */
function findBun() {
  const placed = join(TOOLS, "bun");
  if (outputOf(placed, ["--version"])) return placed;
  spawnSync(process.execPath, [join(MODULES, "bun", "install.js")], { cwd: join(MODULES, "bun") });
  if (outputOf(placed, ["--version"])) return placed;
  const scope = join(MODULES, "@oven");
  const packed = existsSync(scope) ? readdirSync(scope) : [];
  const found = packed
    .map((name) => join(scope, name, "bin", "bun"))
    .find((program) => outputOf(program, ["--version"]));
  return (
    found ?? giveUp('Bun does not run on this machine: see "node node_modules/bun/install.js"')
  );
}

/** 0 when there is none. */
function redisMajor() {
  return Number(/v=(\d+)/.exec(outputOf("redis-server", ["--version"]) ?? "")?.[1] ?? 0);
}

function installRedis() {
  const isRoot = process.getuid?.() === 0;
  if (outputOf("apt-get", ["--version"]) !== null) {
    if (isRoot) installRedisByApt([]);
    else if (outputOf("sudo", ["-n", "true"]) !== null) installRedisByApt(["sudo", "-n"]);
  } else if (!isRoot && outputOf("brew", ["--version"]) !== null) {
    tell("installing redis by brew");
    succeeds("brew", ["install", "redis"]);
  }
}

/** The package starts a system service; where it was not there before, it is not left running because of us. */
function installRedisByApt(prefix) {
  const isNew = redisMajor() === 0;
  tell("installing redis-server by apt-get");
  const done = installByApt(prefix, "redis-server");
  if (!done || !isNew) return;
  if (existsSync("/run/systemd/system")) {
    asRoot(prefix, "systemctl", "disable", "--now", "redis-server");
  } else {
    asRoot(prefix, "service", "redis-server", "stop");
  }
}

function asRoot(prefix, ...command) {
  const [program, ...args] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", ...command];
  return succeeds(program, args);
}

function installByApt(prefix, name) {
  const install = () =>
    asRoot(prefix, "apt-get", "install", "-y", "-qq", "--no-install-recommends", name);
  return install() || (asRoot(prefix, "apt-get", "update", "-qq") && install());
}

/** Renders label pages for the tests that scan their barcodes. */
function ensurePoppler() {
  const isThere = () => spawnSync("pdftoppm", ["-v"]).status === 0;
  const why = "poppler-utils, which renders label pages for the tests";
  ensureTestTool(isThere, why, "poppler-utils", ["poppler"], POPPLER_MISSING);
}

/** Opens the pages in the tests that look at them. */
function ensureChromium() {
  const why = "chromium, which the tests look at pages with";
  ensureTestTool(hasChromium, why, "chromium", ["--cask", "chromium"], CHROMIUM_MISSING);
}

/** As `test/support/clients/browser.ts` looks for it. */
function hasChromium() {
  const programs = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const folders = (process.env.PATH ?? "").split(delimiter);
  const found = folders.flatMap((folder) => programs.map((name) => join(folder, name)));
  return [...found, ...CHROMIUM_PLACES].some((path) => existsSync(path));
}

/** Installs a tool that only tests use, where that needs no password. */
function ensureTestTool(isThere, why, aptName, brewArgs, missing) {
  if (isThere()) return;
  const isRoot = process.getuid?.() === 0;
  tell(`installing ${why}`);
  if (outputOf("apt-get", ["--version"]) !== null) {
    if (isRoot) installByApt([], aptName);
    else if (outputOf("sudo", ["-n", "true"]) !== null) installByApt(["sudo", "-n"], aptName);
  } else if (!isRoot && outputOf("brew", ["--version"]) !== null) {
    succeeds("brew", ["install", ...brewArgs]);
  }
  if (!isThere()) giveUp(missing);
}

/** True when a Docker engine answers a ping on its socket. */
function dockerAnswers() {
  return new Promise((resolve) => {
    const socket = createConnection(DOCKER_SOCKET);
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(DOCKER_WAIT_MS, () => finish(false));
    socket.on("error", () => finish(false));
    socket.on("connect", () => socket.write("GET /_ping HTTP/1.0\r\n\r\n"));
    socket.on("data", (bytes) => finish(/^HTTP\/1\.[01] 200/.test(bytes.toString())));
  });
}

async function ensureRedis(isTest) {
  if (process.env.REDIS_URL || process.env.REDIS_CLUSTER_URLS) return;
  if (redisMajor() >= REDIS_MAJOR) return;
  installRedis();
  if (redisMajor() >= REDIS_MAJOR) return;
  if (isTest && (await dockerAnswers())) return;
  giveUp(REDIS_MISSING);
}

/**
 * Ctrl-C in a terminal reaches npm, us and the child, and each passes it on: the child may hear it twice, and we stay long
 * enough for npm's copy to find us alive, since without a listener it would become our exit status.
 */
async function run(bun, commands) {
  const path = [dirname(bun), TOOLS, process.env.PATH ?? ""].join(delimiter);
  const env = { ...ALLOCATOR, ...process.env, PATH: path };
  let child = null;
  let isStopping = false;
  for (const name of ["SIGINT", "SIGTERM"]) {
    process.on(name, () => {
      isStopping = true;
      child?.kill(name);
    });
  }
  let status = 0;
  for (const args of commands) {
    if (isStopping) break;
    child = spawn(bun, args, { cwd: ROOT, env, stdio: "inherit" });
    child.on("error", (error) => giveUp(`Bun does not start: ${error.message}`));
    const [code, signal] = await once(child, "exit");
    status ||= code ?? 128 + constants.signals[signal];
  }
  return { status, lingerMs: isStopping ? LINGER_MS : 0 };
}

/** A suite, selected by naming no file. Each round after the first writes a report of its own, `<file>.2.xml`. */
function commandsOf(mode, flags) {
  return ROUNDS[mode].map((round, at) => [
    ...TEST,
    ...flags.map((flag) => (at > 0 && flag.startsWith(OUTFILE) ? `${flag}.${at + 1}.xml` : flag)),
    ...round,
  ]);
}

const [mode, ...args] = process.argv.slice(2);
if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR) {
  giveUp(`Node.js ${NODE_MAJOR} or newer is needed, this is ${process.versions.node}`);
}
const isTest = Object.hasOwn(ROUNDS, mode ?? "");
if (!modulesMatch(isTest)) installModules(isTest);
const bun = findBun();
if (isTest || mode === "start") await ensureRedis(isTest);
if (isTest) ensurePoppler();
if (isTest) ensureChromium();
const isWhole = isTest && args.every((arg) => arg.startsWith("--reporter"));
const single = isTest ? [...TEST, ...args] : [PROGRAM, ...process.argv.slice(2)];
const commands = isWhole ? commandsOf(mode, args) : [single];
const { status, lingerMs } = await run(bun, commands);
setTimeout(() => process.exit(status), lingerMs);
