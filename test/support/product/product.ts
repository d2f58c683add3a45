/** The product as a process of its own, started and configured as setup-file.md says outside programs do. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { openStore, type StoreKind } from "#test/support/servers/stores.ts";

export const READY_LIMIT_MS = 120_000;
/** Of one request: one that hangs does not use up the whole limit. */
const READY_ASK_MS = 10_000;
const OUTPUT_SHOWN = 4_000;
export const PANEL_TOKEN = "panel-token-of-the-tests";

export interface Product {
  readonly ingest: string;
  readonly api: string;
  readonly panel: string;
  readonly dataDir: string;
  /** Starts the process and waits until every port is ready. */
  readonly start: () => Promise<void>;
  /**
   * SIGKILL to the process, and to its embedded Redis too when asked; waits until they are gone. In a cluster a master is
   * killed instead; waits until its replica has taken over.
   */
  readonly kill: (withRedis: boolean) => Promise<void>;
  /** SIGKILL to the embedded Redis alone, or to a master of the cluster. */
  readonly killRedis: () => Promise<void>;
  /** Of the process. */
  readonly pid: () => number;
  /** Of the cluster: see `Store`. */
  readonly freezeMaster: () => Promise<() => void>;
  /** Of the cluster: see `TestCluster`. */
  readonly moveSlots: (way: "away" | "back") => Promise<number>;
  /** @returns the exit status of the process, once it has ended */
  readonly ended: () => Promise<number | null>;
  /** SIGTERM. @returns exit status and milliseconds it took */
  readonly terminate: () => Promise<{ status: number | null; tookMs: number }>;
  /** What the process has written so far. */
  readonly output: () => string;
  /** The end of the output, and the state of the cluster if there is one; for the message of a failure. */
  readonly state: () => Promise<string>;
  /** Ends what is left and deletes the data. */
  readonly end: () => Promise<void>;
}

/** The environment of this process, the operator's token of the tests and the test clock; a stop does not wait for a drain. */
export function productEnv(): Record<string, string | undefined> {
  return { ...process.env, PANEL_TOKEN, TEST_CLOCK: "1", DRAIN_SECONDS: "0" };
}

/** The product as its own program, without npm in between. */
export const BARE = ["bun", "cli/main.ts", "start", "--quiet"] as const;

/**
 * @param command the program and its arguments, such as `["npm", "start"]`
 */
export async function newProduct(
  command: readonly [string, ...string[]],
  setup: SetupFile,
  env: Readonly<Record<string, string>> = {},
  kind: StoreKind = "one Redis server",
): Promise<Product> {
  const store = await openStore(kind);
  const folder = await mkdtemp(join(tmpdir(), "waybill-product-"));
  const dataDir = join(folder, "data");
  const setupFile = join(folder, "setup.json");
  await writeFile(setupFile, JSON.stringify(setup));
  const [ingest, api, panel] = await Promise.all([freePort(), freePort(), freePort()]);
  const url = (port: number) => `http://127.0.0.1:${port}`;
  let child: ChildProcess | null = null;
  let output = "";

  async function isReady(): Promise<boolean> {
    if (child?.exitCode !== null) throw new Error(`the product ended: ${output.slice(-2_000)}`);
    return areReady([ingest, api, panel].map(url));
  }

  async function kill(withRedis: boolean): Promise<void> {
    child?.kill("SIGKILL");
    await Promise.all([child && ended(child), withRedis && killRedis()]);
  }

  async function killRedis(): Promise<void> {
    if (store) return store.killMaster();
    await killEmbeddedRedis(dataDir);
  }

  async function terminate() {
    const stopping = child;
    if (!stopping) throw new Error("the product was never started");
    const from = performance.now();
    stopping.kill("SIGTERM");
    return { status: await ended(stopping), tookMs: performance.now() - from };
  }

  return {
    ingest: url(ingest),
    api: url(api),
    panel: url(panel),
    dataDir,
    async start() {
      const [program, ...args] = command;
      child = spawn(program, args, {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          ...productEnv(),
          DATA_DIR: dataDir,
          SETUP_FILE: setupFile,
          INGEST_PORT: String(ingest),
          API_PORT: String(api),
          PANEL_PORT: String(panel),
          LOG_LEVEL: "warn",
          ...store?.env,
          ...env,
        },
      });
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (chunk: Buffer) => (output += String(chunk)));
      }
      await eventually(isReady, "every port is ready", READY_LIMIT_MS);
    },
    kill,
    killRedis,
    pid: () => child?.pid ?? 0,
    ended: async () => (child ? ended(child) : null),
    freezeMaster() {
      if (!store) throw new Error("one server has no masters");
      return store.freezeMaster();
    },
    moveSlots(way) {
      if (!store) throw new Error("one server has no slots");
      return store.moveSlots(way);
    },
    terminate,
    output: () => output,
    state: async () => `${output.slice(-OUTPUT_SHOWN)}\n${(await store?.state()) ?? ""}`,
    async end() {
      if (child?.exitCode === null && child.signalCode === null) await terminate();
      await (store ? store.stop() : kill(true));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The bare product, ready. */
export async function startProduct(
  setup: SetupFile,
  env: Readonly<Record<string, string>> = {},
  kind: StoreKind = "one Redis server",
): Promise<Product> {
  const product = await newProduct(BARE, setup, env, kind);
  await product.start().catch(async (error: unknown) => {
    await product.end();
    throw error;
  });
  return product;
}

/** Whether `/readyz` answers 200 at each of the addresses. */
export async function areReady(urls: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(
    urls.map((url) =>
      fetch(`${url}/readyz`, { signal: AbortSignal.timeout(READY_ASK_MS) }).catch(() => null),
    ),
  );
  return answers.every((answer) => answer?.status === 200);
}

async function ended(process: ChildProcess): Promise<number | null> {
  if (process.exitCode !== null || process.signalCode !== null) return process.exitCode;
  return new Promise((resolve) => process.once("exit", resolve));
}

async function killEmbeddedRedis(dataDir: string): Promise<void> {
  const text = await readFile(join(dataDir, "redis", "redis.pid"), "utf8").catch(() => "");
  const pid = Number(text) || null;
  if (pid !== null && signal(pid, "SIGKILL")) {
    await eventually(() => !signal(pid, 0), "the embedded Redis is gone");
  }
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
