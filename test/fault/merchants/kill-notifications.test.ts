/** An accepted notification takes effect once, whatever is killed (document 1, "Events": asynchronous and recorded). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { untilServed } from "#test/support/clients/until-served.ts";
import { expectSettled, listAll } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import { onServer, STORES } from "#test/support/servers/stores.ts";

const SHIPMENTS = 60;
const KILLS = 2;

describe.each(STORES)("on %s", (store) => {
  let product: Product;
  let server: MailServer;

  beforeAll(async () => {
    server = await startMailServer();
    const setup = testSetup();
    const channel = setup.companies?.[0]?.channels?.[0];
    if (!channel) throw new Error("the test setup has no channel");
    const template = { event: "review", language: "it" as const, subject: "s", body: "b" };
    channel.emails = { managed: true, templates: [template] };
    product = await startProduct(setup, { SMTP_URL: server.url, ...onServer(store, 16) }, store);
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await server.stop();
  }, 300_000);

  test("every accepted notification is mailed, under one Message-ID, and recorded once", async () => {
    let merchant = await signIn(product.api, "key_acme_main");
    const shipments = Array.from({ length: SHIPMENTS }, (_, n) =>
      shipmentItem(`KILL-MAIL-${n}`, { consignee: { email: `r${n}@client.test` } }),
    );
    const { body } = await merchant.call("POST", "/v2/shipments", { shipments });
    const ids: number[] = body.items.map(({ id }: { id: number }) => id);
    const accepted = new Map<number, string>();
    const part = Math.ceil(SHIPMENTS / (KILLS + 1));
    for (let kill = 0; kill <= KILLS; kill += 1) {
      for (const id of ids.slice(kill * part, (kill + 1) * part)) {
        const answer = await merchant.call("POST", `/v2/shipments/${id}/notifications`, {
          event: "review",
        });
        expect(answer.status).toBe(202);
        accepted.set(id, answer.body.notificationId);
      }
      if (kill === KILLS) break;
      await product.kill(kill % 2 === 1);
      await product.start();
      merchant = await signIn(product.api, "key_acme_main");
    }
    await eventually(
      async () => {
        const details = await Promise.all(
          ids.map((id) => untilServed(() => merchant.call("GET", `/v2/shipments/${id}`))),
        );
        return details.every(({ notifications }) => notifications.length === 1);
      },
      "every notification is recorded",
      60_000,
    );
    await expectSettled(product, 0);
    const found = await listAll(merchant, "status=PENDING");
    expect(found.map(({ id }) => id)).toEqual(ids);
    for (const [at, id] of ids.entries()) {
      const mails = server.received.filter(({ to }) => to.includes(`r${at}@client.test`));
      expect(mails.length).toBeGreaterThan(0);
      const names = new Set(mails.map(({ messageId }) => messageId));
      expect([...names][0]).toContain(accepted.get(id) ?? "none");
      expect(names.size).toBe(1);
    }
  }, 300_000);
});
