/** The product's roles as processes of their own on one embedded Redis, and what each of them costs. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { applySetupFile, openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { benchSetup } from "./load-shipments.ts";

const READY_LIMIT_MS = 60_000;
/** Of `utime` and `stime`. */
const TICKS_PER_SECOND = 100;
const HIGH_WATER = 10_000_000;
/** As processes of one role are started (package.json), and those of a peer likewise. */
export const ALLOCATOR = { MIMALLOC_PURGE_DELAY: "-1" };
/** As `npm start` starts the process of all roles (`cli/run.mjs`). */
export const ALLOCATOR_OF_ALL = { MIMALLOC_PURGE_DELAY: "60000" };

export interface Store {
  readonly runtime: Runtime;
  /** For a role that is to join it. */
  readonly env: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

/** An embedded Redis as shipped, with the setup of the measurements. */
export async function openStore(isEverysec: boolean): Promise<Store> {
  const dataDir = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const env = {
    DATA_DIR: dataDir,
    EVENTS_PER_DAY: "1000000",
    LOG_HIGH_WATER: String(HIGH_WATER),
    LOG_LEVEL: "error",
    PANEL_TOKEN: "panel-token-of-the-measurements",
    PATH: dirname(Bun.which("redis-server") ?? ""),
  };
  const runtime = await openRuntime(readConfig(env), createLog("error"));
  await applySetupFile(runtime, benchSetup());
  if (isEverysec) await runtime.redis.configSet("appendfsync", "everysec");
  return {
    runtime,
    env,
    async close() {
      await endAll();
      await runtime.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export interface Role {
  readonly name: string;
  readonly pid: number;
  readonly hasEnded: () => boolean;
  /** SIGTERM; waits until it has ended. */
  readonly stop: () => Promise<void>;
}

/** Roles that have not been stopped. */
const running = new Set<Subprocess>();

/** After a failure: what would go on by itself. */
async function endAll(): Promise<void> {
  for (const child of running) {
    child.kill("SIGKILL");
    await child.exited;
  }
}

/**
 * @param file such as `processors/main.ts`
 * @param profiles folder for its CPU profile; absent = none
 */
export function startRole(
  name: string,
  file: string,
  env: Readonly<Record<string, string>>,
  profiles?: string,
): Role {
  const named = ["--cpu-prof-name", `${name}.cpuprofile`];
  const flags = profiles ? ["--cpu-prof", "--cpu-prof-dir", profiles, ...named] : [];
  // Ours read the environment; those of the peer, which are no roles of the product, are reported it.
  const args = [name, JSON.stringify(env)];
  const child: Subprocess = Bun.spawn([process.execPath, ...flags, file, ...args], {
    env: { ...ALLOCATOR, DRAIN_SECONDS: "0", ...env },
    stdio: ["ignore", "ignore", "inherit"],
    onExit: (ended) => void running.delete(ended),
  });
  running.add(child);
  return {
    name,
    pid: child.pid,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

/** @returns the role and its URL, once it answers */
export async function startIngest(
  { env }: Store,
  file = "ingest/main.ts",
  profiles?: string,
): Promise<Role & { readonly url: string }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const role = startRole("ingest", file, { ...env, INGEST_PORT: String(port) }, profiles);
  const answers = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(answers, "ingest is ready", READY_LIMIT_MS);
  return { ...role, url };
}

/** CPU seconds of every process so far, and of Redis without its children. */
export async function cpuSeconds(
  redis: Redis,
  roles: readonly Role[],
): Promise<Map<string, number>> {
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1]);
  const used = new Map<string, number>();
  for (const { name, pid } of [{ name: "redis", pid: redisPid }, ...roles]) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    used.set(name, (used.get(name) ?? 0) + ticks / TICKS_PER_SECOND);
  }
  return used;
}

/** Microseconds an event, by role. */
export type Costs = Readonly<Record<string, number>>;

export function costsBetween(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  events: number,
): Costs {
  return Object.fromEntries(
    [...after].map(([name, seconds]) => [
      name,
      ((seconds - (before.get(name) ?? 0)) * 1e6) / events,
    ]),
  );
}

export function totalOf(costs: Costs): number {
  return Object.values(costs).reduce((sum, us) => sum + us, 0);
}

export function costsText(costs: Costs): string {
  const parts = Object.entries(costs).map(([name, us]) => `${name} ${us.toFixed(1)}`);
  const sum = totalOf(costs);
  return `CPU us an event: ${parts.join(", ")}, sum ${sum.toFixed(1)} (${cpus().length} cores)`;
}

/** On standard error: the figures alone go to standard output. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}
