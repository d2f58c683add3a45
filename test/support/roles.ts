/** The roles as processes of their own on one Redis server, each of which can be killed and started again. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SetupFile } from "#core/domain/setup.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { productEnv } from "./product.ts";

const READY_LIMIT_MS = 60_000;
const REDIS = "redis";

export interface Roles {
  readonly ingest: string;
  readonly api: string;
  readonly panel: string;
  /** Names of everything that can be killed, the Redis server among them. */
  readonly names: readonly string[];
  /** SIGKILL, then a new start; does not wait for readiness. */
  readonly killAndStart: (name: string) => Promise<void>;
  readonly ready: () => Promise<void>;
  readonly end: () => Promise<void>;
}

interface Part {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  child: ChildProcess | null;
}

/** Two processes each of ingest, processors and api, one each of panel and analytics. */
export async function startRoles(setup: SetupFile): Promise<Roles> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-roles-"));
  const setupFile = join(folder, "setup.json");
  await writeFile(setupFile, JSON.stringify(setup));
  const ports = await Promise.all(Array.from({ length: 6 }, freePort));
  const [redis, ingest, spare, api, spareApi, panel] = ports;
  const env = {
    ...productEnv(),
    DATA_DIR: join(folder, "data"),
    SETUP_FILE: setupFile,
    REDIS_URL: `redis://127.0.0.1:${redis}`,
    LOG_LEVEL: "error",
  };
  const server = ["--port", String(redis), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning"];
  const role = (name: string, more: Record<string, string> = {}): Part => ({
    command: ["bun", `${name}/main.ts`],
    env: { ...env, ...more },
    child: null,
  });
  const parts = new Map<string, Part>([
    [REDIS, { command: ["redis-server", ...server, ...durable], env, child: null }],
    ["ingest-1", role("ingest", { INGEST_PORT: String(ingest) })],
    ["ingest-2", role("ingest", { INGEST_PORT: String(spare) })],
    ["processors-1", role("processors")],
    ["processors-2", role("processors")],
    ["api-1", role("api", { API_PORT: String(api) })],
    ["api-2", role("api", { API_PORT: String(spareApi) })],
    ["panel", role("panel", { PANEL_PORT: String(panel) })],
    ["analytics", role("analytics")],
  ]);

  function start(name: string): void {
    const part = parts.get(name);
    const [program = "", ...args] = part?.command ?? [];
    if (part) part.child = spawn(program, args, { env: part.env, stdio: "ignore" });
  }

  async function kill(name: string): Promise<void> {
    const child = parts.get(name)?.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async function ready(): Promise<void> {
    const urls = [ingest, spare, api, spareApi, panel].map(
      (port) => `http://127.0.0.1:${port}/readyz`,
    );
    await eventually(
      async () => {
        restartTheFallen();
        const answers = await Promise.all(urls.map((url) => fetch(url).catch(() => null)));
        return answers.every((answer) => answer?.status === 200);
      },
      "every role is ready",
      READY_LIMIT_MS,
    );
  }

  /** A role that starts while Redis is away ends with status 1; whoever runs it starts it again. */
  function restartTheFallen(): void {
    for (const [name, { child }] of parts) {
      if (child && (child.exitCode !== null || child.signalCode !== null)) start(name);
    }
  }

  for (const name of parts.keys()) start(name);
  await ready();
  return {
    ingest: `http://127.0.0.1:${ingest}`,
    api: `http://127.0.0.1:${api}`,
    panel: `http://127.0.0.1:${panel}`,
    names: [...parts.keys()],
    async killAndStart(name) {
      await kill(name);
      restartTheFallen();
    },
    ready,
    async end() {
      await Promise.all([...parts.keys()].map(kill));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
