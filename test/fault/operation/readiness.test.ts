/**
 * Design, "Part of the store away is part of the service away": a process is ready while it can serve anything of its port, and says
 * why when it cannot.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import {
  companyTag,
  courierRateKey,
  SYSTEM_KEY,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { openOpsPort } from "#core/runtime/ops-port.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { openIntake } from "#ingest/messages/intake.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const LIMIT_MS = 60_000;
type Role = keyof typeof STORE_NEEDS;
const ROLES = Object.keys(STORE_NEEDS) as Role[];

async function readiness(url: string): Promise<string> {
  const answer = await fetch(`${url}/readyz`);
  const { status, reason = "" } = (await answer.json()) as Record<string, string | undefined>;
  expect(answer.status).toBe(status === "ready" ? 200 : 503);
  return status === "ready" ? "ready" : reason;
}

/** A port with the readiness of each role. */
function openPorts(runtime: TestRuntime): Record<Role, Running> {
  const open = (role: Role) => {
    const options = { needs: STORE_NEEDS[role], refresh: runtime.live.refresh };
    return openOpsPort(runtime, role, 0, options);
  };
  return Object.fromEntries(ROLES.map((role) => [role, open(role)])) as Record<Role, Running>;
}

type Told = Record<Role, string>;

async function allReadiness(ports: Record<Role, Running>): Promise<Told> {
  const told = ROLES.map(async (role) => [role, await readiness(ports[role].url ?? "")]);
  return Object.fromEntries(await Promise.all(told)) as Told;
}

const inAll = (told: string) => Object.fromEntries(ROLES.map((role) => [role, told])) as Told;

describe("on one server", () => {
  let server: RedisServer;
  let runtime: TestRuntime;
  let ports: Record<Role, Running>;

  beforeAll(async () => {
    server = await startRedisServer();
    runtime = await openTestRuntime(testSetup(), {}, { address: server.url, stop: server.stop });
    ports = openPorts(runtime);
  });
  afterAll(async () => {
    for (const port of Object.values(ports)) await port.stop();
    await runtime.end();
  });

  const becomes = (told: Told, what: string) =>
    eventually(async () => Bun.deepEquals(await allReadiness(ports), told), what);

  test("with a full memory the panel is ready to be read, and what can only write is not, with the reason", async () => {
    expect(await allReadiness(ports)).toEqual(inAll("ready"));
    await server.send("CONFIG", "SET", "maxmemory", "1mb");
    const full = "Redis is unavailable: its memory is full (maxmemory)";
    const told = { ...inAll("ready"), ingest: full, api: full, processors: full };
    await becomes(told, "what can only write is not ready");
    await server.send("CONFIG", "SET", "maxmemory", "0");
    await becomes(inAll("ready"), "all are ready again");
  });

  test("while it is frozen nothing is ready, and each question is answered all the same", async () => {
    server.freeze();
    await becomes(inAll("Redis does not answer"), "nothing is ready");
    server.thaw();
    await becomes(inAll("ready"), "all are ready again");
  });
});

/** An event whose tracking number has its place under one tag and whose id has its own under another one. */
function eventAt(numbers: readonly string[], at: (tag: string) => boolean): CourierEvent {
  const tagOf = (number: string) => `{t${trackingReference("GLS_ITA", number).partition}}`;
  const trackingNumber = numbers.find((number) => at(tagOf(number)));
  for (;;) {
    const candidate = event(trackingNumber === undefined ? {} : { trackingNumber });
    if (at(`{e${seenBucket("GLS_ITA", candidate.eventId).partition}}`)) return candidate;
  }
}

/** What counts the requests of this courier is in another shard than that of the others and what every role needs. */
const ELSEWHERE = { code: "BRT", token: "tok_elsewhere_1" };

describe("on a six-node cluster", () => {
  const numbers = Array.from({ length: 40 }, (_, at) => `READY${at}`);
  let cluster: TestCluster;
  let runtime: TestRuntime;
  let ports: Record<Role, Running>;
  let ingest: Running;
  let url: string;
  let recover = async () => {};

  beforeAll(async () => {
    cluster = await startTestCluster();
    const given = { address: "/", stop: cluster.stop };
    const setup = testSetup();
    const { code, token } = ELSEWHERE;
    setup.couriers?.push({ code, name: "Elsewhere", tokens: [token], catalogue: [] });
    runtime = await openTestRuntime(setup, { REDIS_CLUSTER_URLS: cluster.urls }, given);
    for (const number of numbers) await addShipment(runtime, number);
    ports = openPorts(runtime);
    ingest = await startIngest(runtime);
    url = ingest.url ?? "";
  }, 120_000);
  afterEach(async () => {
    await recover();
    recover = async () => {};
  });
  afterAll(async () => {
    await ingest.stop();
    for (const port of Object.values(ports)) await port.stop();
    await runtime.end();
  });

  async function shards(): Promise<(tag: string) => number> {
    const tags = ["e", "t", "k"].flatMap((family) =>
      Array.from({ length: 16 }, (_, n) => `{${family}${n}}`),
    );
    const places = new Map<string, number>();
    for (const tag of tags) places.set(tag, await cluster.shardOf(tag));
    return (tag) => places.get(tag) ?? -1;
  }

  test("without the shard of the configuration and of all couriers' rates a request is 503 with Retry-After, and all ports are ready", async () => {
    expect(await readiness(url)).toBe("ready");
    const rates = ["GLS_ITA", "BRT_ITA"].map((code) => cluster.shardOf(courierRateKey(code)));
    const system = await cluster.shardOf(SYSTEM_KEY);
    expect(await Promise.all(rates)).toEqual([system, system]);
    const bringBack = await cluster.loseShard(SYSTEM_KEY);
    recover = bringBack;
    const answer = await push(url, [event({ trackingNumber: "READY0" })]);
    expect([answer.status, answer.body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    // They go on with the configuration as they know it.
    expect(await readiness(url)).toBe("ready");
    expect(await allReadiness(ports)).toEqual(inAll("ready"));
    await bringBack();
    recover = async () => {};
    await eventually(
      async () => (await push(url, [event({ trackingNumber: "READY0" })])).status === 200,
      "events are accepted again",
      LIMIT_MS,
    );
  }, 300_000);

  test("while the shard of the configuration hangs all ports are ready: none waits for a node that does not answer", async () => {
    const thaw = await cluster.freezeShard(SYSTEM_KEY);
    recover = thaw;
    expect(await allReadiness(ports)).toEqual(inAll("ready"));
    expect(await readiness(url)).toBe("ready");
    await thaw();
    recover = async () => {};
  }, 300_000);

  test("without another master ingest is ready: events and couriers of its slots are 503 with Retry-After, and others are served", async () => {
    const shard = await shards();
    const needed = [SYSTEM_KEY, courierRateKey("GLS_ITA")].map((key) => cluster.shardOf(key));
    const lost = await cluster.shardOf(courierRateKey(ELSEWHERE.code));
    expect(await Promise.all(needed)).not.toContain(lost);
    const intake = openIntake(runtime.redis, runtime.live, 1_000);
    const limit = { perSecond: 1_000, burst: 1_000 };
    const admits = (subject: string) =>
      intake.admit({ subject, limit }).then(
        ({ rate }) => rate.allowed,
        () => "unavailable",
      );
    const there = eventAt(numbers, (tag) => shard(tag) !== lost);
    const elsewhere = eventAt(numbers, (tag) => shard(tag) === lost);
    const tag = Array.from({ length: 16 }, (_, n) => companyTag(n)).find(
      (one) => shard(one) === lost,
    );
    recover = await cluster.loseShard(tag ?? "");
    const refused = await eventually(async () => {
      const answer = await push(url, [elsewhere]);
      return answer.status !== 200 && answer;
    }, "an event of a lost slot is refused");
    expect([refused.status, refused.body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    const courier = await push(url, [there], { courier: ELSEWHERE.code, token: ELSEWHERE.token });
    expect([courier.status, courier.body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
    expect(Number(courier.headers.get("retry-after"))).toBeGreaterThan(0);
    // The first goes alone; those that come meanwhile share the next call.
    expect(await Promise.all(["GLS_ITA", ELSEWHERE.code, "GLS_ITA"].map(admits))).toEqual([
      true,
      "unavailable",
      true,
    ]);
    await eventually(
      async () => (await push(url, [there])).body.results?.[0]?.eventId === there.eventId,
      "an event of the other slots is taken",
      LIMIT_MS,
    );
    expect(await readiness(url)).toBe("ready");
    expect(await allReadiness(ports)).toEqual(inAll("ready"));
    await recover();
    recover = async () => {};
    await eventually(async () => (await push(url, [elsewhere])).status === 200, "taken", LIMIT_MS);
    await eventually(async () => (await admits(ELSEWHERE.code)) === true, "served again", LIMIT_MS);
    expect(await readiness(url)).toBe("ready");
  }, 300_000);
});
