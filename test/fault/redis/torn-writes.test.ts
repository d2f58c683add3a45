/**
 * Invariant 1: what a crash has torn off the end of the append-only file is gone, and does not come back. Redis 7.0 leaves
 * the beginning of a torn transaction there, which the start after the next applies.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { tryLock } from "#core/platform/process/file-lock.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
import { eventually } from "#test/support/eventually.ts";
import { productEnv } from "#test/support/product/product.ts";
import { CUT_TORN_END } from "#test/support/servers/redis-server.ts";

const log = createLog("silent");
/** Ends with status 1 if no server can be started. */
const STARTER = `
  import { createLog } from "#core/platform/process/log.ts";
  import { startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
  const server = await startEmbeddedRedis(process.argv[1], createLog("silent"));
  await server.stop();
`;
/** Its lines look like the end of a transaction. */
const TORN = "EXEC\r\nEXEC\r\n";
const PART = join("appendonlydir", "appendonly.aof.1.incr.aof");
/** Writes two fields by two commands, as one transaction of the append-only file. */
const WRITE_BOTH =
  "redis.call('HSET', KEYS[1], 'one', ARGV[1]) redis.call('HSET', KEYS[1], 'two', ARGV[1])";
const WHOLE = { one: "whole", two: "whole" };

let root: string;
/** What a server has written: a whole transaction, then another one, to be torn. */
let written: string;
let wholeBytes: number;
let bytes: number;

const sizeOf = async (dataDir: string) =>
  (await readFile(join(dataDir, "redis", PART)).catch(() => "")).length;

/** @param work with a server of the folder, which is killed after it */
async function crashAfter<T>(dataDir: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const server = await startEmbeddedRedis(dataDir, log);
  const redis = await connectRedis(server.address, log);
  try {
    return await work(redis);
  } finally {
    const pid = Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1]);
    redis.destroy();
    const stopping = server.stop();
    process.kill(pid, "SIGKILL");
    await stopping;
  }
}

const write = (key: string, value: string) => (redis: Redis) =>
  redis.eval(WRITE_BOTH, { keys: [key], arguments: [value] });
const read = (key: string) => async (redis: Redis) => ({ ...(await redis.hGetAll(key)) });

/** @returns a copy of what was written, whose last bytes are torn off */
async function torn(lost: number): Promise<string> {
  const dataDir = join(root, `lost-${lost}`);
  await mkdir(join(dataDir, "redis"), { recursive: true, mode: 0o700 });
  const files = join("redis", "appendonlydir");
  await cp(join(written, files), join(dataDir, files), { recursive: true });
  await truncate(join(dataDir, "redis", PART), bytes - lost);
  return dataDir;
}

const cut = (dataDir: string) => promisify(execFile)("sh", [CUT_TORN_END, join(dataDir, "redis")]);

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "waybill-torn-"));
  written = join(root, "written");
  await crashAfter(written, async (redis) => {
    // To redis-check-aof a file with such a line is a manifest.
    await write("lines", "\nfile of another kind")(redis);
    await write("key", "whole")(redis);
    wholeBytes = await sizeOf(written);
    await write("key", TORN)(redis);
    bytes = await sizeOf(written);
  });
}, 60_000);

afterAll(() => rm(root, { recursive: true, force: true }));

test("wherever a transaction is torn, none of it stays", async () => {
  expect(bytes).toBeGreaterThan(wholeBytes + 100);
  for (let lost = 1; lost < bytes - wholeBytes; lost += 1) {
    const dataDir = await torn(lost);
    await cut(dataDir);
    expect([lost, await sizeOf(dataDir)]).toEqual([lost, wholeBytes]);
    await rm(dataDir, { recursive: true });
  }
}, 120_000);

test("a file that ends with a whole transaction stays as it is", async () => {
  for (const [lost, left] of [
    [0, bytes],
    [bytes - wholeBytes, wholeBytes],
  ] as const) {
    const dataDir = await torn(lost);
    await cut(dataDir);
    expect(await sizeOf(dataDir)).toBe(left);
    await rm(dataDir, { recursive: true });
  }
});

/** What a power cut leaves on ext4 and xfs, whose files may be longer than what was written to them. */
test("zeros behind a whole transaction or within an unfinished one are cut like a torn write", async () => {
  const torn1 = bytes - wholeBytes;
  for (const [lost, zeros, left] of [
    [0, 12, bytes],
    [0, 4_096, bytes],
    [torn1, 12, wholeBytes],
    [1, 4_096, wholeBytes],
    [3, 12, wholeBytes],
    [30, 5, wholeBytes],
    [60, 4_096, wholeBytes],
    [torn1 - 2, 12, wholeBytes],
  ] as const) {
    const dataDir = await torn(lost);
    const file = join(dataDir, "redis", PART);
    await appendFile(file, Buffer.alloc(zeros));
    await cut(dataDir);
    expect([lost, zeros, await sizeOf(dataDir)]).toEqual([lost, zeros, left]);
    await rm(dataDir, { recursive: true });
  }
}, 120_000);

test("zeros that something follows are left to Redis", async () => {
  const dataDir = await torn(0);
  const file = join(dataDir, "redis", PART);
  await appendFile(file, Buffer.concat([Buffer.alloc(12), Buffer.from("*1"), Buffer.alloc(12)]));
  const { stderr } = await cut(dataDir);
  expect(stderr).toContain("was left as it is");
  expect(await sizeOf(dataDir)).toBe(bytes + 26);
});

const MULTI = "*1\r\n$5\r\nMULTI\r\n";
const PLAIN = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n".repeat(2);

test.each([
  ["of a command before a whole transaction", (whole: string) => whole.replace("*1", "?1")],
  ["of a word before a whole transaction", (whole: string) => whole.replace("MULTI\r", "MULTI?")],
  ["of a length before other writes", () => PLAIN.replace("$3", "$9")],
  ["of a number of words before other writes", () => PLAIN.replace("*3", "*4")],
  ["by an unfinished transaction before a whole one", (whole: string) => `${MULTI}${whole}`],
])("damage %s is left to Redis", async (_, damage) => {
  const dataDir = await torn(0);
  const file = join(dataDir, "redis", PART);
  const content = await readFile(file, "latin1");
  const damaged = content.slice(0, wholeBytes) + damage(content.slice(wholeBytes));
  await writeFile(file, damaged, "latin1");
  const { stderr } = await cut(dataDir);
  expect(stderr).toContain("was left as it is");
  expect(await readFile(file, "latin1")).toBe(damaged);
});

test("the manifest of Redis 8, which has further fields for a part, is read", async () => {
  const dataDir = await torn(3);
  const manifest = join(dataDir, "redis", "appendonlydir", "appendonly.aof.manifest");
  const content = await readFile(manifest, "utf8");
  await writeFile(manifest, content.replace("type i", "type i startoffset 0"));
  await cut(dataDir);
  expect(await sizeOf(dataDir)).toBe(wholeBytes);
});

test("a file that Redis cannot read is refused", async () => {
  const dataDir = await torn(0);
  await appendFile(join(dataDir, "redis", PART), "?");
  const refused = await startEmbeddedRedis(dataDir, log).catch(({ message }: Error) => message);
  expect(refused).toContain("Bad file format");
});

// Within the last command, and between two.
test.each([3, 14, 40])(
  "the embedded Redis without the last %d bytes of a transaction has none of it, ever",
  async (lost) => {
    const dataDir = await torn(lost);
    const first = await crashAfter(dataDir, async (redis) => {
      await write("other", "later")(redis);
      return read("key")(redis);
    });
    expect(first).toEqual(WHOLE);
    expect(await crashAfter(dataDir, read("key"))).toEqual(WHOLE);
    expect(await crashAfter(dataDir, read("other"))).toEqual({ one: "later", two: "later" });
  },
  60_000,
);

function startElsewhere(dataDir: string, env: Readonly<Record<string, string>>) {
  return Bun.spawn([process.execPath, "-e", STARTER, dataDir], {
    env: { ...productEnv(), ...env },
    stderr: "pipe",
  });
}

test("what examines the file keeps servers away, also when the process that started it is killed", async () => {
  const dataDir = await torn(0);
  const folder = join(dataDir, "redis");
  const [bin, begun, end] = [join(root, "bin"), join(root, "begun"), join(root, "end")];
  await mkdir(bin);
  const slow = `#!/bin/sh\ntouch ${begun}\nwhile [ ! -e ${end} ]; do sleep 0.1; done\n`;
  await writeFile(join(bin, "redis-check-aof"), slow, { mode: 0o755 });
  const starter = startElsewhere(dataDir, { PATH: `${bin}:${productEnv()["PATH"]}` });
  await eventually(() => existsSync(begun), "the file is examined");
  starter.kill("SIGKILL");
  await starter.exited;
  const lock = tryLock(folder, "r");
  await writeFile(end, "");
  expect(lock).toBeNull();
  const free = await eventually(() => tryLock(folder, "r"), "it has been examined");
  free.release();
});

test("a file that cannot be examined is left to Redis, which refuses a torn one", async () => {
  const env = { TMPDIR: join(root, "nowhere") };
  expect(await startElsewhere(await torn(0), env).exited).toBe(0);
  const refused = startElsewhere(await torn(3), env);
  expect(await refused.exited).toBe(1);
  expect(await refused.stderr.text()).toContain("Unexpected end of file");
});
