/**
 * Design, "Part of the store away is part of the service away": with one shard of a cluster unavailable, consumers go on with all partitions
 * that they reach, ingest serves all messages that do not need it, and what waits for it holds up nothing.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { entityKey } from "#core/configuration/store/entities.ts";
import { createLive } from "#core/configuration/store/live.ts";
import { REDIS_CODES_OF_CLUSTERS } from "#core/doctor/redis-doctor.ts";
import type { Finding } from "#core/doctor/store-doctor.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { type LogItem, startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { mastersOf } from "#core/platform/redis/client.ts";
import { CONNECT_WAIT_MS } from "#core/platform/redis/connect-wait.ts";
import {
  ARCHIVER_STATUS_KEY,
  changeLogs,
  companyKeys,
  companyPartition,
  companyTag,
  eventLogs,
  partitionTags,
  SYSTEM_KEY,
  shipmentPartition,
} from "#core/platform/redis/keys.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

const LIMIT_MS = 60_000;

let cluster: TestCluster;
let runtime: TestRuntime;
let recover = async () => {};
/** By key. */
let shards: ReadonlyMap<string, number>;

beforeAll(async () => {
  cluster = await startTestCluster();
  const given = { address: "/", stop: cluster.stop };
  runtime = await openTestRuntime(testSetup(), { REDIS_CLUSTER_URLS: cluster.urls }, given);
  const keys = [...eventLogs(), ...changeLogs()];
  const places = keys.map(async (key) => [key, await cluster.shardOf(key)] as const);
  shards = new Map(await Promise.all(places));
}, 120_000);
afterEach(async () => {
  await recover();
  recover = async () => {};
});
afterAll(() => runtime.end(), 60_000);

async function lose(tag: string): Promise<void> {
  recover = await cluster.loseShard(tag);
}

async function bringBack(): Promise<void> {
  await recover();
  recover = async () => {};
}

test("a consumer goes on in the partitions of the other shards, and does the rest once the shard is back, each entry once", async () => {
  const { redis, log } = runtime;
  const done = new Map<string, number>();
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "notify",
    batch: 10,
    async handler(entries: readonly LogItem[]) {
      // As handlers do it: they read in the partition of their entries.
      await Promise.all(entries.map(({ key }) => redis.exists(key)));
      for (const { fields } of entries) {
        const name = fields["n"] ?? "";
        done.set(name, (done.get(name) ?? 0) + 1);
      }
      return [];
    },
  });
  const add = async (round: string, keys: readonly string[]) => {
    for (const key of keys) await redis.xAdd(key, "*", { s: "1", n: `${round} ${key}` });
  };
  const areDone = (round: string, keys: readonly string[]) =>
    eventually(() => keys.every((key) => done.has(`${round} ${key}`)), `round ${round}`, LIMIT_MS);
  const lost = shards.get(changeLogs()[1] ?? "");
  const there = changeLogs().filter((key) => shards.get(key) !== lost);
  const unavailable = changeLogs().filter((key) => shards.get(key) === lost);
  expect([there.length > 0, unavailable.length > 0]).toEqual([true, true]);
  await add("before", changeLogs());
  await areDone("before", changeLogs());
  await lose(companyTag(1));
  for (const round of ["first", "second", "third"]) {
    await add(round, there);
    await areDone(round, there);
  }
  expect(consumer.isRunning()).toBe(true);
  await bringBack();
  await eventually(
    () =>
      add("after", unavailable).then(
        () => true,
        () => false,
      ),
    "written",
    LIMIT_MS,
  );
  await areDone(
    "after",
    changeLogs().filter((key) => unavailable.includes(key)),
  );
  await consumer.stop();
  // An entry whose acknowledgement was lost may be handled again; those of the other shards had none to lose.
  const often = [...done].filter(
    ([name, times]) => times > 1 && there.some((key) => name.endsWith(key)),
  );
  expect(often).toEqual([]);
}, 300_000);

test("events of shipments in an unavailable shard wait, hold up none of the others, and are applied once the shard is back", async () => {
  const { redis, log, live } = runtime;
  const acme = await addShipment(runtime, "AWAY-1");
  const channel = [...live.configuration().channels.values()].find(
    ({ companyId }) =>
      shards.get(companyKeys(companyPartition(companyId)).changes) !==
      shards.get(companyKeys(shipmentPartition(acme)).changes),
  );
  const beta = await addShipment(runtime, "AWAY-2", { channel: channel?.code ?? "" });
  const lost = shards.get(companyKeys(shipmentPartition(acme)).changes);
  const eventLog = eventLogs().find((key) => shards.get(key) !== lost) ?? "";
  const trackEvents = trackHandler({ redis, live, eventsPerDay: 1_000 });
  const consumer = startConsumer({
    redis,
    log,
    source: "event",
    group: "track",
    batch: 100,
    handler: trackEvents,
  });
  const send = async (shipmentId: number, trackingNumber: string) => {
    const one = event({ trackingNumber });
    const logged = {
      shipmentId,
      courier: "GLS_ITA",
      event: one,
      factKey: one.eventId.slice(-16),
      receivedAtMs: live.now(),
      messageIndex: 0,
    };
    await redis.xAdd(eventLog, "*", { e: encodeLoggedEvent(logged) });
  };
  const facts = async (id: number) => (await readShipments(redis, [id]))[0]?.state.keys.length;
  await lose(companyTag(shipmentPartition(acme)));
  for (let n = 1; n <= 3; n += 1) {
    await send(acme, "AWAY-1");
    await send(beta, "AWAY-2");
    await eventually(async () => (await facts(beta)) === n, "it is applied", LIMIT_MS);
  }
  const waiting = async () =>
    (await readLags(redis).catch(() => [])).find(({ group }) => group === "track")?.entries;
  await bringBack();
  await eventually(async () => (await facts(acme)) === 3, "all are applied", LIMIT_MS);
  await eventually(async () => (await waiting()) === 0, "none waits any more", LIMIT_MS);
  expect(await redis.xLen(`${eventLog}:dead`)).toBe(0);
  await consumer.stop();
}, 300_000);

test("a command to an unavailable shard fails after half a second at most, and those after it at once", async () => {
  const { redis } = runtime;
  await lose(companyTag(1));
  const key = `${companyTag(1)}key`;
  const fails = async () => {
    const error = await redis.get(key).catch((reason: unknown) => reason);
    expect(isShardUnavailable(error, redis)).toBe(true);
  };
  await fails();
  const atMs = performance.now();
  for (let n = 0; n < 20; n += 1) await fails();
  // Of itself the client lets each of them wait for a connection, for seconds.
  expect(performance.now() - atMs).toBeLessThan(20 * CONNECT_WAIT_MS);
  expect(mastersOf(redis).length).toBeGreaterThan(0);
}, 300_000);

test("what is changed in the configuration counts while another shard is unavailable, and the rest once that is back", async () => {
  const { redis, live } = runtime;
  const entity = (id: number) => entityKey("channel", String(id));
  const own = [...live.configuration().channels.keys()];
  const places = [SYSTEM_KEY, ...own.map(entity)].map((key) => cluster.shardOf(key));
  const [systems, ...shardsOf] = await Promise.all(places);
  const lostAt = shardsOf.findIndex((shard) => shard !== systems);
  const changedAt = shardsOf.findIndex((shard) => shard !== shardsOf[lostAt]);
  const [lost = 0, changed = 0] = [own[lostAt], own[changedAt]];
  const isActive = (id: number) => live.configuration().channels.get(id)?.active;
  const setActive = (id: number, value: "0" | "1") => redis.hSet(entity(id), "active", value);
  const announce = () => redis.hIncrBy(SYSTEM_KEY, "version", 1);
  // Not announced yet when its shard goes.
  await setActive(lost, "0");
  await lose(entity(lost));
  await setActive(changed, "0");
  const version = await announce();
  await eventually(async () => {
    await live.refresh();
    return isActive(changed) === false;
  }, "it counts");
  expect(isActive(lost)).toBe(true);
  expect(live.configuration().version).toBeLessThan(version);
  await bringBack();
  await eventually(
    async () => (await live.refresh()).version === version && isActive(lost) === false,
    "the rest counts",
    LIMIT_MS,
  );
  await Promise.all([lost, changed].map((id) => setActive(id, "1")));
  await announce();
}, 300_000);

test("without the shard of its version the configuration counts as it was last read, for a limited time", async () => {
  const { redis, live } = runtime;
  const shortly = await createLive(redis, false, "", 1);
  const version = live.configuration().version;
  await lose(SYSTEM_KEY);
  expect((await live.refresh()).version).toBe(version);
  const error = await shortly.refresh().catch((reason: unknown) => reason);
  expect(isShardUnavailable(error, redis)).toBe(true);
  await bringBack();
  await eventually(
    () =>
      shortly.refresh().then(
        () => true,
        () => false,
      ),
    "it is read",
    LIMIT_MS,
  );
}, 300_000);

function waybill(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const own = { REDIS_CLUSTER_URLS: cluster.urls, ...env };
  return outcomeOf(startCommand(["bun", "cli/main.ts", ...args], own));
}

/** As the doctor tells it: partitions by master. */
function countsIn(found: string): Map<string, number> {
  const places = [...found.matchAll(/(\S+) (\d+) \(/g)];
  return new Map(places.map(([, place = "", count]) => [place, Number(count)]));
}

test("`waybill slots` lists what the other masters have and names the one that is away, and plans no placement; the doctor tells both too", async () => {
  const placed = await Promise.all(
    partitionTags().map(async (tag) => [tag, await cluster.shardOf(tag)] as const),
  );
  const gone = await cluster.shardOf(companyTag(1));
  const lost = placed.flatMap(([tag, shard]) => (shard === gone ? [tag] : []));
  await lose(companyTag(1));
  const listed = await waybill(["slots", "--json"]);
  const loads: { tag: string; bytes: number | null; master: string }[] = JSON.parse(listed.output);
  expect(loads.map(({ tag }) => tag)).toEqual(partitionTags());
  const unknown = loads.filter(({ bytes }) => bytes === null);
  expect([listed.status, unknown.map(({ tag }) => tag)]).toEqual([1, lost]);
  const text = await waybill(["slots"]);
  expect(text.output).toContain(`${unknown[0]?.master} does not answer`);
  const refused = await waybill(["slots", "--masters", "2", "--apply"]);
  expect([refused.status, refused.errors]).toEqual([
    1,
    expect.stringContaining("No slot was moved"),
  ]);
  expect(refused.errors).toContain(`${unknown[0]?.master} does not answer`);
  const doctor = await waybill(["doctor", "--json"], { REDIS_WAIT_REPLICAS: "1" });
  const findings: Finding[] = JSON.parse(doctor.output).findings;
  const found = (code: string) => findings.find((one) => one.code === code)?.found ?? "";
  expect(REDIS_CODES_OF_CLUSTERS.filter((code) => found(code) === "")).toEqual([]);
  expect([doctor.status, found("redis-slots")]).toEqual([
    1,
    expect.stringMatching(/^\d+, without \d+-\d+$/),
  ]);
  const placedBy = Map.groupBy(loads, ({ master }) => master);
  expect(countsIn(found("redis-placement"))).toEqual(
    new Map([...placedBy].map(([master, own]) => [master, own.length])),
  );
  expect(found("redis-placement")).toContain(`${unknown[0]?.master} ${lost.length} (not readable)`);
}, 300_000);

test("`waybill archive --status` tells what the other shards hold, and names what is missing", async () => {
  const panel = await openTestPanel(runtime);
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: panel.handle });
  const env = {
    PUBLIC_URL: `http://127.0.0.1:${server.port}`,
    PANEL_TOKEN: runtime.secrets.panelToken,
  };
  const [company] = runtime.live.configuration().companies.values();
  if (!company) throw new Error("the setup has companies");
  const tag = companyTag(companyPartition(company.id));
  const status = () => waybill(["archive", "--status"], env);
  expect(await status()).toMatchObject({ status: 0, errors: "" });
  for (const [key, line] of [
    [tag, `${company.code}: unknown`],
    [ARCHIVER_STATUS_KEY, "Backlog: unknown"],
  ] as const) {
    await lose(key);
    const answer = await panel.call("GET", "/panel/api/archive");
    expect([answer.status, answer.body.missing]).toEqual([200, expect.arrayContaining([key])]);
    const told = await status();
    expect([told.status, told.errors]).toEqual([1, ""]);
    expect(told.output).toContain(line);
    expect(told.output).toMatch(/does not answer\. Left out: .+/);
    await bringBack();
  }
  await server.stop(true);
  await panel.end();
}, 300_000);
