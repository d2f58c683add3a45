/** Status mails and text messages (document 1: e-mail and phone of the consignee), and what the notifications list tells. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acceptMessages } from "#core/merchants/store/messages.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { retryWaitMs } from "#core/webhooks/rules/retry-schedule.ts";
import { startNotify } from "#processors/notify/start.ts";
import { statusMessagesHandler } from "#processors/notify/status-messages.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  passTime,
  STATUS,
} from "#test/support/product/webhooks.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";

let api: TestApi;
let token: string;
let outlet: string;
let server: MailServer;
let notify: Running;
let webhooks: Running;
let gateway: ReturnType<typeof Bun.serve>;
let counter = 0;
let smsAnswer = 200;
const sms: { id: string; to: string; text: string }[] = [];

beforeAll(async () => {
  const setup = testSetup();
  const [channel, silent] = setup.companies?.[0]?.channels ?? [];
  if (!channel || !silent) throw new Error("the test setup has no channels");
  channel.trackingPage = true;
  channel.emails = {
    managed: true,
    templates: [
      { event: "delivered", language: "it", subject: "arrivata", body: "{{trackingUrl}}" },
    ],
    statusNotifications: ["OUT_FOR_DELIVERY", "DELIVERED"],
  };
  channel.webhooks = [
    { code: "main", url: "https://127.0.0.1:1/hook?key=s3cret", alertEmail: "o@acme.test" },
  ];
  silent.emails = { statusNotifications: ["OUT_FOR_DELIVERY"] };
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
  outlet = await api.token("key_acme_outlet");
  server = await startMailServer();
  gateway = Bun.serve({
    port: 0,
    async fetch(request) {
      if (smsAnswer < 300) sms.push((await request.json()) as (typeof sms)[number]);
      return new Response(null, { status: smsAnswer });
    },
  });
  const config = {
    ...api.runtime.config,
    smtpUrl: server.url,
    smsGatewayUrl: `http://127.0.0.1:${gateway.port}/sms`,
  };
  notify = await startNotify({ ...api.runtime, config });
  webhooks = await startWebhooks(api.runtime);
});
afterAll(async () => {
  await notify.stop();
  await webhooks.stop();
  await gateway.stop();
  await server.stop();
  await api.end();
});

async function create(members: object = {}, as = token) {
  counter += 1;
  const consignee = { email: `eva+${counter}@client.test`, phone: `+39 ${counter}` };
  const body = { shipments: [item(`STATUS-${counter}`, { consignee, ...members })] };
  const answer = await api.call("POST", "/v2/shipments", { token: as, body });
  return { ...answer.body.items[0], to: `eva+${counter}@client.test`, phone: `+39 ${counter}` };
}

async function notifications(id: number, type: string) {
  const { body } = await api.call("GET", `/v2/shipments/${id}`, { token });
  return body.notifications.filter((one: { type: string }) => one.type === type);
}

const mailsTo = (to: string) => server.received.filter((one) => one.to.includes(to));
const smsTo = (to: string) => sms.filter((one) => one.to === to);
const mail = (to: string) => eventually(() => mailsTo(to)[0], "the mail arrives");

/** Until what happened before has been reported: a later change of another shipment has. */
async function settled(): Promise<void> {
  const { id, to } = await create();
  await applyEvents(api.runtime, id, [{ status: STATUS.delivered }]);
  await mail(to);
}

describe("e-mail", () => {
  test("a status that the channel names: the template of its name, to the shipment's address", async () => {
    const { id, to, trackingUrl } = await create();
    await applyEvents(api.runtime, id, [{ status: STATUS.delivered }]);
    const read = await mail(to);
    expect(read.subject).toBe("arrivata");
    expect(read.html).toContain(trackingUrl);
    await eventually(async () => (await notifications(id, "email")).length === 1, "it is reported");
    expect((await notifications(id, "email"))[0]).toMatchObject({
      result: "OK",
      recipient: to,
      shipmentStatus: "DELIVERED",
      error: null,
    });
  });

  test("without a template our own words, in the shipment's language", async () => {
    const { id, to, trackingUrl, trackingNumber } = await create({ language: "de" });
    await applyEvents(api.runtime, id, [{ status: STATUS.outForDelivery }]);
    const { subject, html } = await mail(to);
    expect(subject).toBe("Acme Italia: In Zustellung");
    expect(html).toContain(`Sendungsnummer: ${trackingNumber} (GLS Italy)`);
    expect(html).toContain(`<a href="${trackingUrl}">Sendung verfolgen</a>`);
  });

  test("nothing for other statuses, for channels whose mails are not ours, and without an address", async () => {
    const other = await create();
    const foreign = await create({}, outlet);
    const without = await create({ consignee: { name: "Eva" } });
    await applyEvents(api.runtime, other.id, [{ status: STATUS.inTransit }]);
    await applyEvents(api.runtime, foreign.id, [{ status: STATUS.outForDelivery }]);
    await applyEvents(api.runtime, without.id, [{ status: STATUS.delivered }]);
    await settled();
    expect([other, foreign, without].flatMap(({ to }) => mailsTo(to))).toEqual([]);
  });

  test("news that a later change has overtaken is not sent", async () => {
    const { id, to } = await create();
    await applyEvents(api.runtime, id, [
      { status: STATUS.outForDelivery, occurredAt: "2026-11-10T10:00:00+01:00" },
      { status: STATUS.delivered, occurredAt: "2026-11-10T12:00:00+01:00" },
    ]);
    await mail(to);
    await settled();
    expect(mailsTo(to).map(({ subject }) => subject)).toEqual(["arrivata"]);
  });

  test("a change that is read twice is reported once", async () => {
    const { redis, live, log } = api.runtime;
    const { id, to } = await create();
    await applyEvents(api.runtime, id, [{ status: STATUS.delivered }]);
    await mail(to);
    await notify.stop();
    const again: Consumer = startConsumer({
      redis,
      log,
      source: "change",
      group: "analytics",
      batch: 100,
      handler: statusMessagesHandler({ redis, live, hasSms: true }),
    });
    await eventually(async () => {
      const lags = await readLags(redis);
      return lags.find(({ group }) => group === "analytics")?.entries === 0;
    }, "everything has been read again");
    await again.stop();
    const config = { ...api.runtime.config, smtpUrl: server.url };
    notify = await startNotify({
      ...api.runtime,
      config: { ...config, smsGatewayUrl: `http://127.0.0.1:${gateway.port}/sms` },
    });
    await settled();
    expect([mailsTo(to).length, smsTo("+39 1").length]).toEqual([1, 1]);
  });
});

describe("an address of a message that is not one mailbox", () => {
  test("as an earlier version took it, is KO at once and mailed to nobody", async () => {
    const { redis, live } = api.runtime;
    const { id, to } = await create();
    const message = {
      messageId: "m-of-before",
      type: "email" as const,
      shipmentId: id,
      from: null,
      to: `anna;${to}`,
      subject: "s",
      text: "t",
      html: null,
    };
    await acceptMessages(redis, [{ message, topic: "t", oncePerMs: null }], live.now());
    const [reported] = await eventually(async () => {
      const found = await notifications(id, "email");
      return found.length > 0 && found;
    }, "it is reported");
    expect(reported).toMatchObject({ result: "KO", error: "The address is not one mailbox." });
    expect(mailsTo(to)).toEqual([]);
  });
});

describe("SMS", () => {
  test("one message to the phone, through the gateway, with the tracking page's address", async () => {
    const { id, phone, trackingUrl, trackingNumber } = await create();
    await applyEvents(api.runtime, id, [{ status: STATUS.outForDelivery }]);
    const sent = await eventually(() => smsTo(phone)[0], "the text arrives");
    expect(sent.text).toBe(`Acme Italia: In consegna (${trackingNumber}) ${trackingUrl}`);
    await eventually(async () => (await notifications(id, "sms")).length === 1, "it is reported");
    expect((await notifications(id, "sms"))[0]).toMatchObject({ result: "OK", recipient: phone });
  });

  test("a gateway that refuses is KO with the reason", async () => {
    smsAnswer = 400;
    const { id, phone } = await create();
    await applyEvents(api.runtime, id, [{ status: STATUS.delivered }]);
    const [reported] = await eventually(async () => {
      const found = await notifications(id, "sms");
      return found.length > 0 && found;
    }, "it is reported");
    smsAnswer = 200;
    expect(reported).toMatchObject({ result: "KO", recipient: phone });
    expect(reported.error).toContain("400");
  });
});

describe("webhooks in the list", () => {
  test("a delivery that has ended, with the endpoint's address and without its query, which may hold a secret", async () => {
    const { id } = await create();
    await applyEvents(api.runtime, id, [{ status: STATUS.inTransit }]);
    const endpoint = endpointOf(api.runtime, "main");
    // Time passes no faster than attempts are made: an endpoint that fails for three days is disabled.
    for (let made = 1; ; made += 1) {
      const longestWaitMs = retryWaitMs(made, 1, null);
      if (longestWaitMs === null) break;
      await eventually(async () => {
        const all = await deliveriesOf(api.runtime, endpoint);
        const own = all.find(({ shipmentId }) => shipmentId === id);
        return own?.state === "waiting" && own.attemptsMade === made;
      }, `attempt ${made} is made`);
      await passTime(api.runtime, longestWaitMs / 1_000);
    }
    const signIn = { body: { apiKey: "key_acme_main" } };
    token = (await api.call("POST", "/v2/auth/token", signIn)).body.token;
    const [reportedNow] = await eventually(async () => {
      const found = await notifications(id, "webhook");
      return found.length > 0 && found;
    }, "the last attempt is reported");
    expect(reportedNow).toMatchObject({
      type: "webhook",
      result: "KO",
      recipient: "https://127.0.0.1:1/hook",
      shipmentStatus: "IN_TRANSIT",
    });
    expect(reportedNow.error).toEqual(expect.any(String));
  });
});
