/**
 * Design, "Part of the store away is part of the service away": operators can always read the panel, with what is missing marked as
 * missing, and it names a master that has lost its replica.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { subscriberOf } from "#core/platform/http/peer.ts";
import { companyTag, courierRateKey, eventKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import type { Overview } from "#panel/server/operations/overview-view.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { openVisitor } from "#test/support/clients/panel-visitor.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

/** Counts the tries to log in from here: the log-in has to do without it. */
const LOST = courierRateKey(`login ${subscriberOf("127.0.0.1")}`);

let cluster: TestCluster;
let runtime: TestRuntime;
let panel: Running;
let browser: Browser;

beforeAll(async () => {
  cluster = await startTestCluster();
  const env = {
    REDIS_CLUSTER_URLS: cluster.urls,
    REDIS_WAIT_REPLICAS: "1",
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  };
  runtime = await openTestRuntime(testSetup(), env, { address: "/", stop: cluster.stop });
  panel = await startPanel(runtime);
  browser = await openBrowser();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await panel?.stop();
  await runtime?.end();
}, 60_000);

async function overview(): Promise<Overview> {
  const { status, body } = await askPanel({ panel: panel.url ?? "" }, "GET", "/overview");
  expect(status).toBe(200);
  return body;
}

const alarmsOf = ({ alarms }: Overview) => alarms.map(({ code }) => code);

test("without a shard an operator logs in and reads the overview, which says what is missing; once it is back nothing is", async () => {
  for (const n of partitionsOf("e")) {
    await runtime.redis.hIncrBy(eventKeys(n).ledger, "received:GLS_ITA", 1);
  }
  const whole = await overview();
  expect([whole.missing, whole.stores.redis.away, whole.ledger.received]).toEqual([[], [], 16]);
  expect(alarmsOf(whole)).not.toContain("REDIS_PART_AWAY");
  const tags = partitionsOf("e").flatMap((n) => [`{e${n}}`, companyTag(n)]);
  const places = new Map<string, number>();
  for (const tag of tags) places.set(tag, await cluster.shardOf(tag));
  const lost = tags.filter((tag) => places.get(tag) === 0);
  expect(lost).toContain("{e0}");

  const bringBack = await cluster.loseShard("{e0}");
  const part = await eventually(async () => {
    const told = await overview();
    return told.missing.length > 0 && told;
  }, "something is missing");
  expect(lost.filter((tag) => !part.missing.includes(tag))).toEqual([]);
  expect(part.ledger.received).toBe(16 - lost.filter((tag) => tag.startsWith("{e")).length);
  expect([part.ledger.difference, part.stores.redis.ready]).toEqual([null, false]);
  expect(part.stores.redis.away).toHaveLength(1);
  expect(alarmsOf(part)).toContain("REDIS_PART_AWAY");
  expect(alarmsOf(part)).not.toContain("LEDGER_DIFFERENCE");

  const { page, open, end } = await openVisitor(browser, panel.url ?? "", {
    token: runtime.secrets.panelToken,
  });
  await open("/overview");
  await page.getByText("Incomplete", { exact: true }).waitFor();
  const note = page.getByRole("alert").filter({ hasText: "A shard of Redis is unavailable" });
  expect(await note.textContent()).toContain("{e0}");
  await page.getByText(/^A shard of Redis is unavailable: 127\.0\.0\.1:\d+\. /).waitFor();
  await page.getByText("Not available").waitFor();

  await bringBack();
  await page.getByText("Incomplete", { exact: true }).waitFor({ state: "detached" });
  await page.getByText("Not available").waitFor({ state: "detached" });
  await end();
  const again = await eventually(async () => {
    const told = await overview();
    return told.missing.length === 0 && told;
  }, "nothing is missing");
  expect([again.ledger.received, again.stores.redis.ready]).toEqual([16, true]);
}, 300_000);

test("an operator logs in by the token while the shard is unavailable that counts the tries", async () => {
  const bringBack = await cluster.loseShard(LOST);
  const { page, open, end } = await openVisitor(browser, panel.url ?? "", {
    token: runtime.secrets.panelToken,
  });
  await open("/overview");
  await page.getByText("Incomplete", { exact: true }).waitFor();
  await end();
  const wrong = await fetch(`${panel.url}/panel/api/session`, {
    method: "POST",
    body: JSON.stringify({ token: "wrong" }),
    headers: { "content-type": "application/json" },
  });
  expect(wrong.status).toBe(503);
  await bringBack();
}, 300_000);

test("a master that has lost its replica is named by an alarm, until the replica is back", async () => {
  const bringBack = await cluster.loseMaster(0);
  const told = await eventually(async () => {
    const now = await overview();
    const { missing, stores } = now;
    return missing.length === 0 && stores.redis.replicasMissing.length > 0 && now;
  }, "it is told, and its replica serves");
  expect(told.stores.redis.replicasMissing).toMatchObject([{ replicas: 0, wanted: 1 }]);
  expect(told.stores.redis.away).toEqual([]);
  expect(alarmsOf(told)).toContain("REPLICAS_MISSING");
  const { page, open, end } = await openVisitor(browser, panel.url ?? "", {
    token: runtime.secrets.panelToken,
  });
  await open("/overview");
  await page.getByText(/^Redis masters without their replicas: .* \(0\/1\)\.$/).waitFor();
  await bringBack();
  await page.getByText(/^Redis masters without/).waitFor({ state: "detached" });
  await end();
}, 300_000);
