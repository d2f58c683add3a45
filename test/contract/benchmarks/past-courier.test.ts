/** The demo's couriers of days that are over, which share their rate with those of today. */
import { expect, test } from "bun:test";
import { DEMO_COURIERS } from "#demo/couriers.ts";
import { demoSetup } from "#demo/demo-setup.ts";
import { createPastCourier } from "#demo/past-courier.ts";
import { startIngest } from "#ingest/main.ts";
import { event } from "#test/support/clients/courier.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const runtime = forAll(() =>
  openTestRuntime(demoSetup("https://localhost:9443", () => "http://localhost:9444")),
);
const ingest = forAll(() => startIngest(runtime));

test("more messages of the past than the courier's burst pass, whatever it sent today", async () => {
  const [courier] = DEMO_COURIERS;
  if (!courier) throw new Error("the demo has no courier");
  const headers = { authorization: `Bearer ${courier.token}` };
  const today = await fetch(`${ingest.url}/v1/ping`, { headers });
  const burst = Number(today.headers.get("x-ratelimit-limit"));
  expect([today.status, burst]).toEqual([200, 100]);

  const from = runtime.live.now() - 20 * DAY_MS;
  const sent = Array.from({ length: burst + 1 }, (_, at) => ({
    courier,
    event: event({ occurredAt: new Date(from + at * HOUR_MS).toISOString() }),
  }));
  const past = createPastCourier(runtime, new AbortController().signal);
  expect(await past.push(sent)).toBeUndefined();
});
