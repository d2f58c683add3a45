/** The roles as processes of their own, two of each, on one store; each of them can be killed and started again. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { DURABLE, redisCommand } from "#test/support/servers/redis-server.ts";
import { openStore, type Store, type StoreKind } from "#test/support/servers/stores.ts";
import { areReady, productEnv, READY_LIMIT_MS } from "./product.ts";

const REDIS = "redis";
/** And the variable of its port. */
const ROLES = {
  ingest: "INGEST_PORT",
  processors: "PROCESSORS_PORT",
  api: "API_PORT",
  panel: "PANEL_PORT",
  analytics: "ANALYTICS_PORT",
} as const;

/** Addresses are those of the first of two. */
export interface Roles {
  readonly ingest: string;
  readonly otherIngest: string;
  readonly api: string;
  readonly panel: string;
  readonly otherPanel: string;
  /** By name. */
  readonly urls: Readonly<Record<string, string>>;
  /** With the embedded ClickHouse. */
  readonly dataDir: string;
  /** Names of everything that can be killed, the store among them. */
  readonly names: readonly string[];
  /** SIGKILL, then a new start; does not wait for readiness. For the store of a cluster: one of its masters. */
  readonly killAndStart: (name: string) => Promise<void>;
  /** SIGTERM, then a new start; does not wait for readiness. @returns the exit status */
  readonly restart: (name: string) => Promise<number | null>;
  readonly ready: () => Promise<void>;
  /** Kills everything; the data stays until the end. */
  readonly halt: () => Promise<void>;
  readonly end: () => Promise<void>;
}

interface Part {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  child: ChildProcess | null;
}

export async function startRoles(
  setup: SetupFile,
  kind: StoreKind,
  env: Readonly<Record<string, string>> = {},
): Promise<Roles> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-roles-"));
  const dataDir = join(folder, "data");
  const setupFile = join(folder, "setup.json");
  await writeFile(setupFile, JSON.stringify(setup));
  const cluster = await openStore(kind);
  const parts = new Map<string, Part>();
  const server = cluster ? null : await singleServer(folder);
  if (server) parts.set(REDIS, server.part);
  const common = { DATA_DIR: dataDir, SETUP_FILE: setupFile, LOG_LEVEL: "error" };
  const urls = await addRoles(parts, {
    ...productEnv(),
    ...common,
    ...(cluster ?? server)?.env,
    ...env,
  });
  const running = runParts(parts);
  const failovers = cluster && oneAfterTheOther(cluster);

  async function ready(): Promise<void> {
    await failovers?.over();
    await eventually(
      async () => {
        running.restartTheFallen();
        return areReady(Object.values(urls));
      },
      "every role is ready",
      READY_LIMIT_MS,
    );
  }

  running.restartTheFallen();
  await ready();
  return {
    ingest: urls["ingest-1"] ?? "",
    otherIngest: urls["ingest-2"] ?? "",
    api: urls["api-1"] ?? "",
    panel: urls["panel-1"] ?? "",
    otherPanel: urls["panel-2"] ?? "",
    urls,
    dataDir,
    names: [...new Set([REDIS, ...parts.keys()])],
    async killAndStart(name) {
      if (name === REDIS && failovers) await failovers.begin();
      else await running.kill(name);
      running.restartTheFallen();
    },
    async restart(name) {
      const status = await running.terminate(name);
      running.restartTheFallen();
      return status;
    },
    ready,
    halt: running.killAll,
    async end() {
      await running.killAll();
      await cluster?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @returns addresses by name */
async function addRoles(
  parts: Map<string, Part>,
  env: Part["env"],
): Promise<Readonly<Record<string, string>>> {
  const urls: Record<string, string> = {};
  for (const [role, portName] of Object.entries(ROLES)) {
    for (const name of [`${role}-1`, `${role}-2`]) {
      const port = await freePort();
      urls[name] = `http://127.0.0.1:${port}`;
      parts.set(name, {
        command: ["bun", `${role}/main.ts`],
        env: { ...env, [portName]: String(port) },
        child: null,
      });
    }
  }
  return urls;
}

async function singleServer(folder: string) {
  const port = String(await freePort());
  const own = ["--port", port, "--bind", "127.0.0.1", "--loglevel", "warning"];
  const command = redisCommand(folder, [...own, ...DURABLE]);
  const part: Part = { command, env: productEnv(), child: null };
  return { part, env: { REDIS_URL: `redis://127.0.0.1:${port}` } };
}

/** The others go on dying while a replica takes over. */
function oneAfterTheOther({ killMaster }: Store) {
  let current = Promise.resolve();
  return {
    async begin() {
      await current;
      current = killMaster();
      // Whoever awaits it next gets its failure, which is unhandled until then.
      current.catch(() => {});
    },
    over: () => current,
  };
}

function runParts(parts: ReadonlyMap<string, Part>) {
  async function end(name: string, signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    const child = parts.get(name)?.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return null;
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    child.kill(signal);
    return ended;
  }
  const kill = (name: string) => end(name, "SIGKILL");

  return {
    kill,
    terminate: (name: string) => end(name, "SIGTERM"),
    killAll: async () => void (await Promise.all([...parts.keys()].map(kill))),
    /** A role that starts while Redis is unavailable ends with status 1; whoever runs it starts it again. */
    restartTheFallen() {
      for (const part of parts.values()) {
        const { child, env } = part;
        if (child && child.exitCode === null && child.signalCode === null) continue;
        const [program = "", ...args] = part.command;
        part.child = spawn(program, args, { env, stdio: "ignore" });
      }
    },
  };
}
