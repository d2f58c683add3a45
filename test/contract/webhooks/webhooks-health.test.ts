import { beforeEach, describe, expect, test } from "bun:test";
import { createRunningTime } from "#core/platform/log/running-time.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { readAlerts, removeAlert } from "#core/webhooks/store/alerts.ts";
import { readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import {
  disableEndpoint,
  enableEndpoint,
  readFailing,
  switchOffFailing,
} from "#core/webhooks/store/endpoints.ts";
import { requestTestEvent } from "#core/webhooks/store/webhook-tests.ts";
import { checkHealth } from "#processors/webhooks/health-clock.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
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
} from "#test/support/product/webhooks.ts";
import { startReceiver } from "#test/support/servers/receiver.ts";

const HOUR_S = 3_600;

const receiver = forAll(startReceiver);
const runtime = forAll(() => openWebhookRuntime([{ url: receiver.url, include: ["consignee"] }]));
forAll(() => startWebhooks(runtime));

const main = () => endpointOf(runtime, "main");
/** The partition of company acme. */
function acme(): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(main().channelId)?.companyId ?? 0);
}
const kinds = async () => (await readAlerts(runtime.redis, 100)).map(({ kind }) => kind);

beforeEach(async () => {
  await enableEndpoint(runtime.redis, runtime.live.configuration(), main().id);
  await runtime.live.refresh();
  for (const alert of await readAlerts(runtime.redis, 100)) await removeAlert(runtime.redis, alert);
  await runtime.redis.del(webhookKeys(acme()).alerted);
  receiver.requests.length = 0;
  receiver.behave(503);
});

/** A change whose first attempt is made and recorded. */
async function attemptOnce() {
  const id = await newShipment(runtime);
  await applyEvents(runtime, id, [{ status: STATUS.inTransit }]);
  await eventually(async () => {
    const [delivery] = await deliveriesOf(runtime, main());
    return delivery?.shipmentId === id && delivery.attempts.length > 0;
  }, "the first attempt");
}

/** A look at the clocks beside those of the timer. */
const ticks = () => checkHealth(runtime, createRunningTime(runtime.redis));

describe("document 3, Endpoint", () => {
  test("24 hours after the first failure without success: one alert; 3 days after it: disabled, second alert", async () => {
    await attemptOnce();
    await passTime(runtime, 24 * HOUR_S - 30);
    await ticks();
    expect(await kinds()).toEqual([]);
    await passTime(runtime, 60);
    await eventually(async () => (await kinds()).length === 1, "the first alert");
    await ticks();
    expect(await kinds()).toEqual(["warning"]);
    const [alert] = await readAlerts(runtime.redis, 1);
    expect(alert?.endpointId).toBe(main().id);
    expect(JSON.stringify(alert)).not.toContain("@");
    expect(main().active).toBe(true);

    await passTime(runtime, 48 * HOUR_S);
    await eventually(async () => (await kinds()).length === 2, "the second alert");
    await ticks();
    expect(await kinds()).toEqual(["warning", "disabled"]);
    expect(main().active).toBe(false);
    // One that was under way fails with the tick after its attempt.
    await eventually(async () => {
      const all = await deliveriesOf(runtime, main());
      return all.length > 0 && all.every(({ state }) => state === "failed");
    }, "all have failed");
  });

  test("no events are generated while disabled; reactivation starts clean", async () => {
    await disableEndpoint(
      runtime.redis,
      runtime.live.configuration(),
      main().id,
      runtime.live.now(),
    );
    const before = (await deliveriesOf(runtime, main())).length;
    const id = await newShipment(runtime);
    await applyEvents(runtime, id, [{ status: STATUS.inTransit }]);
    const [decision] = await eventually(async () => {
      const found = await readDecisions(runtime.redis, id);
      return found.length > 0 ? found : null;
    }, "the decision is recorded");
    expect(decision?.verdicts).toEqual([[main().id, "disabled"]]);
    expect(await deliveriesOf(runtime, main())).toHaveLength(before);
    await enableEndpoint(runtime.redis, runtime.live.configuration(), main().id);
    receiver.behave(200);
    await attemptOnce();
    expect(receiver.requests).toHaveLength(1);
  });

  test("an endpoint that succeeds after its clock was read is not disabled", async () => {
    await attemptOnce();
    const [read] = await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER);
    if (!read) throw new Error("the endpoint does not fail");
    receiver.behave(200);
    await attemptOnce();
    await switchOffFailing(runtime.redis, read, runtime.live.now());
    expect((await runtime.live.refresh()).endpoints.get(read.endpointId)?.active).toBe(true);
    receiver.behave(503);
    await attemptOnce();
    const [again] = await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER);
    if (!again) throw new Error("the endpoint does not fail again");
    await switchOffFailing(runtime.redis, again, runtime.live.now());
    expect((await runtime.live.refresh()).endpoints.get(read.endpointId)?.active).toBe(false);
  });

  test("a success in between restarts the clock", async () => {
    await attemptOnce();
    await passTime(runtime, 20 * HOUR_S);
    receiver.behave(200);
    await attemptOnce();
    expect(await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER)).toEqual([]);
    receiver.behave(400);
    await attemptOnce();
    await passTime(runtime, 20 * HOUR_S);
    await ticks();
    expect(await kinds()).toEqual([]);
  });

  test("an endpoint that was switched off by hand raises no alert", async () => {
    await attemptOnce();
    await disableEndpoint(
      runtime.redis,
      runtime.live.configuration(),
      main().id,
      runtime.live.now(),
    );
    await passTime(runtime, 100 * HOUR_S);
    await ticks();
    expect(await kinds()).toEqual([]);
  });

  test("when its clock has passed both thresholds at once, both alerts are there, once", async () => {
    await attemptOnce();
    await passTime(runtime, 80 * HOUR_S);
    await eventually(async () => (await kinds()).length === 2, "both alerts");
    await ticks();
    expect(await kinds()).toEqual(["warning", "disabled"]);
  });
});

test("the last failure stays with an endpoint that failing has disabled, and goes with one that is gone", async () => {
  const { redis } = runtime;
  const { failing, lastFailures } = webhookKeys(acme());
  await attemptOnce();
  await passTime(runtime, 72 * HOUR_S);
  await eventually(async () => (await kinds()).includes("disabled"), "it is disabled");
  // Attempts that were under way, recorded afterwards.
  const score = runtime.live.now();
  const late = [main().id, "ep_gone"].map((value) => ({ value, score }));
  await redis.zAdd(failing, late);
  await redis.hSet(lastFailures, "ep_gone", "[]");
  await passTime(runtime, 24 * HOUR_S + 60);
  await eventually(async () => (await redis.zCard(failing)) === 0, "both clocks stop");
  expect(await redis.hKeys(lastFailures)).toEqual([main().id]);
  await enableEndpoint(redis, await runtime.live.refresh(), main().id);
  expect(await redis.hKeys(lastFailures)).toEqual([]);
});

describe("that it works again", () => {
  const raised = async () => (await kinds()).filter((kind) => kind === "recovered").length;
  const failForADay = async () => {
    await attemptOnce();
    await passTime(runtime, 24 * HOUR_S);
    await eventually(async () => (await kinds()).includes("warning"), "the first alert");
  };

  test("the first success after an alert raises one alert, later ones none", async () => {
    await failForADay();
    receiver.behave(200);
    await attemptOnce();
    await attemptOnce();
    expect(await kinds()).toEqual(["warning", "recovered"]);
    const [warning, recovered] = await readAlerts(runtime.redis, 100);
    expect(recovered).toMatchObject({ endpointId: main().id, sinceMs: warning?.sinceMs ?? 0 });
    expect(recovered?.atMs).toBeGreaterThan(warning?.atMs ?? Number.MAX_SAFE_INTEGER);
  });

  test("a test event's success does too; a failed one and a success without an alert do not", async () => {
    await failForADay();
    await requestTestEvent(runtime.redis, main().id);
    expect(await raised()).toBe(0);
    receiver.behave(200);
    await requestTestEvent(runtime.redis, main().id);
    await requestTestEvent(runtime.redis, main().id);
    await attemptOnce();
    expect(await raised()).toBe(1);
  });

  test("an endpoint that was disabled works again with the first success after it was enabled, not before", async () => {
    await failForADay();
    await passTime(runtime, 48 * HOUR_S);
    await eventually(async () => (await kinds()).includes("disabled"), "the second alert");
    receiver.behave(200);
    await requestTestEvent(runtime.redis, main().id);
    await enableEndpoint(runtime.redis, await runtime.live.refresh(), main().id);
    await runtime.live.refresh();
    expect(await raised()).toBe(0);
    await attemptOnce();
    await attemptOnce();
    expect(await kinds()).toEqual(["warning", "disabled", "recovered"]);
  });

  test("one that fails again is warned about and recovers again", async () => {
    await failForADay();
    receiver.behave(200);
    await attemptOnce();
    receiver.behave(503);
    await attemptOnce();
    await passTime(runtime, 24 * HOUR_S);
    await eventually(async () => (await kinds()).length === 3, "the next alert");
    receiver.behave(200);
    await attemptOnce();
    expect(await kinds()).toEqual(["warning", "recovered", "warning", "recovered"]);
  });
});

describe("document 3, Test event", () => {
  test("same envelope and headers, the real secret, a fixed sample, one attempt, no delivery", async () => {
    receiver.behave(204);
    const before = (await deliveriesOf(runtime, main())).length;
    const result = await requestTestEvent(runtime.redis, main().id);
    expect(result).toMatchObject({ delivered: true, httpStatus: 204, error: null });
    const [request] = receiver.requests;
    expect(request?.body).toMatchObject({
      id: expect.stringMatching(/^evt_test_[0-9a-f]{32}$/),
      type: "webhook.test",
      apiVersion: "2",
      data: { shipment: { orderReference: "TEST-1001", consignee: { country: "IT" } } },
    });
    expect(request?.headers["x-service-event-type"]).toBe("webhook.test");
    expect(request?.headers["x-service-delivery-attempt"]).toBe("1");
    expect(await deliveriesOf(runtime, main())).toHaveLength(before);
  });

  test("a failed one counts neither as a failure nor for a retry", async () => {
    const result = await requestTestEvent(runtime.redis, main().id);
    expect(result).toMatchObject({ delivered: false, httpStatus: 503, error: "status 503" });
    expect(receiver.requests).toHaveLength(1);
    expect(await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });

  test("a successful one makes the endpoint healthy", async () => {
    await attemptOnce();
    expect(await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER)).toHaveLength(1);
    receiver.behave(200);
    await requestTestEvent(runtime.redis, main().id);
    expect(await readFailing(runtime.redis, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });
});
