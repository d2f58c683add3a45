/** Document 3, Endpoint: an alert, and that the endpoint works again, are reported once each, whatever is killed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { event, pushUntilAccepted } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { askPanel, readPanel } from "#test/support/clients/operator.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import {
  AUTHORITY,
  DELIVERED_LIMIT_MS,
  type Receiver,
  startReceiver,
} from "#test/support/servers/receiver.ts";
import { STORES } from "#test/support/servers/stores.ts";

const SHIPMENTS = 10;
const EVENTS_PER_MESSAGE = 20;
const KILLS = 3;
const DAY_S = 86_400;
/** So slow that successes are under way whenever the product dies. */
const ANSWER_MS = 100;
const FIRST_MS = Date.parse("2026-11-10T00:00:00Z");

describe.each(STORES)("on %s", (store) => {
  let receiver: Receiver;
  let mails: MailServer;
  let product: Product;
  let events = 0;

  beforeAll(async () => {
    receiver = await startReceiver();
    receiver.behave(503);
    mails = await startMailServer();
    const setup = testSetup();
    const [channel] = setup.companies?.[0]?.channels ?? [];
    const alertEmail = "ops@acme.test";
    const webhook = {
      code: "main",
      url: receiver.url,
      trigger: "every_event",
      alertEmail,
    } as const;
    if (channel) channel.webhooks = [webhook];
    const env = { WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", WEBHOOK_CA_FILE: AUTHORITY.file };
    product = await startProduct(setup, { ...env, SMTP_URL: mails.url }, store);
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await mails.stop();
    await receiver.stop();
  }, 300_000);

  const read = (path: string) => readPanel(product, path);
  const endpoint = async () => (await read("/channels/acme-it/webhooks")).items[0];
  const messageIds = (subject: RegExp) =>
    new Set(mails.received.filter((one) => subject.test(one.subject)).map((one) => one.messageId));

  /** @returns what the courier says in these events, which their webhooks repeat */
  async function send(): Promise<Set<string>> {
    const all = Array.from({ length: EVENTS_PER_MESSAGE }, () => {
      events += 1;
      const occurredAt = new Date(FIRST_MS + events * 60_000).toISOString();
      const status = { code: "TRN", description: `event ${events}` };
      return event({ trackingNumber: `ALERT-${events % SHIPMENTS}`, occurredAt, status });
    });
    await pushUntilAccepted(product.ingest, all);
    return new Set(all.map(({ status }) => status.description));
  }

  test("one alert after 24 hours, and one that it works again", async () => {
    await createShipments(product, "ALERT", SHIPMENTS);
    await send();
    await eventually(async () => (await endpoint()).failingSince !== null, "it fails");
    await askPanel(product, "POST", "/clock", { advanceSeconds: DAY_S });
    await product.kill(false);
    await product.start();
    await eventually(() => messageIds(/24 ore/).size > 0, "the alert is mailed", 60_000);

    receiver.behave((_, response) => void setTimeout(() => response.end(), ANSWER_MS));
    for (let kill = 0; kill < KILLS; kill += 1) {
      const said = await send();
      const isUnderWay = () =>
        receiver.requests.some(({ body }) => said.has(body.data.event.courierStatus));
      await eventually(isUnderWay, "deliveries are under way", DELIVERED_LIMIT_MS);
      await product.kill(kill % 2 === 1);
      await product.start();
    }
    await eventually(() => messageIds(/funzionante/).size > 0, "it is mailed", 60_000);
    await send();
    await eventually(
      async () => {
        const { id } = await endpoint();
        const { items } = await read(`/webhooks/${id}/deliveries?limit=${events}`);
        const recent = items.slice(0, EVENTS_PER_MESSAGE * (KILLS + 1));
        const isDelivered = ({ state }: { state: string }) => state === "delivered";
        return items.length === events && recent.every(isDelivered);
      },
      "everything since is delivered",
      DELIVERED_LIMIT_MS,
    );
    expect(await endpoint()).toMatchObject({ failingSince: null, lastError: null });
    expect(messageIds(/24 ore/).size).toBe(1);
    expect(messageIds(/funzionante/).size).toBe(1);
    expect(messageIds(/./).size).toBe(2);
  }, 300_000);
});
