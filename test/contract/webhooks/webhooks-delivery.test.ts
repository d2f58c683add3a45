import { beforeEach, describe, expect, test } from "bun:test";
import Stripe from "stripe";
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import { replayDeliveries } from "#core/webhooks/store/deliveries/replays.ts";
import { rotateEndpointSecret } from "#core/webhooks/store/endpoints.ts";
import { WEBHOOK_SECRET } from "#test/support/data/setup.ts";
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

/** What a busy machine may add between an attempt and its record. */
const SLOWNESS_MS = 10_000;

const MINUTE_S = 60;
const HOUR_S = 3_600;

const receiver = forAll(() => startReceiver({ path: "/hook?shop=1" }));
const runtime = forAll(() => openWebhookRuntime([{ url: receiver.url }]));
forAll(async () => startPipeline(runtime, sendDeps(runtime)));

beforeEach(() => {
  receiver.requests.length = 0;
  receiver.behave(200);
});

const main = () => endpointOf(runtime, "main");

async function newest() {
  const [delivery] = await deliveriesOf(runtime, main());
  if (!delivery) throw new Error("no delivery");
  return delivery;
}

/** One change of a new shipment; settles once its first attempt is recorded. */
async function attemptOnce() {
  const shipmentId = await newShipment(runtime);
  await applyEvents(runtime, shipmentId, [{ status: STATUS.inTransit }]);
  return eventually(async () => {
    const [delivery] = await deliveriesOf(runtime, main());
    return delivery?.shipmentId === shipmentId && delivery.attempts.length > 0 ? delivery : null;
  }, "the first attempt is recorded");
}

describe("document 3, Receiver request", () => {
  test("the request carries exactly the headers and the payload of the document", async () => {
    const delivery = await attemptOnce();
    const [request] = receiver.requests;
    expect(request).toMatchObject({
      method: "POST",
      path: "/hook?shop=1",
      serverName: "localhost",
    });
    expect(request?.headers).toMatchObject({
      host: `localhost:${receiver.port}`,
      "content-type": "application/json",
      "user-agent": "Service-Webhooks/2",
      "x-service-event-id": delivery.eventId,
      "x-service-event-type": "shipment.updated",
      "x-service-delivery-attempt": "1",
    });
    const { body } = request ?? {};
    expect(body).toMatchObject({
      id: delivery.eventId,
      type: "shipment.updated",
      apiVersion: "2",
      data: {
        trigger: "status_change",
        shipment: { id: delivery.shipmentId, status: "IN_TRANSIT", statusDetail: 0 },
        event: {
          date: "2026-11-10 10:00:00",
          courierStatus: "In transito",
          place: "Hub Milano",
          status: null,
          statusCode: "IN_TRANSIT",
          statusDetail: null,
          statusDetailId: 0,
        },
      },
    });
    expect(body.id).toMatch(/^evt_/);
    expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/);
    expect(body.data.shipment).not.toHaveProperty("consignee");
    expect(body.data.shipment.statusDate).toBe("2026-11-10 10:00:00");
    expect(delivery).toMatchObject({ state: "delivered", nextAttemptAtMs: null });
  });

  test("a delivery's signature is valid to the `stripe` package, and to no other secret", async () => {
    await attemptOnce();
    const [request] = receiver.requests;
    const header = String(request?.headers["x-service-signature"]);
    const nowSeconds = Math.floor(runtime.live.now() / 1000);
    const stripe = new Stripe("sk_test_none");
    const verify = (secret: string) =>
      stripe.webhooks.constructEventAsync(
        request?.raw ?? "",
        header,
        secret,
        300,
        undefined,
        nowSeconds,
      );
    expect(await verify(WEBHOOK_SECRET)).toMatchObject({ id: request?.body.id });
    await expect(verify(`whsec_${"f".repeat(64)}`)).rejects.toThrow();
  });
});

describe("document 3, Errors: receiver answers", () => {
  test.each([200, 201, 202, 204, 299])("%i is a delivery", async (status) => {
    receiver.behave(status);
    const delivery = await attemptOnce();
    expect(delivery).toMatchObject({ state: "delivered", reason: null });
    expect(delivery.attempts).toMatchObject([{ attempt: 1, httpStatus: status, error: null }]);
  });

  test.each([408, 429, 500, 502, 503, 504, 599])("%i waits for a retry", async (status) => {
    receiver.behave(status);
    const delivery = await attemptOnce();
    expect(delivery).toMatchObject({ state: "waiting" });
    expect(delivery.attempts).toMatchObject([{ httpStatus: status, error: `status ${status}` }]);
  });

  test.each([301, 302, 307, 308])("%i fails at once and is not followed", async (status) => {
    receiver.behave(
      (_, response) =>
        void response.writeHead(status, { location: `${receiver.url}&again=1` }).end(),
    );
    const delivery = await attemptOnce();
    expect(delivery).toMatchObject({ state: "failed" });
    expect(receiver.requests.filter(({ path }) => path.includes("again"))).toEqual([]);
  });

  test.each([304, 400, 401, 403, 404, 409, 410, 422])("%i fails at once", async (status) => {
    receiver.behave(status);
    expect(await attemptOnce()).toMatchObject({ state: "failed", attemptsMade: 1 });
  });

  test("an answer is kept with a snippet of 1 KiB at most", async () => {
    receiver.behave((_, response) => void response.writeHead(500).end("é".repeat(5_000)));
    const [attempt] = (await attemptOnce()).attempts;
    expect(attempt?.responseSnippet).toBe("é".repeat(512));
  });
});

/** Resolves when the newest delivery has this many attempts and is not under way. */
async function attempts(count: number) {
  return eventually(async () => {
    const delivery = await newest();
    return delivery.attempts.length === count ? delivery : null;
  }, `${count} attempts`);
}

describe("document 3, Retry schedule", () => {
  test("eight attempts at the nominal waits, each with its number, then failed", async () => {
    receiver.behave(503);
    const first = await attemptOnce();
    const waits = [1, 5, 15, 60, 180, 360, 720].map((minutes) => minutes * MINUTE_S);
    for (const [at, wait] of waits.entries()) {
      const before = await attempts(at + 1);
      const last = before.attempts.at(-1);
      expect(before.state).toBe("waiting");
      const waited = (before.nextAttemptAtMs ?? 0) - (last?.atMs ?? 0);
      expect(Math.abs(waited - wait * 1000)).toBeLessThan(SLOWNESS_MS);
      await passTime(runtime, wait);
    }
    const failed = await attempts(8);
    expect(failed).toMatchObject({ state: "failed", reason: "attempts used up" });
    const own = receiver.requests.filter(({ body }) => body.id === first.eventId);
    expect(own.map(({ headers }) => headers["x-service-delivery-attempt"])).toEqual([
      "1",
      "2",
      "3",
      "4",
      "5",
      "6",
      "7",
      "8",
    ]);
  });

  test("nothing is sent before its time", async () => {
    receiver.behave(500);
    const delivery = await attemptOnce();
    await passTime(runtime, 50);
    await attemptOnce();
    const own = receiver.requests.filter(({ body }) => body.id === delivery.eventId);
    expect(own).toHaveLength(1);
  });

  test.each([
    ["seconds lengthen the wait", () => "7200", 2 * HOUR_S],
    [
      "an HTTP date lengthens the wait",
      () => new Date(runtime.live.now() + 2 * HOUR_S * 1000).toUTCString(),
      2 * HOUR_S,
    ],
    ["12 hours are the most", () => "86400", 12 * HOUR_S],
    ["a shorter wait than the schedule's does not count", () => "5", MINUTE_S],
    ["an unreadable one does not count", () => "soon", MINUTE_S],
  ])("Retry-After: %s", async (_, header, waitS) => {
    receiver.behave(
      (__, response) => void response.writeHead(503, { "retry-after": header() }).end(),
    );
    const delivery = await attemptOnce();
    const waited = (delivery.nextAttemptAtMs ?? 0) - (delivery.attempts[0]?.atMs ?? 0);
    expect(Math.abs(waited - waitS * 1000)).toBeLessThan(SLOWNESS_MS);
  });

  test("a retry sends the frozen fact with the shipment as it is now, under the same id", async () => {
    receiver.behave(500);
    const { shipmentId, eventId } = await attemptOnce();
    receiver.behave(200);
    const delivered = { status: STATUS.delivered, occurredAt: "2026-11-11T10:00:00+01:00" };
    await applyEvents(runtime, shipmentId, [delivered]);
    await passTime(runtime, 2 * MINUTE_S);
    const retry = await eventually(
      () => receiver.requests.filter(({ body }) => body.id === eventId)[1],
      "the retry arrives",
    );
    expect(retry.body.data.event.statusCode).toBe("IN_TRANSIT");
    expect(retry.body.data.shipment.status).toBe("DELIVERED");
    expect(retry.headers["x-service-delivery-attempt"]).toBe("2");
  });
});

describe("document 3, Delivery: replay", () => {
  test("a failed delivery is queued as new: same id, attempts from 1, next generation", async () => {
    receiver.behave(400);
    const failed = await attemptOnce();
    receiver.behave(200);
    const replay = () => replayDeliveries(runtime.redis, [failed.deliveryId], runtime.live.now());
    expect(await replay()).toEqual([failed.deliveryId]);
    const replayed = await attempts(2);
    expect(replayed).toMatchObject({ state: "delivered", generation: 2, attemptsMade: 1 });
    const own = receiver.requests.filter(({ body }) => body.id === failed.eventId);
    expect(own.map(({ headers }) => headers["x-service-delivery-attempt"])).toEqual(["1", "1"]);
    expect(await replay()).toEqual([failed.deliveryId]);
  });

  test("after 30 days a delivery is gone", async () => {
    receiver.behave(400);
    const failed = await attemptOnce();
    await passTime(runtime, 30 * 24 * HOUR_S);
    expect(await deliveriesOf(runtime, main())).toEqual([]);
    const queued = await replayDeliveries(runtime.redis, [failed.deliveryId], runtime.live.now());
    expect(queued).toEqual([]);
  });
});

test("during a rotation both secrets sign, the new one first; after 24 hours the new one only", async () => {
  const { redis, secrets, live } = runtime;
  const fresh = `whsec_${"abcdef0123456789".repeat(4)}`;
  const { id, secret: replaces } = main();
  await rotateEndpointSecret(redis, id, {
    sealed: secrets.vault.seal(fresh),
    replaces,
    revokePrevious: false,
    nowMs: live.now(),
  });
  const judge = (request = receiver.requests.at(-1)) => {
    const header = String(request?.headers["x-service-signature"]);
    const raw = Buffer.from(request?.raw ?? "");
    const valid = [fresh, WEBHOOK_SECRET].map((one) =>
      verifySignature(header, [one], raw, live.now()),
    );
    return { count: header.split("v1=").length - 1, valid };
  };
  await attemptOnce();
  expect(judge()).toEqual({ count: 2, valid: ["valid", "valid"] });
  await passTime(runtime, 24 * HOUR_S);
  await attemptOnce();
  expect(judge()).toEqual({ count: 1, valid: ["valid", "mismatch"] });
});
