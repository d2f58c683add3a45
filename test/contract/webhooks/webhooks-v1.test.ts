/** design.md, v1 webhook; document 3, Versioning: v1 stops while a v2 endpoint exists and returns with the last one's end. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { readNotifications } from "#core/merchants/store/notifications.ts";
import { createRunningTime } from "#core/platform/log/running-time.ts";
import { parseCidr } from "#core/platform/network/cidr.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { v1EndpointId } from "#core/webhooks/rules/webhook-v1.ts";
import { readAlerts } from "#core/webhooks/store/alerts.ts";
import { readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { listDeliveries } from "#core/webhooks/store/deliveries/delivery-log.ts";
import { readMoment } from "#core/webhooks/store/shipment-moment.ts";
import { createTransport } from "#core/webhooks/store/transport/transport.ts";
import { checkHealth } from "#processors/webhooks/health-clock.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { applyEvents, newShipment, passTime, STATUS } from "#test/support/product/webhooks.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

const ACKNOWLEDGEMENT = '{"result":"OK"}';
const CHANNEL = "/panel/api/channels/acme-it/webhooks";

let server: Server;
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
const received: { headers: Record<string, unknown>; body: any }[] = [];
let answer: { status: number; body: string };
let receiver: Receiver;
let runtime: TestRuntime;
let panel: TestPanel;
let webhooks: Running;

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      received.push({ headers: request.headers, body: JSON.parse(String(Buffer.concat(chunks))) });
      response.writeHead(answer.status).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  receiver = await startReceiver();
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  const url = `http://localhost:${(server.address() as AddressInfo).port}/v1`;
  if (channel) channel.webhookV1 = { url, acknowledgement: ACKNOWLEDGEMENT };
  runtime = await openTestRuntime(setup, { WEBHOOK_CA_FILE: AUTHORITY.file });
  panel = await openTestPanel(runtime);
  webhooks = await startWebhooks(runtime);
});

afterAll(async () => {
  await webhooks.stop();
  await panel.end();
  await runtime.end();
  await receiver.stop();
  server.closeAllConnections();
  server.close();
});

beforeEach(() => {
  received.length = 0;
  receiver.requests.length = 0;
  answer = { status: 200, body: ACKNOWLEDGEMENT };
});

const at = (hour: number) => `2026-11-10T${String(hour).padStart(2, "0")}:00:00+01:00`;

async function change(): Promise<number> {
  const id = await newShipment(runtime);
  await applyEvents(runtime, id, [{ status: STATUS.inTransit, occurredAt: at(10) }]);
  return id;
}

/** The v1 deliveries of the channel, newest first. */
async function log() {
  const channel = runtime.live.configuration().channelByCode.get("acme-it");
  if (!channel) throw new Error("no channel");
  const page = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, cursor: null, limit: 100 };
  const owner = v1EndpointId(channel.id);
  const now = runtime.live.now();
  return (await listDeliveries(runtime.redis, channel.companyId, owner, page, now)).deliveries;
}

const newest = (state: string, shipmentId: number) =>
  eventually(async () => {
    const [delivery] = await log();
    return delivery?.shipmentId === shipmentId && delivery.state === state ? delivery : null;
  }, `the newest is ${state}`);

describe("webhooks v1", () => {
  test("a status change is posted unsigned over http, and nothing else is", async () => {
    const id = await newShipment(runtime);
    for (const [hour, status] of [
      STATUS.inTransit,
      STATUS.inTransit,
      STATUS.heldInDepot,
    ].entries()) {
      await applyEvents(runtime, id, [{ status, occurredAt: at(10 + hour) }]);
    }
    await eventually(() => received.length === 2, "two changes of status");
    await newest("delivered", id);
    const changed = received.find(({ body }) => body.status === "EXCEPTION");
    expect(changed?.body).toEqual({
      trackingNumber: expect.stringMatching(/^WH/),
      courier: "GLS_ITA",
      reference: null,
      status: "EXCEPTION",
      statusDetail: 4,
      date: "2026-11-10 12:00:00",
      place: "Hub Milano",
    });
    expect(changed?.headers).toMatchObject({ "content-type": "application/json" });
    expect(changed?.headers).not.toHaveProperty("x-service-signature");
    expect(received).toHaveLength(2);
  });

  test("a delivery that has ended is among the notifications of its shipment", async () => {
    const id = await change();
    await newest("delivered", id);
    const { redis, live } = runtime;
    const moment = await readMoment(redis, id, [...live.configuration().channels.keys()]);
    if (!moment) throw new Error("no shipment");
    const { port } = server.address() as AddressInfo;
    const reported = await readNotifications(redis, moment, live.configuration(), live.now());
    expect(reported.map(({ type, result, recipient }) => [type, result, recipient])).toEqual([
      ["webhook", "OK", `http://localhost:${port}/v1`],
    ]);
  });

  test("a delivery cannot be replayed: 409 says so", async () => {
    const { deliveryId } = await newest("delivered", await change());
    const answered = await panel.call("POST", `/panel/api/deliveries/${deliveryId}/replay`);
    expect(answered).toMatchObject({ status: 409, body: { code: "NOT_REPLAYABLE" } });
  });

  test.each([
    ["the acknowledgement with other white space", 200, '{ "result": "OK" }\n', "delivered"],
    ["another body", 200, '{"result":"KO"}', "waiting"],
    ["no body", 204, "", "waiting"],
    ["a 500 with the acknowledgement", 500, ACKNOWLEDGEMENT, "waiting"],
    ["a 404", 404, "", "waiting"],
  ])("%s", async (_, status, body, state) => {
    answer = { status, body };
    const id = await change();
    const { attempts } = await newest(state, id);
    expect(attempts).toHaveLength(1);
    if (status === 200 && state === "waiting") {
      expect(attempts[0]?.error).toBe("not the configured acknowledgement");
    }
  });

  test("what is not acknowledged is tried again on the schedule of v2, frozen as it was", async () => {
    answer = { status: 200, body: "what?" };
    const id = await change();
    const { nextAttemptAtMs, attempts } = await newest("waiting", id);
    const wait = (nextAttemptAtMs ?? 0) - (attempts[0]?.atMs ?? 0);
    expect(Math.abs(wait - 60_000)).toBeLessThan(15_000);
    await applyEvents(runtime, id, [{ status: STATUS.unmapped, occurredAt: at(11) }]);
    answer = { status: 200, body: ACKNOWLEDGEMENT };
    await passTime(runtime, 80);
    const { attemptsMade } = await newest("delivered", id);
    expect(attemptsMade).toBe(2);
    const [first, second] = received.slice(-2);
    expect(second?.body.status).toBe(first?.body.status);
  });

  test("a receiver that stays silent is alerted to nobody and never switched off", async () => {
    answer = { status: 500, body: "" };
    await newest("waiting", await change());
    await passTime(runtime, 4 * 86_400);
    await checkHealth(runtime, createRunningTime(runtime.redis));
    expect(await readAlerts(runtime.redis, 10)).toEqual([]);
    answer = { status: 200, body: ACKNOWLEDGEMENT };
    await newest("delivered", await change());
    // A retry that the four days made due may have been answered with 500 before the receiver worked again.
    await passTime(runtime, 86_400);
    await eventually(
      async () => (await log()).every(({ state }) => state === "delivered"),
      "what was waiting is delivered",
    );
  });
});

describe("document 3, Versioning: change-over", () => {
  const make = async () =>
    (await panel.call("POST", CHANNEL, { url: receiver.url, alertEmail: "o@acme.test" })).body.id;

  test("v1 is silent while any v2 endpoint exists, disabled ones included, and returns with the last one's end", async () => {
    const [one, other] = [await make(), await make()];
    await change();
    await eventually(() => receiver.requests.length === 2, "both endpoints of v2 hear of it");
    expect(received).toEqual([]);
    await panel.call("POST", `/panel/api/webhooks/${one}/disable`);
    await panel.call("DELETE", `/panel/api/webhooks/${other}`);
    const before = (await log()).length;
    const silent = await change();
    const decisions = () => readDecisions(runtime.redis, silent);
    await eventually(async () => (await decisions()).length === 1, "the change is decided");
    expect((await decisions())[0]?.verdicts).toEqual([[one, "disabled"]]);
    await panel.call("DELETE", `/panel/api/webhooks/${one}`);
    const id = await change();
    await newest("delivered", id);
    expect(await log()).toHaveLength(before + 1);
    expect(received).toHaveLength(1);
  });

  test("what v1 had waiting when v2 came fails at once, and its log says why", async () => {
    answer = { status: 503, body: "" };
    const id = await change();
    await newest("waiting", id);
    const path = "/panel/api/channels/acme-it/webhook-v1/deliveries";
    const newestItem = async () => (await panel.call("GET", path)).body.items[0];
    expect(await newestItem()).toMatchObject({ shipmentId: id, state: "waiting", reason: null });
    const endpoint = await make();
    const failed = await eventually(async () => {
      const item = await newestItem();
      return item.state === "failed" && item;
    }, "it does not wait for its retry");
    expect(failed).toMatchObject({
      shipmentId: id,
      reason: "webhooks v2 took over",
      nextAttemptAt: null,
      attempts: [{ attempt: 1, httpStatus: 503 }],
    });
    const unknown = path.replace("acme-it", "nobody");
    expect(await panel.call("GET", unknown)).toMatchObject({ status: 404 });
    await panel.call("DELETE", `/panel/api/webhooks/${endpoint}`);
  });

  test("what v1 had waiting when v2 came is not sent any more", async () => {
    answer = { status: 503, body: "" };
    const id = await change();
    await newest("waiting", id);
    const sent = received.length;
    const endpoint = await make();
    answer = { status: 200, body: ACKNOWLEDGEMENT };
    await passTime(runtime, 3_600);
    const failed = await newest("failed", id);
    expect(failed.reason).toBe("webhooks v2 took over");
    expect(received).toHaveLength(sent);
    await panel.call("DELETE", `/panel/api/webhooks/${endpoint}`);
  });
});

describe("the guard of v2 holds for v1 too", () => {
  const networks = ["127.0.0.0/8"].map(parseCidr).filter((cidr) => cidr !== null);

  test.each(["http://127.0.0.1:1/", "http://[::ffff:10.0.0.1]/", "http://169.254.169.254/"])(
    "%s is refused",
    async (url) => {
      const transport = createTransport({ allowed: [], ca: null });
      const sent = await transport.post(url, {}, "{}", { allowHttp: true });
      expect(sent).toMatchObject({ kind: "refused" });
      transport.close();
    },
  );

  test("http is for v1 alone", async () => {
    const transport = createTransport({ allowed: networks, ca: null });
    const url = `http://localhost:${(server.address() as AddressInfo).port}/`;
    expect(await transport.post(url, {}, "{}")).toMatchObject({
      kind: "refused",
      error: "only https:// is accepted",
    });
    expect(received).toEqual([]);
    expect(await transport.post(url, {}, "{}", { allowHttp: true })).toMatchObject({
      kind: "answered",
      httpStatus: 200,
      responseBody: ACKNOWLEDGEMENT,
    });
    transport.close();
  });
});
