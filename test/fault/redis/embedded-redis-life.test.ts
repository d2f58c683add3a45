/**
 * The embedded Redis has one server per folder, whatever happens to its socket, its pid file, its folder or the process
 * that started it: two on one append-only file lose acknowledged writes.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  identityOf,
  preparePrivateFolder,
  SOCKET_PATH_BYTES,
} from "#core/platform/embedded/embedded-folder.ts";
import { serversOf } from "#core/platform/embedded/embedded-program.ts";
import { tryLock } from "#core/platform/process/file-lock.ts";
import { createLog, type Log } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { type EmbeddedRedis, startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
import { REDIS_PROGRAM } from "#core/platform/redis/embedded/embedded-server.ts";
import { eventually } from "#test/support/eventually.ts";

const log = createLog("silent");
/** A starter that is killed leaves its server behind. */
const STARTER = `
  import { createLog } from "#core/platform/process/log.ts";
  import { startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
  const server = await startEmbeddedRedis(process.argv[1], createLog("silent"));
  process.stdout.write(server.address + "\\n");
  process.on("SIGTERM", () => void server.stop().then(() => process.exit(0)));
`;

let root: string;
let dataDir: string;
const clients: Redis[] = [];
const servers: EmbeddedRedis[] = [];
const starters: Bun.Subprocess[] = [];
/** Of links, outside of `root`. */
const folders: string[] = [];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "waybill-life-")));
  dataDir = join(root, "data");
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const starter of starters.splice(0)) {
    starter.kill("SIGKILL");
    await starter.exited;
  }
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  for (const path of [root, ...folders.splice(0)]) await rm(path, { recursive: true, force: true });
});

async function start(folder = dataDir, to = log): Promise<EmbeddedRedis> {
  const server = await startEmbeddedRedis(folder, to);
  servers.push(server);
  return server;
}

async function connect(address: string): Promise<Redis> {
  const client = await connectRedis(address, log);
  clients.push(client);
  return client;
}

/** @returns the process that has started it, to be killed */
async function startElsewhere(folder = dataDir) {
  const starter = Bun.spawn([process.execPath, "-e", STARTER, folder], { stdout: "pipe" });
  starters.push(starter);
  const { value } = await starter.stdout.getReader().read();
  return { starter, address: new TextDecoder().decode(value).trim() };
}

async function killStarter({ starter }: Awaited<ReturnType<typeof startElsewhere>>) {
  starter.kill("SIGKILL");
  await starter.exited;
}

async function pidsOn(folder = dataDir): Promise<number[]> {
  const identity = await identityOf(join(folder, "redis"));
  return identity === null ? [] : serversOf(REDIS_PROGRAM, identity);
}

async function pidOf(redis: Redis): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1]);
}

/** Where an address is a link, the socket is what it leads to. */
const vanish = async (address: string) => rm(await realpath(address));

const messageOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: Error) => error.message,
  );

test("a server whose socket has vanished is ended before another one starts, and no acknowledged write is lost", async () => {
  const left = await startElsewhere();
  const before = await connect(left.address);
  const first = await pidOf(before);
  await killStarter(left);
  await vanish(left.address);
  const writing = writeUntilRefused(before);
  const { address } = await start();
  const written = await writing;
  const after = await connect(address);
  expect(await pidsOn()).toEqual([await pidOf(after)]);
  expect(await pidsOn()).not.toContain(first);
  expect(written).toBeGreaterThan(0);
  expect(await after.lLen("written")).toBeGreaterThanOrEqual(written);
});

test("a server that ends while a start joins it is replaced", async () => {
  const left = await startElsewhere();
  const redis = await connect(left.address);
  await redis.set("kept", "yes");
  const first = await pidOf(redis);
  await killStarter(left);
  // It takes the start's connection, and dies without an answer.
  process.kill(first, "SIGSTOP");
  const starting = start();
  await Bun.sleep(300);
  process.kill(first, "SIGKILL");
  const { address } = await starting;
  expect(await (await connect(address)).get("kept")).toBe("yes");
  expect(await pidsOn()).not.toContain(first);
});

/** @returns how many writes were acknowledged */
async function writeUntilRefused(redis: Redis): Promise<number> {
  for (let written = 0; ; written += 1) {
    const acknowledged = await redis.rPush("written", "x").catch(() => null);
    if (acknowledged === null) return written;
  }
}

test("a process that uses the server recovers it where its socket has vanished", async () => {
  const { address } = await start();
  const redis = await connect(address);
  await redis.set("kept", "yes");
  const first = await pidOf(redis);
  await vanish(address);
  await eventually(async () => {
    const pids = await pidsOn();
    return pids.length === 1 && pids[0] !== first;
  }, "another server runs, alone");
  const after = await connect(address);
  const kept = () => after.get("kept").catch(() => "loading");
  await eventually(async () => (await kept()) !== "loading", "it has loaded its data");
  expect(await kept()).toBe("yes");
});

test.each([
  ["missing", null],
  ["that of another process", String(process.pid)],
  ["no number", "?"],
])("a pid file that is %s misleads nobody", async (_, content) => {
  const left = await startElsewhere();
  const redis = await connect(left.address);
  await redis.set("kept", "yes");
  const first = await pidOf(redis);
  await killStarter(left);
  const pidFile = join(dataDir, "redis", "redis.pid");
  await (content === null ? rm(pidFile) : writeFile(pidFile, content));
  await vanish(left.address);
  const { address } = await start();
  const pids = await pidsOn();
  expect(pids).toHaveLength(1);
  expect(pids).not.toContain(first);
  expect(await (await connect(address)).get("kept")).toBe("yes");
});

test("stopping the server stops no other process that has its number now", async () => {
  const server = await start();
  const redis = await connect(server.address);
  const bystander = Bun.spawn(["sleep", "60"]);
  await writeFile(join(dataDir, "redis", "redis.pid"), String(bystander.pid));
  const pid = await pidOf(redis);
  await server.stop();
  await eventually(() => !isAlive(pid), "the server has ended");
  expect(bystander.killed || bystander.exitCode !== null).toBe(false);
  bystander.kill("SIGKILL");
  await bystander.exited;
  expect(bystander.signalCode).toBe("SIGKILL");
});

test("locks and owners left by processes whose numbers were reused delay nobody", async () => {
  await mkdir(join(dataDir, "redis"), { recursive: true, mode: 0o700 });
  for (const name of ["start.lock", "owner.pid", "owner.lock", "redis.pid"]) {
    await writeFile(join(dataDir, "redis", name), String(process.pid));
  }
  const server = await start();
  await server.stop();
  expect(await pidsOn()).toEqual([]);
});

test("the folder is locked as long as its server lives, though its starter was killed", async () => {
  const left = await startElsewhere();
  await killStarter(left);
  const folder = join(dataDir, "redis");
  expect(tryLock(folder, "r")).toBeNull();
  for (const pid of await pidsOn()) process.kill(pid, "SIGKILL");
  const lock = await eventually(() => tryLock(folder, "r"), "the lock is free");
  lock.release();
});

test("of many starts at once one starts the server and the others join it", async () => {
  const addresses = await Promise.all([
    ...Array.from({ length: 4 }, async () => (await start()).address),
    ...Array.from({ length: 2 }, async () => (await startElsewhere()).address),
  ]);
  expect(new Set(addresses).size).toBe(1);
  expect(await pidsOn()).toHaveLength(1);
});

test("the server ends with the last process that used it, where its starter was killed", async () => {
  const left = await startElsewhere();
  const server = await start();
  const redis = await connect(server.address);
  await killStarter(left);
  expect(await redis.ping()).toBe("PONG");
  await server.stop();
  expect(await pidsOn()).toEqual([]);
});

test("a folder moved while in use takes its server along, and nobody starts an empty one in its old place", async () => {
  const reasons: string[] = [];
  const listening: Log = Object.assign(Object.create(log), {
    error: ({ reason }: { reason?: string }) => void reasons.push(reason ?? ""),
  });
  const { address } = await start(dataDir, listening);
  const redis = await connect(address);
  await redis.set("kept", "yes");
  const pid = await pidOf(redis);
  const moved = join(root, "moved");
  await rename(dataDir, moved);
  const there = await start(moved);
  const client = await connect(there.address);
  expect(await pidOf(client)).toBe(pid);
  expect(await client.get("kept")).toBe("yes");
  await client.set("kept", "still");
  await eventually(() => reasons.some((text) => text.includes("was moved")), "it is noticed");
  expect(await stat(dataDir).catch(() => null)).toBeNull();
  expect(await redis.get("kept")).toBe("still");
});

test("a copy of the folder taken while in use has a server of its own", async () => {
  const { address } = await start();
  const redis = await connect(address);
  await redis.set("kept", "yes");
  const copy = join(root, "copy");
  await cp(dataDir, copy, { recursive: true, filter: (path) => !path.endsWith(".sock") });
  await writeFile(join(copy, "redis", "redis.pid"), String(await pidOf(redis)));
  const other = await connect((await start(copy)).address);
  expect(await other.get("kept")).toBe("yes");
  await other.set("kept", "no");
  expect(await redis.get("kept")).toBe("yes");
  expect(await pidOf(other)).not.toBe(await pidOf(redis));
});

/** A folder whose socket's path has this many bytes. */
async function folderOfPathLength(bytes: number): Promise<string> {
  const rest = bytes - Buffer.byteLength(join(root, "x", "redis", "redis.sock")) + 1;
  const folder = join(root, "x".repeat(rest));
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

test(`the socket stands in its folder where its path has ${SOCKET_PATH_BYTES} bytes, and is reached by a link of ours where it has one more`, async () => {
  const short = await folderOfPathLength(SOCKET_PATH_BYTES);
  const { address } = await start(short);
  expect(address).toBe(join(short, "redis", "redis.sock"));
  expect(await (await connect(address)).ping()).toBe("PONG");

  const long = await folderOfPathLength(SOCKET_PATH_BYTES + 1);
  const link = (await start(long)).address;
  expect(Buffer.byteLength(link)).toBeLessThanOrEqual(SOCKET_PATH_BYTES);
  expect(await realpath(link)).toBe(join(long, "redis", "redis.sock"));
  expect((await stat(join(link, ".."))).mode & 0o777).toBe(0o700);
  const pid = await pidOf(await connect(link));
  // Cleaners of temporary folders take the link, which costs the server nothing.
  await rm(join(link, ".."), { recursive: true });
  await eventually(() => stat(link).catch(() => null), "the link is there again");
  expect(await pidOf(await connect(link))).toBe(pid);
  folders.push(join(link, ".."));
});

test("a folder for the link that somebody else has prepared is refused with a sentence", async () => {
  const long = await folderOfPathLength(SOCKET_PATH_BYTES + 1);
  const first = await start(long);
  const folder = join(first.address, "..");
  folders.push(folder);
  await first.stop();
  await chmod(folder, 0o755);
  expect(await messageOf(start(long))).toContain(`The folder ${folder} is open to other users`);
  await rm(folder, { recursive: true });
  await symlink(root, folder);
  expect(await messageOf(start(long))).toContain(`The folder ${folder} is a link`);
  await rm(folder);
  await writeFile(folder, "");
  expect(await messageOf(start(long))).toContain(`The folder ${folder} is no folder`);
});

const isRoot = process.getuid?.() === 0;

/** A folder of another user: one that root gives away, or root's own. */
async function foreignFolder(path: string): Promise<string> {
  if (!isRoot) return "/";
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chown(path, 12_345, 12_345);
  return path;
}

test("a folder of another user is refused with a sentence", async () => {
  const folder = await foreignFolder(join(dataDir, "redis"));
  expect(await messageOf(preparePrivateFolder(folder, "Redis"))).toContain("is another user's");
  if (isRoot) expect(await messageOf(start())).toContain(`${folder} is another user's`);
});

test("a folder that others may write to is closed to them before it is used", async () => {
  const folder = join(dataDir, "redis");
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o777);
  await start();
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});

test("a server at our socket that keeps other files is refused with a sentence", async () => {
  const folder = join(dataDir, "redis");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const socket = join(folder, "redis.sock");
  const stranger = Bun.spawn(
    ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", root, "--save", ""],
    { stdout: "ignore" },
  );
  await eventually(() => stat(socket).catch(() => null), "the other server listens");
  expect(await messageOf(start())).toContain(`${socket} is not the Redis of that folder`);
  stranger.kill("SIGKILL");
  await stranger.exited;
});

test("a DATA_DIR that cannot be written to is refused with a sentence", async () => {
  await writeFile(dataDir, "a file");
  const message = await messageOf(start());
  expect(message).toContain(`The embedded Redis cannot keep its files in ${dataDir}/redis`);
  expect(message).toContain("Set DATA_DIR");
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
