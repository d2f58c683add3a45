/** The store's layout: migrated forward by whoever starts first, once, whatever is killed; never used by a version that is too old. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { keyUsers } from "#core/configuration/store/keyring.ts";
import {
  checkLayout,
  LAYOUT,
  migrateStore,
  OLD_PROCESSES_LIMIT_MS,
} from "#core/configuration/store/layout.ts";
import { LayoutRefused } from "#core/configuration/store/layout-refused.ts";
import { MIGRATIONS, type Migration } from "#core/configuration/store/migrations.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectCluster, connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { companyTag, KEY_USERS_KEY, KEYRING_KEY, LAYOUT_KEY } from "#core/platform/redis/keys.ts";
import { eventually } from "#test/support/eventually.ts";
import { PANEL_TOKEN, productEnv } from "#test/support/product/product.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import { startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";
import { STORES } from "#test/support/servers/stores.ts";

/** Of the migrations here. */
const PARTITIONS = 16;
const log = createLog("silent");
const numberKey = (n: number) => `${companyTag(n)}:a-number`;

/** Adds one to a number of every partition, a step each: done twice, it would show. */
function adding(version: number, oldest = version - 1): Migration {
  return {
    version,
    oldest,
    async step(redis, cursor) {
      const n = Number(cursor || 0);
      const key = numberKey(n);
      // A step may be repeated: the number says whether it has been done.
      if ((await redis.hGet(key, "layout")) !== String(version)) {
        await redis.multi().hIncrBy(key, "n", 1).hSet(key, "layout", String(version)).exec();
      }
      return n + 1 < PARTITIONS ? String(n + 1) : null;
    },
  };
}

/** A process that takes its time at partition 5, until it is killed. */
const SLOW_PROCESS = `
  import { createLog } from "#core/platform/process/log.ts";
  import { connectCluster, connectRedis } from "#core/platform/redis/client.ts";
  import { migrateStore } from "#core/configuration/store/layout.ts";
  const [, urls] = process.argv;
  /** Of the migrations here. */
const PARTITIONS = 16;
const log = createLog("silent");
  const redis = urls.includes(",") ? await connectCluster(urls.split(","), log) : await connectRedis(urls, log);
  await migrateStore(redis, log, [{
    version: 2,
    oldest: 1,
    async step(store, cursor) {
      const n = Number(cursor || 0);
      if (n === 5) {
        process.stdout.write("at 5\\n");
        await new Promise(() => {});
      }
      await store.multi().hIncrBy("{k" + n + "}:a-number", "n", 1).hSet("{k" + n + "}:a-number", "layout", "2").exec();
      return String(n + 1);
    },
  }]);
`;

describe.each(STORES)("the layout of %s", (kind) => {
  let urls: string;
  let redis: Redis;
  let empty: () => Promise<void>;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    if (kind === "one Redis server") {
      const server = await startTestRedis();
      redis = await connectRedis(server.address, log);
      urls = server.address;
      empty = async () => void (await redis.flushAll());
      stop = server.stop;
    } else {
      const cluster = await startTestCluster();
      redis = await connectCluster(cluster.urls.split(","), log);
      urls = cluster.urls;
      empty = async () => {
        for (let n = 0; n < PARTITIONS; n += 1) await redis.del(numberKey(n));
        for (const key of [LAYOUT_KEY, KEYRING_KEY, KEY_USERS_KEY]) await redis.del(key);
      };
      stop = cluster.stop;
    }
  });

  /** A store that an earlier version has used, from before layouts were numbered. */
  beforeEach(() => redis.hSet(KEYRING_KEY, "ring", "{}"));
  afterEach(() => empty());

  afterAll(async () => {
    await redis?.close();
    await stop?.();
  });

  const layout = async () => JSON.parse((await redis.hGet(LAYOUT_KEY, "layout")) ?? "{}");
  async function numbers(): Promise<number[]> {
    const found: number[] = [];
    for (let n = 0; n < PARTITIONS; n += 1) found.push(Number(await redis.hGet(numberKey(n), "n")));
    return found;
  }
  const all = (value: number) => Array.from({ length: PARTITIONS }, () => value);

  test("an empty store begins with the layout of whoever starts first, and nothing is migrated", async () => {
    await empty();
    await migrateStore(redis, log, [adding(2), adding(3)]);
    // Its partitions may be others than those of the version before.
    expect(await layout()).toEqual({ version: 3, oldest: 3, cursor: "" });
    expect(await numbers()).toEqual(all(0));
  });

  test("an older store is migrated through every version, once, however many processes start", async () => {
    const starts = Array.from({ length: 5 }, () =>
      migrateStore(redis, log, [adding(2), adding(3)]),
    );
    await Promise.all(starts);
    expect(await numbers()).toEqual(all(2));
    expect(await layout()).toEqual({ version: 3, oldest: 2, cursor: "" });
    await migrateStore(redis, log, [adding(2), adding(3)]);
    expect(await numbers()).toEqual(all(2));
  });

  test("a migration whose process is killed is continued by another one where it stopped", async () => {
    const child = Bun.spawn([process.execPath, "-e", SLOW_PROCESS, urls], { stdout: "pipe" });
    const { value } = await child.stdout.getReader().read();
    expect(Buffer.from(value ?? []).toString()).toBe("at 5\n");
    expect(await layout()).toEqual({ version: 1, oldest: 1, cursor: "5" });
    child.kill("SIGKILL");
    await child.exited;
    const steps: string[] = [];
    const { step, ...rest } = adding(2);
    const watched: Migration = {
      ...rest,
      step(store, cursor) {
        steps.push(cursor);
        return step(store, cursor);
      },
    };
    await Promise.all([migrateStore(redis, log, [watched]), migrateStore(redis, log, [watched])]);
    expect(steps[0]).toBe("5");
    expect(await numbers()).toEqual(all(1));
  }, 300_000);

  test("a step that fails is repeated by the next start, and the lock is free meanwhile", async () => {
    const { step, ...rest } = adding(2);
    const failing: Migration = {
      ...rest,
      step: (store, cursor) => {
        if (cursor === "3") throw new Error("the disk is full");
        return step(store, cursor);
      },
    };
    await expect(migrateStore(redis, log, [failing])).rejects.toThrow("the disk is full");
    await migrateStore(redis, log, [adding(2)]);
    expect(await numbers()).toEqual(all(1));
  });

  test("a version that may share the store with a newer one starts; one that may not is refused with a sentence", async () => {
    await migrateStore(redis, log, [adding(2), adding(3)]);
    await migrateStore(redis, log, [adding(2)]);
    const tooOld = migrateStore(redis, log, []);
    await expect(tooOld).rejects.toThrow(LayoutRefused);
    await expect(tooOld).rejects.toThrow(
      "it needs layout 2 or newer, and this version has layout 1",
    );
    expect(await layout()).toMatchObject({ version: 3 });
  });

  test("a change that running processes cannot follow waits for them, and leaves the store to them if they stay", async () => {
    const old = { process: "machine:17", keyId: "k" };
    await keyUsers(redis, "beat", old);
    const refused = migrateStore(redis, log, [adding(2, 2)], 0);
    await expect(refused).rejects.toThrow("stop machine:17, then start again");
    expect(await layout()).toEqual({ version: 1, oldest: 1, cursor: "" });
    await migrateStore(redis, log, []);

    const waiting = migrateStore(redis, log, [adding(2, 2)]);
    await eventually(async () => (await layout()).oldest === 2, "the migration has been announced");
    // One that had looked before, and is seen only now.
    await expect(checkLayout(redis, [])).rejects.toThrow(LayoutRefused);
    expect(await numbers()).toEqual(all(0));
    await keyUsers(redis, "leave", old);
    await waiting;
    expect(await numbers()).toEqual(all(1));
  });
});

test("migrations are numbered without gaps, and lead to the layout of this version", () => {
  expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, at) => at + 2));
  expect(LAYOUT).toBe(MIGRATIONS.length + 1);
  expect(OLD_PROCESSES_LIMIT_MS).toBe(20_000);
});

test("a role refuses to start on a store that is too new, in one sentence", async () => {
  const server = await startTestRedis();
  const redis = await connectRedis(server.address, log);
  const proxy = await startRedisProxy(server.address);
  await redis.hSet(
    LAYOUT_KEY,
    "layout",
    JSON.stringify({ version: 1_000, oldest: 999, cursor: "" }),
  );
  const child = Bun.spawn([process.execPath, "ingest/main.ts"], {
    env: { ...productEnv(), PANEL_TOKEN, REDIS_URL: proxy.url, INGEST_PORT: "0" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const errors = await new Response(child.stderr).text();
  expect(errors).toStartWith("The store belongs to a newer version of Waybill");
  expect([await child.exited, errors.trim().split("\n").length]).toEqual([1, 1]);
  await proxy.stop();
  await redis.close();
  await server.stop();
});
