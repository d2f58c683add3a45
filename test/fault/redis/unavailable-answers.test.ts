/** What a real Redis answers on its bad days means that the store is unavailable, and nothing else does. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, MultiErrorReply } from "redis";
import { NoAnswer } from "#core/platform/process/group-commit.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis, run, script } from "#core/platform/redis/client.ts";
import { isStoreUnavailable, reasonOf } from "#core/platform/redis/store-unavailable.ts";
import { eventually } from "#test/support/eventually.ts";
import { productEnv } from "#test/support/product/product.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const READY = { isReady: true };
const KEY = "{k0}:one";
const reading = script("#!lua\nreturn redis.call('GET', KEYS[1])");
const writing = script("#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '1')");
/** No header, so that it is refused in the middle. */
const bare = script("redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], '1')");

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await startRedisServer({
    options: { "enable-debug-command": "yes", "busy-reply-threshold": "50" },
  });
  redis = await connectRedis(server.url, createLog("silent"));
  await redis.set(KEY, "text");
});

afterAll(async () => {
  redis.destroy();
  await server.stop();
});

async function failureOf(step: () => Promise<unknown>): Promise<unknown> {
  try {
    await step();
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

/** What reads, writes and transactions fail with, those of scripts too. */
async function reasons(...steps: (() => Promise<unknown>)[]): Promise<(string | null)[]> {
  const errors = await Promise.all(steps.map(failureOf));
  expect(errors.map((error) => isStoreUnavailable(error, READY))).toEqual(steps.map(() => true));
  return [...new Set(errors.map(reasonOf))];
}

const set = () => redis.set(KEY, "1");
const transaction = () => redis.multi().set(KEY, "1").get(KEY).exec();
const readScript = () => run(redis, reading, [KEY], []);
const writeScript = () => run(redis, writing, [KEY], []);
const bareScript = () => run(redis, bare, [KEY], []);

describe("a server that says so", () => {
  test("with a full memory", async () => {
    await server.send("CONFIG", "SET", "maxmemory", "1");
    const found = await reasons(set, transaction, readScript, bareScript);
    expect(found).toEqual(["its memory is full (maxmemory)"]);
    await writeScript();
    await server.send("CONFIG", "SET", "maxmemory", "0");
  });

  test("without a permission, in a script too", async () => {
    await server.send("ACL", "SETUSER", "default", "-set");
    expect(await reasons(set, writeScript, bareScript)).toEqual(["our user lacks a permission"]);
    await server.send("ACL", "SETUSER", "default", "+@all", "resetkeys", "~other:*");
    expect(await reasons(set, transaction, readScript)).toEqual(["our user lacks a permission"]);
    await server.send("ACL", "SETUSER", "default", "allkeys");
  });

  test("when it asks for a password, or for another one", async () => {
    const without = await connectRedis(server.url, createLog("silent"));
    await server.send("CONFIG", "SET", "requirepass", "secret");
    await without.sendCommand(["RESET"]);
    expect(await reasons(() => without.get(KEY))).toEqual(["it asks for a password"]);
    without.destroy();
    const wrong = createClient({
      url: server.url,
      password: "wrong",
      socket: { reconnectStrategy: false },
    });
    wrong.on("error", () => {});
    expect(await reasons(() => wrong.connect())).toEqual(["it refuses our password"]);
    await server.send("CONFIG", "SET", "requirepass", "");
  });

  test("while a script keeps it busy", async () => {
    server.keepBusy();
    const error = await eventually(
      () =>
        redis.get(KEY).then(
          () => null,
          (busy: unknown) => busy,
        ),
      "it is busy",
    );
    expect([reasonOf(error), isStoreUnavailable(error, READY)]).toEqual([
      "it is busy with a script",
      true,
    ]);
    await server.send("SCRIPT", "KILL");
    const isOver = () =>
      redis.get(KEY).then(
        () => true,
        () => false,
      );
    await eventually(isOver, "the script has ended");
  });

  test("as a replica, as one without its master, and as a master without replicas", async () => {
    await server.send("REPLICAOF", "127.0.0.1", "1");
    expect(await reasons(set, transaction, readScript, bareScript)).toEqual([
      "it is a read-only replica",
    ]);
    await server.send("CONFIG", "SET", "replica-serve-stale-data", "no");
    expect(await reasons(() => redis.get(KEY))).toEqual(["it has lost its master"]);
    await server.send("CONFIG", "SET", "replica-serve-stale-data", "yes");
    await server.send("REPLICAOF", "NO", "ONE");
    await server.send("CONFIG", "SET", "min-replicas-to-write", "1");
    expect(await reasons(set, writeScript)).toEqual(["too few replicas are connected"]);
    await server.send("CONFIG", "SET", "min-replicas-to-write", "0");
    const waiting = await connectRedis(server.url, createLog("silent"), {
      wanted: 1,
      isStrict: true,
    });
    const unconfirmed = () => run(waiting, writing, [KEY], []);
    expect(await reasons(unconfirmed)).toEqual([
      "a master has 0 of the 1 replicas that REDIS_WAIT_REPLICAS asks for (REDIS_WAIT_STRICT)",
    ]);
    waiting.destroy();
  });

  test("with too many clients", async () => {
    // Those that are connected stay.
    await server.send("CONFIG", "SET", "maxclients", "1");
    const late = createClient({ url: server.url, socket: { reconnectStrategy: false } });
    late.on("error", () => {});
    const error = await failureOf(() => late.connect());
    expect(isStoreUnavailable(error, READY)).toBe(true);
    await server.send("CONFIG", "SET", "maxclients", "10000");
  });

  test("when it loads its data, and when it is gone", async () => {
    await server.send("CONFIG", "SET", "key-load-delay", "2000");
    await server.send("CONFIG", "SET", "loading-process-events-interval-bytes", "1024");
    for (let n = 0; n < 500; n += 1) await redis.set(`{k0}:${n}`, "x".repeat(100));
    const reload = server.send("DEBUG", "RELOAD");
    const error = await eventually(
      () =>
        redis.get(KEY).then(
          () => null,
          (loading: unknown) => loading,
        ),
      "it loads",
    );
    expect(reasonOf(error)).toBe("it loads its data");
    await reload;
    await server.kill();
    await eventually(() => !redis.isReady, "the connection is gone");
    expect(await reasons(() => redis.get(KEY))).toEqual(["it cannot be reached"]);
    await server.start();
    await eventually(() => redis.isReady, "the connection is back");
  });
});

test("a start on a store that takes no writes ends with a sentence and no stack", async () => {
  await server.send("CONFIG", "SET", "maxmemory", "1");
  const folder = await mkdtemp(join(tmpdir(), "waybill-start-"));
  const role = Bun.spawn(["bun", "ingest/main.ts"], {
    env: { ...productEnv(), REDIS_URL: server.url, DATA_DIR: folder, INGEST_PORT: "0" },
    stdout: "ignore",
    stderr: "pipe",
  });
  const reported = await new Response(role.stderr).text();
  expect([await role.exited, reported.trim().split("\n").at(-1)]).toEqual([
    1,
    "Redis is unavailable: its memory is full (maxmemory)",
  ]);
  expect(reported).not.toContain("    at ");
  await server.send("CONFIG", "SET", "maxmemory", "0");
  await rm(folder, { recursive: true, force: true });
}, 300_000);

describe("a full disk", () => {
  /** As much as the files may hold, KiB. */
  const LIMIT = 64;
  const value = "x".repeat(10_000);

  async function fill(client: Redis): Promise<unknown> {
    return eventually(
      () =>
        client.set(KEY, value).then(
          () => null,
          (error: unknown) => error,
        ),
      "a write fails",
    );
  }

  test("ends a server that makes every write durable, and nothing it has answered is lost", async () => {
    const full = await startRedisServer();
    await full.kill();
    await full.start(LIMIT);
    const client = await connectRedis(full.url, createLog("silent"));
    let [sent, kept] = [0, 0];
    const write = () => {
      sent += 1;
      return client.set("kept", `${sent} ${value}`).then(
        () => (kept = sent),
        () => {},
      );
    };
    await eventually(async () => {
      await write();
      return full.status() === 1;
    }, "the server has ended");
    expect(isStoreUnavailable(await failureOf(() => client.get("kept")), READY)).toBe(true);
    await full.start();
    const read = () => client.get("kept").catch(() => null);
    const found = Number((await eventually(read, "the connection is back")).split(" ", 1));
    expect(kept).toBeGreaterThan(0);
    expect(found).toBeGreaterThanOrEqual(kept);
    expect(found).toBeLessThanOrEqual(sent);
    client.destroy();
    await full.stop();
  });

  test("makes one that syncs every second refuse writes until there is space", async () => {
    const full = await startRedisServer({ appendfsync: "everysec" });
    await full.kill();
    await full.start(LIMIT);
    const client = await connectRedis(full.url, createLog("silent"));
    expect(reasonOf(await fill(client))).toBe("it cannot write to its disk");
    const refused = [() => run(client, reading, [KEY], []), () => run(client, writing, [KEY], [])];
    expect(await reasons(...refused)).toEqual(["it cannot write to its disk"]);
    await client.get(KEY);
    client.destroy();
    await full.stop();
  }, 300_000);
});

describe("a cluster", () => {
  test("whose slots are unassigned, elsewhere, or being migrated", async () => {
    const [one, other] = await Promise.all([clusterNode(), clusterNode()]);
    const client = await connectRedis(one.url, createLog("silent"));
    const slotOf = async (key: string) => String(await one.send("CLUSTER", "KEYSLOT", key));
    expect(await reasons(() => client.get("a"))).toEqual(["a shard of the cluster is unavailable"]);
    await one.send("CLUSTER", "MEET", "127.0.0.1", String(other.port), String(other.bus));
    await eventually(
      async () =>
        String(await one.send("CLUSTER", "NODES"))
          .trim()
          .split("\n").length === 2,
      "the nodes know each other",
    );
    const id = String(await other.send("CLUSTER", "MYID"));
    await one.send("CLUSTER", "ADDSLOTS", await slotOf("a"));
    await other.send("CLUSTER", "ADDSLOTS", await slotOf("b"));
    await eventually(
      async () => /^MOVED/.test(((await failureOf(() => client.get("b"))) as Error).message),
      "one knows the slots of the other",
    );
    const moving = "keys are being moved in the cluster";
    const moved = "keys have moved in the cluster";
    expect(await reasons(() => client.get("b"))).toEqual([moved]);
    const undeclared = script(
      "#!lua\nredis.call('SET', KEYS[1], '1') return redis.call('GET', 'b')",
    );
    expect(await reasons(() => run(client, undeclared, ["a"], []))).toEqual([moved]);
    await one.send("CLUSTER", "SETSLOT", await slotOf("a"), "MIGRATING", id);
    expect(await reasons(() => client.get("{a}missing"))).toEqual([moving]);
    expect(await reasons(() => client.mGet(["a", "{a}missing"]))).toEqual([moving]);
    client.destroy();
    await Promise.all([one.stop(), other.stop()]);
  }, 300_000);
});

async function clusterNode() {
  const bus = await freePort();
  const options = {
    "cluster-enabled": "yes",
    "cluster-port": String(bus),
    "cluster-require-full-coverage": "no",
  };
  return { ...(await startRedisServer({ options })), bus };
}

describe("nothing else means it", () => {
  const isTaken = (error: unknown) => isStoreUnavailable(error, READY);

  test("neither the words of a caller nor a fault of our own, whatever they repeat", async () => {
    const errors = await Promise.all(
      [
        () => redis.lPush(KEY, "1"),
        () => redis.eval("#!lua\nerror('OOM command not allowed')"),
        () => redis.eval("#!lua\nreturn redis.error_reply('ERR reference OOM READONLY LOADING')"),
        () => redis.eval("#!lua\nreturn redis.error_reply('OOMPAH is no code')"),
        () => redis.sendCommand(["NOSUCH", "BUSY", "LOADING"]),
      ].map(failureOf),
    );
    expect(errors.map(isTaken)).toEqual(errors.map(() => false));
    const own = [
      new Error("OOM command not allowed when used memory > 'maxmemory'."),
      new TypeError("READONLY is not a function"),
      "LOADING",
      null,
      { message: "CLUSTERDOWN" },
    ];
    expect(own.map(isTaken)).toEqual(own.map(() => false));
  });

  test("while an error that carries one of the store's does, and any while the connection is unavailable", async () => {
    await server.send("CONFIG", "SET", "maxmemory", "1");
    const full = await failureOf(set);
    await server.send("CONFIG", "SET", "maxmemory", "0");
    const wrong = await failureOf(() => redis.lPush(KEY, "1"));
    expect(
      [
        new AggregateError([wrong, full]),
        new Error("a step failed", { cause: full }),
        new MultiErrorReply(["OK", full] as never, [1]),
        new NoAnswer("late"),
      ].map(isTaken),
    ).toEqual([true, true, true, true]);
    expect(isTaken(new AggregateError([wrong]))).toBe(false);
    expect(isStoreUnavailable(wrong, { isReady: false })).toBe(true);
    const circle = new Error("in a circle");
    circle.cause = circle;
    expect(isTaken(circle)).toBe(false);
  });
});
