/** A Redis server of its own on a port, which a test brings into trouble, with an operator's connection past the trouble. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { appendFile, mkdtemp, rm } from "node:fs/promises";
import { createConnection, type NetConnectOpts } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "redis";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "./free-port.ts";

const OPERATOR = { username: "operator", password: "of-the-tests" } as const;

export const CUT_TORN_END = "core/platform/redis/embedded/cut-torn-end.sh";
/** Settings that the product relies on. */
export const DURABLE = "--appendonly yes --appendfsync always --aof-load-truncated no".split(" ");

/** Starts the server of a folder, also after a crash, as compose.yaml does. @param settings further ones */
export function redisCommand(
  folder: string,
  settings: readonly string[],
): [program: string, ...args: string[]] {
  return ["sh", CUT_TORN_END, folder, "redis-server", "--dir", folder, "--save", "", ...settings];
}

/** The beginning of a transaction that was never acknowledged. */
const TORN_WRITE =
  "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$4\r\ntorn\r\n$3\r\nyes\r\n*3\r\n$3\r\nSET\r\n$4\r\nto";

export interface TestServerOptions {
  readonly appendfsync?: "always" | "everysec";
  /** Further options of the server, by name. */
  readonly options?: Readonly<Record<string, string>>;
}

export interface RedisServer {
  /** What REDIS_URL takes. */
  readonly url: string;
  readonly port: number;
  /** A command of a user who may do everything, whatever is done to the default user. */
  readonly send: (...command: string[]) => Promise<unknown>;
  /** Keeps it busy with a script, on a connection of its own, until `SCRIPT KILL`. */
  readonly keepBusy: () => void;
  /** Starts it again; waits until it has loaded its data, or has ended. @param fileLimitKiB as large as its files may grow: a full disk */
  readonly start: (fileLimitKiB?: number) => Promise<void>;
  /** SIGKILL; waits until it is gone. */
  readonly kill: () => Promise<void>;
  /** Of a server that was killed: its append-only file ends in the middle of a write, as after a power cut. */
  readonly tearFile: () => Promise<void>;
  /** SIGSTOP: it answers nothing, and its connections stay; until `thaw`. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  /** Exit status once it has ended by itself; null before, or when it was killed. */
  readonly status: () => number | null;
  readonly stop: () => Promise<void>;
}

export async function startRedisServer({
  appendfsync = "always",
  options = {},
}: TestServerOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-redis-"));
  const port = await freePort();
  const all: Record<string, string> = {
    port: String(port),
    bind: "127.0.0.1",
    dir: folder,
    save: "",
    appendonly: "yes",
    appendfsync,
    "aof-load-truncated": "no",
    logfile: join(folder, "redis.log"),
    ...options,
  };
  const user = ["--user", OPERATOR.username, "on", `>${OPERATOR.password}`, "~*", "&*", "+@all"];
  const args = [...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]), ...user];
  let child: ChildProcess | null = null;
  const connection = () => {
    const client = createClient({ url: `redis://127.0.0.1:${port}`, ...OPERATOR });
    client.on("error", () => {});
    return client;
  };
  const [operator, other] = [connection(), connection()];

  async function start(fileLimitKiB?: number): Promise<void> {
    // A write past the limit fails as on a full disk where the signal of the limit is ignored.
    const limit = fileLimitKiB === undefined ? "" : `trap '' XFSZ; ulimit -S -f ${fileLimitKiB};`;
    const command = `${limit} exec sh ${CUT_TORN_END} "$0" redis-server "$@"`;
    child = spawn("bash", ["-c", command, folder, ...args], { stdio: "ignore" });
    await eventually(
      async () => child?.exitCode !== null || (await hasLoaded({ port, host: "127.0.0.1" })),
      "the server has loaded its data",
    );
  }

  async function kill(): Promise<void> {
    const ending = child;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once("exit", resolve));
    ending.kill("SIGKILL");
    await ended;
  }

  await start();
  await Promise.all([operator.connect(), other.connect()]);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    send: (...command) => operator.sendCommand(command),
    keepBusy: () => void other.eval("while true do end").catch(() => {}),
    start,
    kill,
    async tearFile() {
      // The kill itself may have torn a write, and a second tear after it would be other damage.
      await promisify(execFile)("sh", [CUT_TORN_END, folder]);
      const files = [...new Bun.Glob("appendonlydir/*.incr.aof").scanSync({ cwd: folder })];
      // While the file is rewritten there are two, and only the last one is written to.
      const [last = ""] = files.toSorted((one, other) => numberOf(other) - numberOf(one));
      await appendFile(join(folder, last), TORN_WRITE);
    },
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
    status: () => child?.exitCode ?? null,
    async stop() {
      operator.destroy();
      other.destroy();
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** As in `appendonly.aof.2.incr.aof`. */
function numberOf(file: string): number {
  return Number(/\.(\d+)\.incr\.aof$/.exec(file)?.[1] ?? 0);
}

/** Whether a server answers and has loaded its data. It listens before it loads, and refuses commands until it has. */
export function hasLoaded(address: NetConnectOpts): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = createConnection(address, () => socket.write("PING\r\n"));
  socket.on("data", (answer) => resolve(!answer.toString().startsWith("-LOADING")));
  socket.on("error", () => resolve(false));
  socket.on("close", () => resolve(false));
  return promise.finally(() => socket.destroy());
}
