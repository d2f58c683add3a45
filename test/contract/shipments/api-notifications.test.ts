/** Document 1, `POST /v2/shipments/{id}/notifications`: mails read back from a real SMTP server. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { takeWork } from "#core/merchants/store/jobs/work-queue.ts";
import { MESSAGES_WAITING } from "#core/merchants/store/messages.ts";
import { companyTag, shipmentPartition, workKeys } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startNotify } from "#processors/notify/start.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import { type MailServer, readMail, startMailServer } from "#test/support/servers/mail-server.ts";

let api: TestApi;
let token: string;
let server: MailServer;
let notify: Running;
let counter = 0;

const template = (event: string, language: "it" | "en" | "de", subject: string, body = "x") => ({
  event,
  language,
  subject,
  body,
});

beforeAll(async () => {
  const setup = testSetup();
  const [channel, unmanaged] = setup.companies?.[0]?.channels ?? [];
  if (!channel || !unmanaged) throw new Error("the test setup has no channels");
  channel.emails = {
    managed: true,
    from: "Acme <noreply@acme.test>",
    templates: [
      template("review", "it", "it-review", "<p>{{custom1}}|{{ custom2 }}|{{nothing}}|</p>"),
      template("review", "en", "en-review"),
      template("only-english", "en", "en-only"),
      template("default", "de", "de-default"),
      template("default", "en", "en-default"),
      template(
        "every",
        "it",
        "{{merchant}} {{trackingNumber}}: {{custom1}}",
        "{{consignee.name}}\n{{constructor}}{{courierName}}",
      ),
    ],
  };
  unmanaged.emails = { templates: [template("review", "it", "it-review")] };
  const beta = setup.companies?.[1]?.channels?.[0];
  if (beta) beta.emails = { managed: true, templates: [template("review", "de", "de-review")] };
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
  server = await startMailServer();
  notify = await startNotify(withMail());
});
afterAll(async () => {
  await notify.stop();
  await server.stop();
  await api.end();
});
afterEach(() => server.refuse(null));

function withMail(smtpUrl: string | null = server.url) {
  return { ...api.runtime, config: { ...api.runtime.config, smtpUrl } };
}

async function create(members: object = {}, as = token): Promise<number> {
  counter += 1;
  const consignee = { name: "Ada", email: `ada+${counter}@client.test` };
  const body = { shipments: [item(`MAIL-${counter}`, { consignee, ...members })] };
  const answer = await api.call("POST", "/v2/shipments", { token: as, body });
  return answer.body.items[0].id;
}

function send(id: number | string, body: unknown, as = token) {
  return api.call("POST", `/v2/shipments/${id}/notifications`, { token: as, body });
}

const address = () => `ada+${counter}@client.test`;

/** The mail to the shipment created last. */
function mail(to = address()) {
  return eventually(() => server.received.find((one) => one.to.includes(to)), "the mail arrives");
}

async function notifications(id: number, as = token) {
  return (await api.call("GET", `/v2/shipments/${id}`, { token: as })).body.notifications;
}

describe("202", () => {
  test("the answer, the mail from the channel's sender, and the entry in the notifications list", async () => {
    const id = await create();
    const { status, body } = await send(id, { event: "review" });
    expect(status).toBe(202);
    expect(body).toEqual({
      notificationId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4/),
      shipmentId: id,
      event: "review",
      status: "accepted",
    });
    const read = await mail();
    expect(read).toMatchObject({ from: "noreply@acme.test", subject: "it-review" });
    expect(read.messageId).toContain(body.notificationId);
    const list = await eventually(async () => {
      const found = await notifications(id);
      return found.length > 0 && found;
    }, "the outcome is reported");
    expect(list).toEqual([
      {
        type: "email",
        result: "OK",
        date: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
        recipient: address(),
        shipmentStatus: "PENDING",
        error: null,
      },
    ]);
  });

  test("variables stand for the placeholders, escaped; unknown ones are empty", async () => {
    const id = await create({ customAttributes: { custom1: "stored", custom2: "stored" } });
    await send(id, { event: "review", variables: { custom1: `<b>"Tom" & 'Ann'</b>` } });
    const { html, text } = await mail();
    expect(html).toContain("<p>&lt;b&gt;&quot;Tom&quot; &amp; &#x27;Ann&#x27;&lt;/b&gt;|||</p>");
    expect(text).toBe(`<b>"Tom" & 'Ann'</b>|||`);
  });

  test("without variables the shipment's own custom fields; variables are not stored", async () => {
    const id = await create({ customAttributes: { custom1: "one", custom2: "two" } });
    await send(id, { event: "review" });
    expect((await mail()).html).toContain("<p>one|two||</p>");
    const other = await create({ customAttributes: { custom1: "own" } });
    await send(other, { event: "review", variables: { custom1: "given" } });
    await mail();
    const { body } = await api.call("GET", `/v2/shipments/${other}`, { token });
    expect(body.customAttributes.custom1).toBe("own");
  });

  test("subject and plain body: one line, no markup of values, line breaks kept", async () => {
    const id = await create();
    await send(id, { event: "every", variables: { custom1: "a\r\nBcc: b@x.test" } });
    const { subject, html, to } = await mail();
    expect(subject).toBe(`Acme Italia MAIL-${counter}: a Bcc: b@x.test`);
    expect(to).toEqual([address()]);
    expect(html).toContain("Ada<br>\nGLS Italy");
  });

  const choices: [string, object, object, string][] = [
    ["(event, language)", {}, { event: "review" }, "it-review"],
    ["(event, language) of the request", {}, { event: "review", language: "en" }, "en-review"],
    ["(event, English)", {}, { event: "review", language: "de" }, "en-review"],
    [
      "(event, English) for the shipment's language",
      { language: "fr" },
      { event: "review" },
      "en-review",
    ],
    [
      "(event, English) before (fallback, language)",
      { language: "de" },
      { event: "only-english" },
      "en-only",
    ],
    ["(fallback, language)", { language: "de" }, { event: "unheard-of" }, "de-default"],
    ["(fallback, English)", {}, { event: "unheard-of" }, "en-default"],
  ];
  for (const [name, members, body, subject] of choices) {
    test(`the template is ${name}`, async () => {
      await send(await create(members), body);
      expect((await mail()).subject).toBe(subject);
    });
  }

  test("a mail in English for an Arabic recipient says so, and runs from left to right", async () => {
    await send(await create({ language: "ar" }), { event: "review" });
    const { subject, html } = await mail();
    expect([subject, String(html).includes('<html lang="en">')]).toEqual(["en-review", true]);
  });

  test("the event may have 2 to 25 characters", async () => {
    const id = await create();
    expect((await send(id, { event: "ab" })).status).toBe(202);
    expect((await send(id, { event: `a${"b".repeat(24)}` })).status).toBe(202);
  });
});

describe("read again", () => {
  const read = (id: number, notificationId: string, as = token) =>
    api.call("GET", `/v2/shipments/${id}/notifications/${notificationId}`, { token: as });

  test("a notification is accepted until it is sent or has failed", async () => {
    const id = await create();
    await notify.stop();
    const { notificationId } = (await send(id, { event: "review" })).body;
    const waiting = await read(id, notificationId);
    expect([waiting.status, waiting.body]).toEqual([
      200,
      {
        notificationId,
        shipmentId: id,
        event: "review",
        status: "accepted",
        type: "email",
        recipient: address(),
        endedAt: null,
        error: null,
      },
    ]);
    notify = await startNotify(withMail());
    const sent = await eventually(async () => {
      const { body } = await read(id, notificationId);
      return body.status !== "accepted" && body;
    }, "the outcome is reported");
    const endedAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*[+]0[12]:00$/);
    expect(sent).toEqual({ ...waiting.body, status: "sent", endedAt });
    server.refuse(550);
    const refused = (await send(id, { event: "only-english" })).body.notificationId;
    await eventually(async () => (await read(id, refused)).body.status === "failed", "KO");
    expect((await read(id, refused)).body.error).toContain("550");
  });

  test("404: of another shipment, of another channel and missing", async () => {
    const [id, other] = [await create(), await create()];
    const { notificationId } = (await send(id, { event: "review" })).body;
    const missing = await read(id, "3f1d7a9e-6c0b-4f57-9a39-4d2f5b6c7d8e");
    expect([missing.status, missing.body.code]).toEqual([404, "NOTIFICATION_NOT_FOUND"]);
    expect((await read(other, notificationId)).body).toEqual(missing.body);
    expect((await read(id, "x:1")).body).toEqual(missing.body);
    const beta = await api.token("key_beta_main");
    const foreign = await read(id, notificationId, beta);
    expect([foreign.status, foreign.body]).toEqual([
      404,
      (await read(999_999_999, notificationId, beta)).body,
    ]);
  });
});

describe("409", () => {
  test("the channel's e-mails are not managed by the service", async () => {
    const outlet = await api.token("key_acme_outlet");
    const { status, body } = await send(await create({}, outlet), { event: "review" }, outlet);
    expect([status, body.code]).toEqual([409, "EMAILS_NOT_MANAGED"]);
  });

  test("the same event on the same shipment within 24 hours, also at the same moment", async () => {
    const id = await create();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => send(id, { event: "review" })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409, 409]);
    expect((await send(id, { event: "other-event" })).status).toBe(202);
    expect((await send(await create(), { event: "review" })).status).toBe(202);
  });
});

describe("422", () => {
  const faulty: [string, object, string][] = [
    ["no event", {}, "event"],
    ["an event of 1 character", { event: "a" }, "event"],
    ["an event of 26 characters", { event: "a".repeat(26) }, "event"],
    ["an event in capitals", { event: "Review" }, "event"],
    ["an event that begins with a dash", { event: "-review" }, "event"],
    ["the reserved event default", { event: "default" }, "event"],
    ["the reserved marketplace", { event: "amazon" }, "event"],
    ["an unknown language", { event: "review", language: "sv" }, "language"],
    ["variables no object", { event: "review", variables: "x" }, "variables"],
    ["another variable", { event: "review", variables: { custom4: "x" } }, "variables.custom4"],
    [
      "a variable of 256",
      { event: "review", variables: { custom1: "x".repeat(256) } },
      "variables.custom1",
    ],
    ["a variable no text", { event: "review", variables: { custom1: 1 } }, "variables.custom1"],
  ];
  for (const [name, body, path] of faulty) {
    test(name, async () => {
      const answer = await send(await create(), body);
      expect(answer.status).toBe(422);
      expect(answer.body.violations[0].path).toBe(path);
    });
  }

  test("the shipment has no recipient e-mail", async () => {
    const { status } = await send(await create({ consignee: { name: "Ada" } }), {
      event: "review",
    });
    expect(status).toBe(422);
  });

  test("there is no usable template", async () => {
    const beta = await api.token("key_beta_main");
    const { status } = await send(await create({}, beta), { event: "review" }, beta);
    expect(status).toBe(422);
  });

  test("a refused one counts for nothing: the event is accepted afterwards", async () => {
    const id = await create();
    await send(id, { event: "review", language: "sv" });
    expect((await send(id, { event: "review" })).status).toBe(202);
  });
});

describe("404", () => {
  test("a shipment of another channel answers as a missing one", async () => {
    const beta = await api.token("key_beta_main");
    const foreign = await send(await create(), { event: "review" }, beta);
    const missing = await send(999_999_999, { event: "review" }, beta);
    expect([foreign.status, foreign.body]).toEqual([404, missing.body]);
  });
});

describe("503", () => {
  test("the queue is full: no e-mail goes out, and the event is accepted later", async () => {
    const id = await create();
    const { waiting } = workKeys(companyTag(shipmentPartition(id)), "messages");
    const far = Date.now() + 1e12;
    const fillers = Array.from({ length: MESSAGES_WAITING }, (_, n) => ({
      score: far,
      value: `filler-${n}`,
    }));
    await api.runtime.redis.zAdd(waiting, fillers);
    const { status, body, headers } = await send(id, { event: "review" });
    expect([status, body.code]).toEqual([503, "NOTIFICATION_NOT_QUEUED"]);
    expect(headers.get("retry-after")).toBe("30");
    await api.runtime.redis.zRemRangeByScore(waiting, far, far);
    expect((await send(id, { event: "review" })).status).toBe(202);
    await mail();
  });
});

describe("delivery", () => {
  test("a server that says later is asked again, by the service clock", async () => {
    server.refuse(451);
    const id = await create();
    await send(id, { event: "review" });
    await eventually(async () => {
      const keys = await api.runtime.redis.keys("*:msg:*");
      const tries = await Promise.all(keys.map((key) => api.runtime.redis.hGet(key, "n")));
      return tries.includes("1");
    }, "the first try has failed");
    expect(await notifications(id)).toEqual([]);
    server.refuse(null);
    await api.advance(15);
    await mail();
    await eventually(async () => (await notifications(id)).length === 1, "the outcome is reported");
  });

  test("a mail that is refused for good is KO with the reason", async () => {
    server.refuse(550);
    const id = await create();
    await send(id, { event: "review" });
    const [reported] = await eventually(async () => {
      const found = await notifications(id);
      return found.length > 0 && found;
    }, "the outcome is reported");
    expect(reported).toMatchObject({ type: "email", result: "KO", recipient: address() });
    expect(reported.error).toContain("550");
  });

  test("what a killed process had in hand is sent by another, and recorded once", async () => {
    await notify.stop();
    const id = await create();
    await send(id, { event: "review" });
    const { redis, live } = api.runtime;
    // Taken by nobody who lives: the lease ends by the clock of Redis.
    const terms = { wanted: 10, leaseMs: 50, nowMs: live.now() };
    expect((await takeWork(redis, "messages", terms)).taken).toHaveLength(1);
    notify = await startNotify(withMail());
    await mail();
    await eventually(async () => (await notifications(id)).length === 1, "the outcome is reported");
  });

  test("without SMTP_URL mails become files under DATA_DIR/outbox", async () => {
    await notify.stop();
    const files = await startNotify(withMail(null));
    const id = await create();
    await send(id, { event: "review" });
    await eventually(async () => (await notifications(id)).length === 1, "the outcome is reported");
    await files.stop();
    notify = await startNotify(withMail());
    const folder = join(api.runtime.config.dataDir, "outbox");
    const [name = ""] = await readdir(folder);
    const raw = await readFile(join(folder, name), "utf8");
    expect(raw).toContain(address());
    expect(readMail(raw.replace(/\r?\n/g, "\r\n")).subject).toBe("it-review");
  });
});

describe("once in 24 hours", () => {
  test("by the service clock", async () => {
    const id = await create();
    const again = async () => {
      const { body } = await api.call("POST", "/v2/auth/token", {
        body: { apiKey: "key_acme_main" },
      });
      return send(id, { event: "review" }, body.token);
    };
    expect((await again()).status).toBe(202);
    await api.advance(86_400 - 60);
    expect((await again()).status).toBe(409);
    await api.advance(120);
    expect((await again()).status).toBe(202);
  });
});
