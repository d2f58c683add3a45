/** What every part of the benchmark does alike: its options and report, a store as shipped, roles as processes, times and costs. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";
import type { Subprocess } from "bun";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { applySetupFile, openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { type Figure, median, reportText } from "./table.ts";

export const LIMIT_MS = 300_000;
const READY_LIMIT_MS = 120_000;
/** Of `utime` and `stime`. */
const TICKS_PER_SECOND = 100;
export const HIGH_WATER = 100_000_000;
/** As processes of one role are started (package.json), and those of a peer likewise. */
const ALLOCATOR = { MIMALLOC_PURGE_DELAY: "-1" };
/** As `npm start` starts the process of all roles (`cli/run.mjs`). */
export const ALLOCATOR_OF_ALL = { MIMALLOC_PURGE_DELAY: "60000" };

const OFF = { type: "boolean", default: false } as const;
const FLAGS = { json: OFF, quick: OFF, everysec: OFF } as const;

export const flags = { json: false, quick: false, everysec: false };

type Numbers = Readonly<Record<string, number | readonly [full: number, quick: number]>>;

/** Reads the command line: the flags, and the numbers of a part, whose second value is that of `--quick`. `2m` is two million. */
export function readOptions<N extends Numbers>(numbers: N): { readonly [K in keyof N]: number } {
  const text = { type: "string" } as const;
  const own = Object.fromEntries(Object.keys(numbers).map((name) => [name, text]));
  const { values } = parseArgs({ options: { ...own, ...FLAGS } });
  Object.assign(flags, values);
  const given = values as Readonly<Record<string, unknown>>;
  const entries = Object.entries(numbers).map(([name, value]) => {
    const [full, quick] = typeof value === "number" ? [value, value] : value;
    const asked = given[name];
    return [name, typeof asked === "string" ? numberOf(asked) : flags.quick ? quick : full];
  });
  return Object.fromEntries(entries);
}

function numberOf(text: string): number {
  const [, digits = "", unit = ""] = /^([\d.]+)([km]?)$/i.exec(text) ?? [];
  if (digits === "") throw new Error(`no number: ${text}`);
  return Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
}

/** Called in the opposite order at the end, whatever happened. */
export type Defer = (close: () => unknown) => void;

export const deferTo =
  (stack: AsyncDisposableStack): Defer =>
  (close) =>
    stack.defer(async () => void (await close()));

interface Outcome {
  readonly figures: readonly Figure[];
  /** Whose version the report names. */
  readonly redis?: Redis;
  /** On what was measured, behind the machine. */
  readonly about?: string;
}

/** Measures and prints the report: a table, or one JSON object with `--json`. */
export async function runPart(measure: (defer: Defer) => Promise<Outcome>): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { figures, redis, about } = await measure(deferTo(stack));
  const machine = await machineText(redis);
  const report = { machine: about === undefined ? machine : `${machine}, ${about}`, figures };
  process.stdout.write(`${reportText(report, flags.json)}\n`);
}

export async function machineText(redis?: Redis): Promise<string> {
  const version = redis && /redis_version:(\S+)/.exec(await redis.info("server"))?.[1];
  return `${cpus().length} x ${cpus()[0]?.model ?? "?"}, Bun ${Bun.version}, Redis ${version ?? "none"}`;
}

export const fsyncText = () => `appendfsync ${flags.everysec ? "everysec" : "always"}`;

/** On standard error: the figures alone go to standard output. */
export const tell = (text: string) => void process.stderr.write(`${text}\n`);

export async function tempFolder(defer: Defer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** What a role needs beside its store. */
export const COMMON_ENV = {
  EVENTS_PER_DAY: "1000000",
  LOG_HIGH_WATER: String(HIGH_WATER),
  LOG_LEVEL: "error",
  PANEL_TOKEN: "panel-token-of-the-measurements",
  PATH: dirname(Bun.which("redis-server") ?? ""),
  WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8,::1/128",
} as const;

export type Env = Readonly<Record<string, string>>;
export type Store = Awaited<ReturnType<typeof openStore>>;

/**
 * An embedded Redis as shipped. Roles that have not been stopped are stopped before it.
 * @returns what a role needs to join it, too
 */
export async function openStore(defer: Defer, setup: SetupFile, given: Env = {}) {
  const env: Env = { ...COMMON_ENV, DATA_DIR: await tempFolder(defer), ...given };
  const runtime = await openRuntime(readConfig(env), createLog("error"));
  defer(() => runtime.close());
  await applySetupFile(runtime, setup);
  if (flags.everysec) await runtime.redis.configSet("appendfsync", "everysec");
  defer(stopAll);
  return { runtime, env };
}

/** Path of the Unix socket of the embedded Redis. */
export const socketOf = ({ redis }: Runtime) =>
  ((redis.options?.socket ?? {}) as { path?: string }).path ?? "";

export type Role = ReturnType<typeof startRole>;

/** Roles that have not been stopped. */
const running = new Set<Subprocess>();

export async function stopAll(): Promise<void> {
  for (const child of running) await stop(child);
}

/** @param file of another program than the role's own: a peer, which is reported the environment as an argument */
export function startRole(name: string, env: Env, file = `${name}/main.ts`) {
  const child: Subprocess = Bun.spawn([process.execPath, file, name, JSON.stringify(env)], {
    env: { ...ALLOCATOR, DRAIN_SECONDS: "0", ...env },
    stdio: ["ignore", "ignore", "inherit"],
    onExit: (ended) => void running.delete(ended),
  });
  running.add(child);
  return {
    name,
    pid: child.pid,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    stop: () => stop(child),
  };
}

async function stop(child: Subprocess): Promise<void> {
  child.kill("SIGTERM");
  await child.exited;
}

/** @returns the role and its URL, once it is ready */
export async function startServer(name: "ingest" | "api" | "panel", env: Env, file?: string) {
  const port = await freePort();
  const role = startRole(name, { ...env, [`${name.toUpperCase()}_PORT`]: String(port) }, file);
  const url = `http://127.0.0.1:${port}`;
  await untilReady(url, name);
  return { ...role, url };
}

/** All roles in one process, as `npm start` runs them. @param preload a file that runs there first, and speaks to `ipc` */
export async function startProduct(
  defer: Defer,
  { env }: Store,
  { preload, ipc }: { readonly preload?: string; readonly ipc?: (message: never) => void } = {},
) {
  const [panel, ingest] = [await freePort(), await freePort()];
  const ports = { PANEL_PORT: String(panel), API_PORT: "0", INGEST_PORT: String(ingest) };
  const before = preload === undefined ? [] : ["--preload", preload];
  const child = Bun.spawn([process.execPath, ...before, "cli/main.ts", "start", "--quiet"], {
    env: { ...ALLOCATOR_OF_ALL, DRAIN_SECONDS: "0", ...env, ...ports },
    stdio: ["ignore", "ignore", "inherit"],
    ...(ipc && { ipc: ipc as (message: unknown) => void }),
  });
  defer(() => stop(child));
  await untilReady(`http://127.0.0.1:${panel}`, "the product");
  return { ingest: `http://127.0.0.1:${ingest}`, child };
}

export async function untilReady(url: string, name: string): Promise<void> {
  const answers = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(answers, `${name} is ready`, READY_LIMIT_MS);
}

/** A program of `bench/` as a process of its own, ended with the part. @returns it and the first line it says */
export async function startProgram(defer: Defer, file: string, args: readonly string[]) {
  const command = [process.execPath, join(import.meta.dir, file), ...args];
  const child = Bun.spawn(command, { env: ALLOCATOR, stdio: ["pipe", "pipe", "inherit"] });
  defer(() => stop(child));
  const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) });
  const next = lines[Symbol.asyncIterator]();
  const read = async () => (await next.next()).value ?? "";
  return { say: (line: string) => child.stdin.write(`${line}\n`), read, first: await read() };
}

/** @returns a reader of the numbers of a section of INFO */
export async function infoOf(redis: Redis, section: string): Promise<(name: string) => number> {
  const text = await redis.info(section);
  return (name) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(text)?.[1]);
}

export const usedBytes = async (redis: Redis) => (await infoOf(redis, "memory"))("used_memory");

/** CPU time of Redis without its children. */
export async function redisSeconds(redis: Redis): Promise<number> {
  const of = await infoOf(redis, "cpu");
  return of("used_cpu_user") + of("used_cpu_sys");
}

/** CPU time of a process without its children. */
export async function processSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Microseconds an event, by role, Redis among them. */
export type Costs = Readonly<Record<string, number>>;

/** Begins to count CPU time. @returns what it has cost since, for each of so many events */
export async function startCosting(redis: Redis, roles: readonly Pick<Role, "name" | "pid">[]) {
  const read = async () => {
    const used: [string, number][] = [["redis", await redisSeconds(redis)]];
    for (const { name, pid } of roles) used.push([name, await processSeconds(pid)]);
    return used;
  };
  const before = await read();
  return async (events: number): Promise<Costs> => {
    const costs = (await read()).map(([name, seconds], at) => {
      return [name, ((seconds - (before[at]?.[1] ?? 0)) * 1e6) / events];
    });
    return Object.fromEntries(costs);
  };
}

export const totalOf = (costs: Costs) => Object.values(costs).reduce((sum, us) => sum + us, 0);

export async function timedMs(work: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now();
  await work();
  return performance.now() - fromMs;
}

/** @returns of how many a second the work was done */
export async function ratePerSecond(count: number, work: () => Promise<unknown>): Promise<number> {
  return (count * 1_000) / (await timedMs(work));
}

/** @param atOnce how many are under way at once */
export async function forEach<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/**
 * Ours and its peers take turns, so that a slow moment of the machine meets all.
 * @param warmUps rounds before those that count
 * @returns the medians
 */
export async function inTurns<K extends string>(
  rounds: number,
  works: Readonly<Record<K, () => Promise<number>>>,
  warmUps = 1,
): Promise<Record<K, number>> {
  const names = Object.keys(works) as K[];
  const found = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = -warmUps; round < rounds; round += 1) {
    for (const name of names) {
      const value = await works[name]();
      if (round >= 0) found.get(name)?.push(value);
    }
  }
  const medians = [...found].map(([name, values]) => [name, median(values)]);
  return Object.fromEntries(medians) as Record<K, number>;
}

export const random = (below: number) => Math.floor(Math.random() * below);
