/** What was erased leaves the append-only file of the embedded Redis within a day, whoever is killed in between. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { type EmbeddedRedis, startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
import {
  erasing,
  isFileRewriteMarked,
  openFileRewrites,
  REWRITE_AFTER_MS,
} from "#core/platform/redis/embedded/file-rewrite.ts";
import { FILE_REWRITE_KEY } from "#core/platform/redis/keys.ts";
import { eventually } from "#test/support/eventually.ts";

const SECRET = "Via Segreta 77, Mario Rossi";
const NOW_MS = Date.UTC(2030, 0, 1);

let folder: string;
let embedded: EmbeddedRedis;
let redis: Redis;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-rewrite-"));
  embedded = await startEmbeddedRedis(folder, createLog("silent"));
  redis = await connectRedis(embedded.address, createLog("silent"));
});
afterAll(async () => {
  redis.destroy();
  await embedded.stop();
  await rm(folder, { recursive: true, force: true });
});

async function isInFiles(text: string): Promise<boolean> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((one) => one.isFile());
  const read = (name: string) => readFile(name).catch(() => Buffer.alloc(0));
  const texts = await Promise.all(files.map((one) => read(join(one.parentPath, one.name))));
  return texts.some((content) => content.includes(text));
}

async function erase(key: string): Promise<void> {
  await redis.set(key, `${SECRET} ${key}`);
  await erasing(redis, NOW_MS, () => redis.del(key));
}

const isMarked = () => isFileRewriteMarked(redis);

test("an erasure is marked before it begins, so that a process which dies in it leaves the mark, and again once it is done", async () => {
  const latest = () => redis.hGet(FILE_REWRITE_KEY, "latest");
  await redis.del(FILE_REWRITE_KEY);
  const dying = erasing(redis, NOW_MS, async () => {
    expect(await isMarked()).toBe(true);
    throw new Error("it dies");
  });
  await expect(dying).rejects.toThrow("it dies");
  expect(await isMarked()).toBe(true);
  const before = await erasing(redis, NOW_MS, latest);
  expect(await latest()).not.toBe(before);
  expect(await redis.hGet(FILE_REWRITE_KEY, "since")).toBe(String(NOW_MS));
  await redis.del(FILE_REWRITE_KEY);
});

async function until(look: (nowMs: number) => Promise<void>, nowMs: number): Promise<void> {
  await eventually(async () => {
    await look(nowMs);
    return !(await isMarked());
  }, "the file has been rewritten");
}

test("not before the wait is over, since others follow, and then for all of them at once", async () => {
  await erase("first");
  await erase("second");
  const look = openFileRewrites(redis);
  await look(NOW_MS + REWRITE_AFTER_MS - 1);
  await look(NOW_MS + REWRITE_AFTER_MS - 1);
  expect([await isInFiles(SECRET), await isMarked()]).toEqual([true, true]);
  await until(look, NOW_MS + REWRITE_AFTER_MS);
  await eventually(async () => !(await isInFiles(SECRET)), "the old files are gone");
  expect(await redis.exists(FILE_REWRITE_KEY)).toBe(1);
  expect(await redis.hExists(FILE_REWRITE_KEY, "since")).toBe(0);
});

test("an erasure after the rewrite was asked for has one of its own", async () => {
  await erase("third");
  const look = openFileRewrites(redis);
  await look(NOW_MS + REWRITE_AFTER_MS);
  await erase("fourth");
  // The first rewrite has ended; the mark stays for what came after its beginning.
  await eventually(async () => {
    await look(NOW_MS + REWRITE_AFTER_MS);
    return (await redis.hGet(FILE_REWRITE_KEY, "since")) === String(NOW_MS + REWRITE_AFTER_MS);
  }, "the first rewrite has ended");
  expect(await isMarked()).toBe(true);
  await until(look, NOW_MS + 2 * REWRITE_AFTER_MS);
  await eventually(async () => !(await isInFiles(SECRET)), "the old files are gone");
});

test("a process that is killed after it has asked leaves the mark, and the next one asks again", async () => {
  await erase("fifth");
  await openFileRewrites(redis)(NOW_MS + REWRITE_AFTER_MS);
  expect(await isMarked()).toBe(true);
  await until(openFileRewrites(redis), NOW_MS + REWRITE_AFTER_MS);
  await eventually(async () => !(await isInFiles(SECRET)), "the old files are gone");
});
