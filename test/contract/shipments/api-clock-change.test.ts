/**
 * The reconciliation procedure of document 1 around the autumn clock change, when the hour from 02:00 to 03:00 exists
 * twice in Rome: in 2027 from 00:00 to 02:00 UTC of 31 October.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { parseRomeDateTime, romeDateTime } from "#core/platform/time/rome-time.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
const ids: number[] = [];
const REPEATED = { from: "2027-10-31T01:00:00Z", to: "2027-10-31T02:00:00Z" };

beforeAll(async () => {
  api = await openTestApi(testSetup());
  token = await api.token("key_acme_main");
  for (let from = 0; from < 1_200; from += 100) {
    const shipments = Array.from({ length: 100 }, (_, at) => item(`DST-${from + at}`));
    const { body } = await api.call("POST", "/v2/shipments", { token, body: { shipments } });
    ids.push(...body.items.map((row: { id: number }) => row.id));
  }
});
afterAll(() => api.end());

/** Moves the clock to an instant and signs in again. */
async function at(instant: string): Promise<void> {
  await api.advance(Math.round((Date.parse(instant) - api.runtime.live.now()) / 1000));
  const signIn = { body: { apiKey: "key_acme_main" } };
  token = (await api.call("POST", "/v2/auth/token", signIn)).body.token;
}

async function change(code: string, from: number, to: number): Promise<void> {
  for (let start = from; start < to; start += 100) {
    const part = ids.slice(start, Math.min(to, start + 100));
    await applyEvents(
      api.runtime,
      part.map((shipmentId) => ({ shipmentId, code })),
    );
  }
}

/** As printed: from the last item's statusUpdatedAt until a page is not full. */
async function reconcile(updatedAfter: string): Promise<string[]> {
  const seen = new Map<number, string>();
  for (let after = updatedAfter, calls = 0; ; calls += 1) {
    expect(calls).toBeLessThan(100);
    const query = `scope=company&sortBy=updatedAt_asc&limit=100&updatedAfter=${encodeURIComponent(after)}`;
    const { body } = await api.call("GET", `/v2/shipments?${query}`, { token });
    const updates = body.items.map((row: { statusUpdatedAt: string }) => row.statusUpdatedAt);
    expect(updates).toEqual([...updates].sort());
    for (const row of body.items) seen.set(row.id, row.statusUpdatedAt);
    if (body.items.length < 100) return [...seen.values()];
    after = updates.at(-1);
  }
}

async function stamps(): Promise<number[]> {
  const { redis } = api.runtime;
  const [key = ""] = await redis.keys(`*:i:${channelOf(api.runtime).id}:upd`);
  const rows = await redis.zRangeWithScores(key, 1, "+inf", { BY: "SCORE" });
  return rows.map(({ score }) => score * 1000);
}

test("a burst that runs ahead of the clock skips the repeated hour", async () => {
  await at("2027-10-31T00:59:55Z");
  await change("TRN", 0, 600);
  const seen = await reconcile("2027-10-31 02:00:00");
  expect(seen).toHaveLength(600);
  expect(seen.at(0)).toStartWith("2027-10-31 02:59:5");
  expect(seen.at(-1)).toStartWith("2027-10-31 03:00:0");
});

test("changes within the repeated hour stand from 03:00:00 on, and the procedure ends", async () => {
  await at("2027-10-31T01:30:00Z");
  await change("TRN", 600, 900);
  await at("2027-10-31T01:59:59Z");
  await change("TRN", 900, 1_100);
  const seen = await reconcile("2027-10-31 02:00:00");
  expect(seen).toHaveLength(1_100);
  const later = seen.filter((text) => !text.startsWith("2027-10-31 02:59:5"));
  expect(later.length).toBeGreaterThanOrEqual(500);
  for (const text of later) expect(text).toStartWith("2027-10-31 03:00:");
});

test("no stamp lies in the repeated hour, and none goes backwards afterwards", async () => {
  await at("2027-10-31T02:05:00Z");
  await change("TRN", 1_100, 1_200);
  const all = await stamps();
  expect(all).toHaveLength(1_200);
  const within = all.filter(
    (ms) => ms >= Date.parse(REPEATED.from) && ms < Date.parse(REPEATED.to),
  );
  expect(within).toEqual([]);
  expect(all.map((ms) => parseRomeDateTime(romeDateTime(ms)))).toEqual(all);
  expect(Math.max(...all)).toBeGreaterThanOrEqual(Date.parse("2027-10-31T02:05:00Z"));
  expect(await reconcile("2027-10-31 02:59:50")).toHaveLength(1_200);
});
