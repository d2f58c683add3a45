/** An error of ours never ends a delivery: it waits for its retry by the schedule (document 3, "Delivery"). */
import { beforeEach, expect, test } from "bun:test";
import { bumpVersion, readEntity, saveEntity } from "#core/configuration/store/entities.ts";
import { registry } from "#core/platform/process/metrics.ts";
import { createVault } from "#core/platform/secrets/secrets.ts";
import { faultWaitMs } from "#core/webhooks/rules/retry-schedule.ts";
import { readFailing } from "#core/webhooks/store/endpoints.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  newShipment,
  openWebhookRuntime,
  passTime,
  STATUS,
  sendDeps,
  startPipeline,
} from "#test/support/product/webhooks.ts";
import { startReceiver } from "#test/support/servers/receiver.ts";

const HOUR_S = 3_600;
/** Nominal waits of the schedule, minutes; the last one goes on. */
const WAITS = [1, 5, 15, 60, 180, 360, 720, 720, 720, 720];

const receiver = forAll(startReceiver);
const runtime = forAll(() =>
  openWebhookRuntime([
    { url: receiver.url, statuses: ["IN_TRANSIT"] },
    { url: `${receiver.url}/second`, statuses: ["DEPARTED"] },
  ]),
);

beforeEach(() => {
  receiver.requests.length = 0;
});

function newest(code: string) {
  return eventually(
    async () => (await deliveriesOf(runtime, endpointOf(runtime, code)))[0],
    `endpoint ${code} has a delivery`,
  );
}

/** Started with another ENCRYPTION_KEY: no secret can be opened. */
const withoutSecrets = () => ({
  ...sendDeps(runtime),
  vault: createVault({ key: "another key", previous: null, macKey: "" }),
});

async function errorsCounted(): Promise<number> {
  const { values } = (await registry.getSingleMetric("waybill_internal_errors_total")?.get()) ?? {};
  return (values ?? []).reduce((sum, { value }) => sum + value, 0);
}

async function changeUrl(code: string, url: string): Promise<void> {
  const { redis, live } = runtime;
  const { id } = endpointOf(runtime, code);
  const entity = await readEntity(redis, "endpoint", id);
  if (!entity) throw new Error("no endpoint");
  await saveEntity(redis, "endpoint", id, { ...entity, url });
  await bumpVersion(redis);
  await live.refresh();
}

test("a secret that cannot be opened makes a delivery wait, longer each time and for ever, without an attempt", async () => {
  const before = await errorsCounted();
  const broken = startPipeline(runtime, withoutSecrets());
  const shipment = await newShipment(runtime);
  await applyEvents(runtime, shipment, [{ status: STATUS.inTransit }]);
  for (const [at, minutes] of WAITS.entries()) {
    const waiting = await eventually(
      async () => {
        const [one] = await deliveriesOf(runtime, endpointOf(runtime, "main"));
        return one?.state !== "queued" && one?.attempts.length === at + 1 ? one : null;
      },
      `it has been postponed ${at + 1} times`,
    );
    const last = waiting.attempts.at(-1);
    expect([waiting.state, waiting.attemptsMade, waiting.reason]).toEqual(["waiting", 0, null]);
    expect(last).toMatchObject({ attempt: 1, httpStatus: null, error: "internal error" });
    expect((waiting.nextAttemptAtMs ?? 0) - (last?.atMs ?? 0)).toBe(minutes * 60_000);
    await passTime(runtime, minutes * 60);
  }
  await broken.stop();
  expect(await errorsCounted()).toBeGreaterThanOrEqual(before + WAITS.length);
  // It is no fault of the endpoint's.
  expect(await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER)).toEqual([]);
  expect(receiver.requests).toEqual([]);

  const mended = startPipeline(runtime, sendDeps(runtime));
  await passTime(runtime, 12 * HOUR_S);
  await eventually(async () => (await newest("main")).state === "delivered", "it is delivered");
  await mended.stop();
  expect(receiver.requests.length).toBe(1);
  expect(receiver.requests[0]?.headers["x-service-delivery-attempt"]).toBe("1");
  expect((await newest("main")).attemptsMade).toBe(1);
});

test("retries after an internal error never end, even past the last attempt of the schedule", () => {
  expect([1, 7, 8, 100].map((attempt) => faultWaitMs(attempt, 0.5) / 60_000)).toEqual([
    1, 720, 720, 720,
  ]);
});

test("a URL that does not parse keeps its own deliveries waiting and no other ones", async () => {
  const pipeline = startPipeline(runtime, sendDeps(runtime));
  await changeUrl("second", "https://[half");
  const shipment = await newShipment(runtime);
  await applyEvents(runtime, shipment, [{ status: STATUS.departed }]);
  await applyEvents(runtime, shipment, [
    { status: STATUS.inTransit, occurredAt: "2026-11-11T10:00:00+01:00" },
  ]);
  await eventually(async () => (await newest("main")).state === "delivered", "the other is sent");
  await eventually(async () => (await newest("second")).state === "waiting", "it waits");
  await changeUrl("second", receiver.url);
  await passTime(runtime, 60);
  await eventually(async () => (await newest("second")).state === "delivered", "it is sent");
  await pipeline.stop();
});

test("a delivery that cannot be read keeps no other one from being sent", async () => {
  const { redis } = runtime;
  const shipment = await newShipment(runtime);
  const broken = startPipeline(runtime, withoutSecrets());
  await applyEvents(runtime, shipment, [{ status: STATUS.inTransit }]);
  const unreadable = await eventually(async () => {
    const one = await newest("main");
    return one.state === "waiting" ? one : null;
  }, "it waits");
  await broken.stop();
  const key = `{k${Number.parseInt(unreadable.deliveryId.slice(4, 6), 16)}}:d:${unreadable.deliveryId}`;
  const words = String(await redis.hGet(key, "i")).split("\n", 1);
  await redis.hSet(key, "i", `${words}\n{"half`);
  const pipeline = startPipeline(runtime, sendDeps(runtime));
  await passTime(runtime, 60);
  await applyEvents(runtime, await newShipment(runtime), [{ status: STATUS.inTransit }]);
  await eventually(() => receiver.requests.length === 1, "the other one is sent");
  await eventually(
    async () => JSON.parse(String(await redis.hGet(key, "a"))).length === 2,
    "it waits once more",
  );
  expect(await redis.hGet(key, "s")).toBe("waiting");
  await pipeline.stop();
});
