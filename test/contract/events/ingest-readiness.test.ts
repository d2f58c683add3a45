/** Design, "Part of the store away is part of the service away": what ingest says of itself, and whom it serves. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { courierRateKey } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { openIntake } from "#ingest/messages/intake.ts";
import { request } from "#test/support/clients/merchant.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

/** What counts the requests of the one is in another shard than that of the other and what every role needs. */
const LOST = { code: "BRT", number: 1 };
const SERVED = { code: "GLS_ITA", number: 2 };
const LIMIT_MS = 30_000;
const RATE = { perSecond: 1_000, burst: 1_000 };

let cluster: TestCluster;
let runtime: TestRuntime;
let ingest: Running;

beforeAll(async () => {
  cluster = await startTestCluster();
  const given = { address: "/", stop: async () => {} };
  const couriers = [{ code: LOST.code, name: "BRT", tokens: ["tok_brt_1"], catalogue: [] }];
  const setup = { ...testSetup(), couriers, companies: [] };
  runtime = await openTestRuntime(setup, { REDIS_CLUSTER_URLS: cluster.urls }, given);
  ingest = await startIngest(runtime);
}, 120_000);
afterAll(async () => {
  await ingest.stop();
  await runtime.end();
  await cluster.stop();
}, 60_000);

test("a courier whose shard is unavailable gets 503 with Retry-After; others are served, and ingest stays ready", async () => {
  const { redis, live } = runtime;
  const intake = openIntake(redis, live, 1_000);
  const ask = ({ code }: { readonly code: string }) =>
    intake.admit({ subject: code, limit: RATE }).then(
      ({ rate }) => rate.allowed,
      () => "unavailable",
    );
  const ready = async () => (await request("GET", `${ingest.url}/readyz`)).status;
  expect(await Promise.all([ask(SERVED), ask(LOST), ready()])).toEqual([true, true, 200]);
  const recover = await cluster.loseShard(courierRateKey(LOST.code));
  await eventually(async () => (await ask(LOST)) === "unavailable", "it is unavailable", LIMIT_MS);
  // The first goes alone; those that come meanwhile share the next call.
  expect(await Promise.all([ask(SERVED), ask(LOST), ask(SERVED)])).toEqual([
    true,
    "unavailable",
    true,
  ]);
  const refused = await fetch(`${ingest.url}/v1/events`, {
    method: "POST",
    body: "{}",
    headers: { authorization: "Bearer tok_brt_1", "content-type": "application/json" },
  });
  const { code } = (await refused.json()) as { code: string };
  expect([refused.status, code]).toEqual([503, "STORE_UNAVAILABLE"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await ready()).toBe(200);
  await recover();
  await eventually(async () => (await ask(LOST)) === true, "it is served again", LIMIT_MS);
}, 120_000);
