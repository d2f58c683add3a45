/** Document 3, Receiver request sent by the service: what the delivery log tells of each request. */
import { afterEach, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { EARLIER_TARGETS_KEPT } from "#core/configuration/store/endpoint-entity.ts";
import { companyPartition, shipmentPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { v1EndpointId } from "#core/webhooks/rules/webhook-v1.ts";
import { deliveryIdOf, readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  openWebhookRuntime,
  passTime,
  STATUS,
} from "#test/support/product/webhooks.ts";
import { type ReceivedRequest, startReceiver } from "#test/support/servers/receiver.ts";

let shipments = 0;

const receiver = forAll(startReceiver);
const runtime = forAll(() =>
  openWebhookRuntime([
    { url: `${receiver.url}?key=1`, trigger: "every_event", include: ["consignee"] },
  ]),
);
const panel = forAll(() => openTestPanel(runtime));
forAll(() => startWebhooks(runtime));

afterEach(() => {
  receiver.requests.length = 0;
  receiver.behave(200);
});

const id = () => endpointOf(runtime, "main").id;
const change = (patch: object) => panel.call("PATCH", `/panel/api/webhooks/${id()}`, patch);
const one = async (deliveryId: string) =>
  (await panel.call("GET", `/panel/api/deliveries/${deliveryId}`)).body;

/** One event of a new shipment, whose first attempt is recorded. */
async function deliver() {
  shipments += 1;
  const consignee = { name: "Ada Bianchi", email: `ada+${shipments}@client.test` };
  const shipmentId = await addShipment(runtime, `SENT-${shipments}`, { consignee });
  await applyEvents(runtime, shipmentId, [{ status: STATUS.inTransit }]);
  return eventually(async () => {
    const [newest] = await deliveriesOf(runtime, endpointOf(runtime, "main"));
    return newest?.shipmentId === shipmentId && newest.attempts.length > 0 ? newest : null;
  }, "the first attempt is recorded");
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** The headers as received, without signatures and what concerns the connection only. */
function headersOf({ headers }: ReceivedRequest) {
  const untold = ["x-service-signature", "webhook-signature", "connection"];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !untold.includes(name)));
}

const lowerCase = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

test.each([false, true])(
  "an attempt tells its URL, its headers without signatures, hash and size of its body; Standard Webhooks: %p",
  async (standardWebhooks) => {
    await change({ standardWebhooks });
    const { deliveryId } = await deliver();
    const [received] = receiver.requests;
    if (!received) throw new Error("nothing was received");
    const { attempts, body } = await one(deliveryId);
    const { request, bodyMatches } = attempts[0];
    expect(request.url).toBe(`${receiver.url}?key=1`);
    expect(lowerCase(request.headers)).toEqual(headersOf(received) as Record<string, string>);
    expect(JSON.stringify(request)).not.toMatch(/v1[=,]|whsec_/);
    expect([request.bodySha256, request.bodyBytes]).toEqual([
      sha256(received.raw),
      Buffer.byteLength(received.raw),
    ]);
    expect(body).toEqual({
      text: received.raw,
      sha256: sha256(received.raw),
      bytes: request.bodyBytes,
    });
    expect(bodyMatches).toBe(true);
  },
);

test("an endpoint gets CloudEvents 1.0 under a signature of the bytes sent; a retry and a replay have the format then set, and the log tells of each", async () => {
  await change({ bodyFormat: "cloudevents", standardWebhooks: true });
  receiver.behave(503);
  const { deliveryId } = await deliver();
  const [first] = receiver.requests;
  const { id: eventId, data, ...attributes } = first?.body ?? {};
  expect(attributes).toEqual({
    specversion: "1.0",
    source: "/channels/acme-it",
    type: "shipment.updated",
    subject: `shipments/${data.shipment.id}`,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*[+]0[12]:00$/),
    datacontenttype: "application/json",
    apiversion: "2",
  });
  expect(data).toMatchObject({ trigger: "every_event", event: { statusCode: "IN_TRANSIT" } });
  const { headers = {}, raw = "" } = first ?? {};
  expect(headers).toMatchObject({
    "content-type": "application/cloudevents+json",
    "x-service-event-id": eventId,
    "webhook-id": eventId,
  });
  const [timestamp = "", signature = ""] = String(headers["x-service-signature"]).split(",");
  const signed = `${timestamp.slice(2)}.${raw}`;
  const hmac = createHmac("sha256", WEBHOOK_SECRET).update(signed).digest("hex");
  expect(signature).toBe(`v1=${hmac}`);
  const tested = await panel.call("POST", `/panel/api/webhooks/${id()}/test`);
  expect(tested.status).toBe(200);
  expect(receiver.requests.at(-1)?.body).toMatchObject({
    specversion: "1.0",
    type: "webhook.test",
  });
  await change({ bodyFormat: "waybill" });
  receiver.behave(200);
  await passTime(runtime, 120);
  const detail = await eventually(async () => {
    const found = await one(deliveryId);
    return found.state === "delivered" ? found : null;
  }, "the retry is delivered");
  const types = detail.attempts.map(
    ({ request }: { request: { headers: Record<string, string> } }) =>
      request.headers["Content-Type"],
  );
  expect(types).toEqual(["application/cloudevents+json", "application/json"]);
  expect(JSON.parse(detail.body.text)).toMatchObject({ id: eventId, apiVersion: "2", data: {} });
  await change({ bodyFormat: "cloudevents", standardWebhooks: false });
  receiver.requests.length = 0;
  await panel.call("POST", `/panel/api/deliveries/${deliveryId}/replay`);
  const replayed = await eventually(() => receiver.requests[0] ?? null, "the replay arrives");
  expect(replayed.body).toMatchObject({ specversion: "1.0", id: eventId });
  await change({ bodyFormat: "waybill" });
});

test("the body is rebuilt with the shipment as it is now, and each attempt tells whether it sent exactly that", async () => {
  receiver.behave(503);
  const { deliveryId, shipmentId } = await deliver();
  await applyEvents(runtime, shipmentId, [
    { status: STATUS.delivered, occurredAt: new Date(runtime.live.now()).toISOString() },
  ]);
  receiver.behave(200);
  await passTime(runtime, 120);
  const detail = await eventually(async () => {
    const found = await one(deliveryId);
    return found.state === "delivered" ? found : null;
  }, "the retry is delivered");
  const sent = receiver.requests.filter((request) => request.body.id === detail.eventId);
  expect(detail.attempts.map((each: { bodyMatches: boolean }) => each.bodyMatches)).toEqual([
    false,
    true,
  ]);
  expect(detail.attempts[0].request.bodySha256).toBe(sha256(sent[0]?.raw ?? ""));
  expect(detail.body.text).toBe(sent[1]?.raw ?? "");
});

test("nobody's data is kept with a delivery, and its request costs no more than 80 bytes", async () => {
  const { deliveryId } = await deliver();
  const { channels } = runtime.live.configuration();
  const companyId = channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0;
  const row = await runtime.redis.hGetAll(
    webhookKeys(companyPartition(companyId)).delivery(deliveryId),
  );
  expect(receiver.requests[0]?.raw).toContain("Ada Bianchi");
  expect(JSON.stringify(row)).not.toMatch(/Ada|client\.test|SENT-/);
  const [attempt] = JSON.parse(row["a"] ?? "[]");
  expect(JSON.stringify(attempt.slice(-3)).length).toBeLessThan(80);
});

test("a list tells the requests too, and no body", async () => {
  const { deliveryId } = await deliver();
  const { body } = await panel.call("GET", `/panel/api/webhooks/${id()}/deliveries?limit=1`);
  const [item] = body.items;
  expect(item.deliveryId).toBe(deliveryId);
  expect(item.attempts[0].request.url).toBe(`${receiver.url}?key=1`);
  expect(item).not.toHaveProperty("body");
  expect(item.attempts[0]).not.toHaveProperty("bodyMatches");
});

test(`a request keeps its URL through ${EARLIER_TARGETS_KEPT} changes of the endpoint, by panel and setup file`, async () => {
  const { deliveryId } = await deliver();
  const shown = async () => (await one(deliveryId)).attempts[0].request;
  const before = await shown();
  for (let n = 2; n <= EARLIER_TARGETS_KEPT; n += 1)
    await change({ url: `${receiver.url}?n=${n}` });
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  const webhook = { code: "main", url: `${receiver.url}?file`, alertEmail: "o@m.test" };
  if (channel) channel.webhooks = [webhook];
  const { redis, secrets, live, config } = runtime;
  const { webhookAllowedCidrs } = config;
  await applySetup(redis, secrets.vault, setup, live.now(), { webhookAllowedCidrs });
  expect(await shown()).toEqual(before);
  await change({ url: `${receiver.url}?one-more` });
  const { url, headers } = await shown();
  expect(url).toBeNull();
  expect(headers).not.toHaveProperty("Host");
  await change({ url: `${receiver.url}?key=1` });
  expect((await shown()).url).toBe(`${receiver.url}?key=1`);
});

test("a receiver that echoes its request shows nobody a signature that is still valid", async () => {
  await change({ standardWebhooks: true });
  const echoed = new Promise<ReceivedRequest>((resolve) => {
    receiver.behave((request, response) => {
      const { headers } = request;
      const own = /v1=(\w+)/.exec(String(headers["x-service-signature"]))?.[1] ?? "";
      const standard = String(headers["webhook-signature"]);
      const echo = [
        JSON.stringify({ own: headers["x-service-signature"], standard }),
        `bad signature ${own.toUpperCase()}`,
        encodeURIComponent(`${headers["x-service-signature"]} ${standard}`),
        standard.replaceAll("/", "\\/"),
        `kept: t=${/t=(\d+)/.exec(String(headers["x-service-signature"]))?.[1]}`,
      ];
      response.writeHead(400).end(echo.join("\n"));
      resolve(request);
    });
  });
  const delivery = await deliver();
  const { headers } = await echoed;
  const signatures = [
    ...String(headers["x-service-signature"]).matchAll(/(?<=v1=)[0-9a-f]{64}/g),
    ...String(headers["webhook-signature"]).matchAll(/(?<=v1,)\S+/g),
  ].map(([value]) => value);
  expect(signatures).toHaveLength(2);
  const trace = await panel.call("GET", `/panel/api/shipments/${delivery.shipmentId}/trace`);
  const log = await panel.call("GET", `/panel/api/webhooks/${id()}/deliveries?limit=1`);
  const shown = [await one(delivery.deliveryId), log.body, trace.body];
  for (const answer of shown) {
    const text = decodeURIComponent(
      JSON.stringify(answer).replaceAll("\\", "").replaceAll("%2F", "/"),
    ).toLowerCase();
    expect(text).toContain("kept: t=");
    for (const value of signatures) expect(text).not.toContain(value.toLowerCase().slice(0, 20));
  }
  await change({ standardWebhooks: false });
});

test("an echoed signature that an earlier version recorded is masked when it is read", async () => {
  const delivery = await deliver();
  const signature = "0123456789abcdef".repeat(4);
  const { deliveryId, endpointId, eventId, shipmentId } = delivery;
  const key = webhookKeys(shipmentPartition(shipmentId)).delivery(
    deliveryIdOf(shipmentPartition(shipmentId), endpointId, eventId),
  );
  const snippet = `t=1,v1=${signature} v1,${"Ab+/".repeat(10)}Abc=`;
  await runtime.redis.hSet(key, "a", JSON.stringify([[1, 1, 0, 400, 1, null, snippet]]));
  const { attempts } = await one(deliveryId);
  expect(attempts[0].responseSnippet).toBe("t=1,v1=*** v1,***");
});

test("webhooks v1: the same, unsigned", async () => {
  const setup = testSetup();
  const beta = setup.companies?.[1]?.channels?.[0];
  const url = `${receiver.url}/v1`;
  if (beta) beta.webhookV1 = { url, acknowledgement: "OK" };
  const { redis, secrets, live, config } = runtime;
  const { webhookAllowedCidrs } = config;
  await applySetup(redis, secrets.vault, setup, live.now(), { webhookAllowedCidrs });
  const channel = (await live.refresh()).channelByCode.get("beta-it");
  const shipmentId = await addShipment(runtime, "SENT-V1", { channel: "beta-it" });
  receiver.behave((_, response) => void response.end("OK"));
  await applyEvents(runtime, shipmentId, [{ status: STATUS.inTransit }]);
  const detail = await eventually(async () => {
    const [decision] = await readDecisions(redis, shipmentId);
    const partition = shipmentPartition(shipmentId);
    const endpointId = v1EndpointId(channel?.id ?? 0);
    const found = decision && (await one(deliveryIdOf(partition, endpointId, decision.eventId)));
    return found?.state === "delivered" ? found : null;
  }, "it is delivered");
  const [received] = receiver.requests;
  expect(detail.body.text).toBe(received?.raw);
  const [{ request, bodyMatches }] = detail.attempts;
  expect([request.url, bodyMatches]).toEqual([url, true]);
  expect(lowerCase(request.headers)).toEqual(
    headersOf(received as ReceivedRequest) as Record<string, string>,
  );
});

test("attempts that an earlier version recorded are shown without their requests", async () => {
  const { deliveryId } = await deliver();
  const { channels } = runtime.live.configuration();
  const companyId = channels.get(endpointOf(runtime, "main").channelId)?.companyId ?? 0;
  const old = { generation: 1, attempt: 1, atMs: 0, httpStatus: 200, durationMs: 3 };
  const attempts = [{ ...old, error: null, responseSnippet: "ok" }];
  const key = webhookKeys(companyPartition(companyId)).delivery(deliveryId);
  await runtime.redis.hSet(key, "a", JSON.stringify(attempts));
  expect((await one(deliveryId)).attempts).toEqual([
    {
      generation: 1,
      attempt: 1,
      at: "1970-01-01T00:00:00.000Z",
      httpStatus: 200,
      durationMs: 3,
      error: null,
      responseSnippet: "ok",
      responseHeaders: null,
      request: null,
      bodyMatches: null,
    },
  ]);
  await panel.call("POST", `/panel/api/deliveries/${deliveryId}/replay`);
  await eventually(async () => {
    const { attempts: both } = await one(deliveryId);
    return both.length === 2 && both[1].request !== null;
  }, "a new attempt stands beside the old one");
});
