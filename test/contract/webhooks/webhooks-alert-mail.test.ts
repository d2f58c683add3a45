/** Document 3, Endpoint: alerts to alertEmail, by mail; never lost, never doubled. */
import { afterEach, describe, expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { allEntities } from "#core/configuration/store/entities.ts";
import { createRunningTime } from "#core/platform/log/running-time.ts";
import { createMailer, type MailConfig, type Mailer } from "#core/platform/process/mail.ts";
import { webhookAlertMails } from "#core/platform/process/metrics.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { alertMail } from "#core/webhooks/rules/alert-mail.ts";
import { readAlerts } from "#core/webhooks/store/alerts.ts";
import {
  clearFailing,
  createEndpoint,
  deleteEndpoint,
  raiseAlerts,
} from "#core/webhooks/store/endpoints.ts";
import { startAlertMailer } from "#processors/webhooks/alert-mailer.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import {
  endpointOf,
  openWebhookRuntime,
  passTime,
  setActive,
} from "#test/support/product/webhooks.ts";
import { startMailServer } from "#test/support/servers/mail-server.ts";

const mailers: { readonly loop: Ticking; readonly mailer: Mailer }[] = [];

const runtime = forAll(() =>
  openWebhookRuntime([
    { url: "https://m.example/hook?token=very-secret", alertEmail: "ops@acme.test" },
    { url: "https://m.example/other", alertEmail: "other@acme.test" },
  ]),
);
const server = forAll(startMailServer);

afterEach(async () => {
  for (const { loop, mailer } of mailers.splice(0)) {
    await loop.stop();
    mailer.close();
  }
  const { redis } = runtime;
  for (const { partition } of await readAlerts(redis, 100)) {
    await redis.del(webhookKeys(partition).alerts);
  }
});

function smtpConfig() {
  return { ...runtime.config, smtpUrl: server.url };
}

function start(config: MailConfig = smtpConfig()): void {
  const { redis, log, live } = runtime;
  const mailer = createMailer(config);
  mailers.push({ loop: startAlertMailer({ redis, log, live, mailer }), mailer });
}

function reset(): void {
  server.forget();
  server.refuse(null);
}

const SINCE_MS = Date.UTC(2026, 10, 10, 9);

function partitionOf(code: string): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(endpointOf(runtime, code).channelId)?.companyId ?? 0);
}

/** An alert as the health clock raises it. */
async function raise(code = "main", kind: "warning" | "disabled" = "warning"): Promise<void> {
  const endpoint = endpointOf(runtime, code);
  const partition = partitionOf(code);
  const sinceMs = SINCE_MS;
  const { failing, warned } = webhookKeys(partition);
  await runtime.redis.zAdd(failing, [{ value: endpoint.id, score: sinceMs }]);
  await runtime.redis.sRem(warned, endpoint.id);
  const verdict = { partition, endpointId: endpoint.id, sinceMs, kind };
  expect(await raiseAlerts(runtime.redis, [verdict], runtime.live.now())).toBe(1);
}

/** Tries that no mail server has taken. */
async function failures(): Promise<number> {
  const { values } = await webhookAlertMails.get();
  return values.find(({ labels }) => labels.outcome === "failed")?.value ?? 0;
}

const left = async () => (await readAlerts(runtime.redis, 100)).length;

/** Headers and text of a mail in quoted-printable or plain form. */
function readMail(text: string) {
  const [head = "", ...body] = text.replaceAll("\r\n", "\n").split("\n\n");
  const headers = new Map(
    head
      .replaceAll(/\n[ \t]+/g, " ")
      .split("\n")
      .map((line) => [line.split(":")[0]?.toLowerCase() ?? "", line.replace(/^[^:]*: */, "")]),
  );
  const plain = body
    .join("\n\n")
    .replaceAll("=\n", "")
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return { headers, text: Buffer.from(plain, "latin1").toString("utf8") };
}

describe("through a mail server", () => {
  test("each alert goes to the endpoint's alertEmail, once, and leaves the outbox", async () => {
    reset();
    start();
    await raise("main");
    await raise("second", "disabled");
    await eventually(() => server.received.length === 2, "two mails arrive");
    await eventually(async () => (await left()) === 0, "the outbox is empty");
    expect(server.received.map(({ to }) => to[0]).sort()).toEqual([
      "ops@acme.test",
      "other@acme.test",
    ]);
    const { headers, text } = readMail(
      server.received.find(({ to }) => to[0] === "ops@acme.test")?.raw ?? "",
    );
    expect(headers.get("message-id")).toMatch(/^<webhook-alert\.ep_.+@.+>$/);
    expect(text).toContain("https://m.example/hook del canale Acme Italia");
    expect(text).toContain("2026-11-10 10:00:00");
    expect(text).not.toContain("very-secret");
  });

  test("a server that refuses loses nothing: it is tried again later", async () => {
    reset();
    server.refuse(451);
    await raise();
    const before = await failures();
    start();
    const [alert] = await readAlerts(runtime.redis, 1);
    if (!alert) throw new Error("no alert");
    await eventually(async () => (await failures()) > before, "it has been tried");
    const claim = webhookKeys(alert.partition).alertClaim(alert.id);
    await eventually(async () => {
      const waitMs = await runtime.redis.pTTL(claim);
      return waitMs > 0 && waitMs <= 60_000;
    }, "the next try is in a minute");
    expect(await left()).toBe(1);
    server.refuse(null);
    await runtime.redis.pExpire(claim, 1);
    await eventually(() => server.received.length === 1, "the mail arrives");
    await eventually(async () => (await left()) === 0, "the outbox is empty");
  });

  test("design, Our own downtime is nobody's fault: an alert is dropped after 7 days in which processors were running, not before", async () => {
    reset();
    server.refuse(451);
    const running = createRunningTime(runtime.redis);
    await running.note(runtime.live.now());
    await raise();
    await running.end(runtime.live.now());
    await passTime(runtime, 8 * 86_400);
    const before = await failures();
    start();
    await eventually(async () => (await failures()) > before, "it has been tried");
    expect(await left()).toBe(1);
    const [alert] = await readAlerts(runtime.redis, 1);
    if (!alert) throw new Error("no alert");
    const claim = webhookKeys(alert.partition).alertClaim(alert.id);
    await eventually(async () => (await runtime.redis.pTTL(claim)) > 50_000, "it waits");
    await passTime(runtime, 7 * 86_400 + 60);
    await runtime.redis.pExpire(claim, 1);
    await eventually(async () => (await left()) === 0, "it is dropped");
    expect(server.received).toEqual([]);
  });

  test("a server that is unavailable loses nothing", async () => {
    reset();
    await raise();
    const before = await failures();
    start({ ...runtime.config, smtpUrl: "smtp://127.0.0.1:1" });
    await eventually(async () => (await failures()) > before, "it has been tried");
    expect(await left()).toBe(1);
  });

  test("two mailers send each alert once", async () => {
    reset();
    for (let n = 0; n < 5; n += 1) await raise();
    start();
    start();
    await eventually(async () => (await left()) === 0, "the outbox is empty");
    expect(server.received).toHaveLength(5);
    const ids = server.received.map(({ raw }) => readMail(raw).headers.get("message-id"));
    expect(new Set(ids).size).toBe(5);
  });

  test("after a crash between sending and recording the same message goes once more, under the same id", async () => {
    reset();
    await raise();
    const [alert] = await readAlerts(runtime.redis, 1);
    if (!alert) throw new Error("no alert");
    start();
    await eventually(async () => (await left()) === 0, "sent and recorded");
    const { alerts } = webhookKeys(alert.partition);
    const { endpointId, kind, sinceMs, atMs } = alert;
    const entry = { endpointId, kind, sinceMs: String(sinceMs), atMs: String(atMs) };
    // As it stands after a crash before the removal. A stream takes no id twice, so it starts again.
    await runtime.redis.del(alerts);
    await runtime.redis.xAdd(alerts, alert.id, entry);
    await eventually(() => server.received.length === 2, "sent again");
    const ids = server.received.map(({ raw }) => readMail(raw).headers.get("message-id"));
    expect(new Set(ids).size).toBe(1);
  });
});

describe("that it works again", () => {
  const succeed = (code = "main") => {
    const { redis, live } = runtime;
    return clearFailing(redis, live.configuration(), endpointOf(runtime, code).id, live.now());
  };
  const isOut = () => eventually(async () => (await left()) === 0, "the outbox is empty");
  const subjects = () => server.received.map(({ raw }) => readMail(raw).headers.get("subject"));
  const works = /funzionante/;

  test("one mail after an alert, whoever reports the success and however often", async () => {
    reset();
    start();
    start();
    await raise();
    await isOut();
    await Promise.all([succeed(), succeed(), succeed()]);
    await isOut();
    await succeed();
    await isOut();
    expect(server.received).toHaveLength(2);
    const { text, headers } = readMail(server.received[1]?.raw ?? "");
    expect(headers.get("subject")).toMatch(works);
    expect(text).toContain("ha risposto di nuovo correttamente");
    expect(text).toContain("2026-11-10 10:00:00");
    expect(text).not.toContain("very-secret");
  });

  test("none without an alert before it", async () => {
    reset();
    await succeed();
    expect(await left()).toBe(0);
  });

  test("never before the alert that it follows", async () => {
    reset();
    server.refuse(451);
    await raise();
    await succeed();
    expect(await left()).toBe(2);
    const before = await failures();
    start();
    await eventually(async () => (await failures()) > before, "the alert has been tried");
    server.refuse(null);
    await raise("second");
    await eventually(() => server.received.length === 1, "another endpoint's alert is mailed");
    expect(server.received[0]?.to).toEqual(["other@acme.test"]);
    await eventually(async () => (await left()) === 2, "it has left the outbox");
    const [first] = await readAlerts(runtime.redis, 1);
    if (!first) throw new Error("no alert");
    await runtime.redis.pExpire(webhookKeys(first.partition).alertClaim(first.id), 1);
    await isOut();
    expect(server.received.slice(1).map(({ to }) => to[0])).toEqual([
      "ops@acme.test",
      "ops@acme.test",
    ]);
    expect(subjects()[2]).toMatch(works);
    await succeed("second");
    await isOut();
  });

  test("not while the endpoint is off: with its first success after it was switched on", async () => {
    reset();
    await raise("main", "disabled");
    await succeed();
    await setActive(runtime.redis, endpointOf(runtime, "main").id, false);
    start();
    await isOut();
    expect(server.received).toHaveLength(1);
    await setActive(runtime.redis, endpointOf(runtime, "main").id, true);
    await runtime.live.refresh();
    await succeed();
    await isOut();
    expect(server.received).toHaveLength(2);
  });

  test("an endpoint that is gone leaves nothing behind", async () => {
    reset();
    const { redis, live } = runtime;
    const url = "https://m.example/gone";
    const template = (await allEntities(redis, "endpoint")).find(({ code }) => code === "second");
    if (!template) throw new Error("no endpoint");
    await createEndpoint(redis, { ...template, id: "ep_gone", code: "gone", url });
    await live.refresh();
    await raise("gone");
    const { alerted } = webhookKeys(partitionOf("gone"));
    expect(await redis.hExists(alerted, "ep_gone")).toBe(1);
    await deleteEndpoint(redis, live.configuration(), "ep_gone");
    expect(await redis.hExists(alerted, "ep_gone")).toBe(0);
  });
});

test("without a mail server each mail is a file; written again it is the same one", async () => {
  reset();
  const config = { ...runtime.config, smtpUrl: null };
  start(config);
  await raise();
  await eventually(async () => (await left()) === 0, "the outbox is empty");
  const folder = join(config.dataDir, "outbox");
  const [name = "", ...others] = await readdir(folder);
  expect(others).toEqual([]);
  expect(name).toEndWith(".eml");
  const { headers } = readMail(await readFile(join(folder, name), "utf8"));
  expect(headers.get("to")).toBe("ops@acme.test");
  const mailer = createMailer(config);
  const mail = { messageId: "one@waybill.invalid", to: "a@b.test", subject: "s", text: "t" };
  await mailer.send(mail);
  await mailer.send(mail);
  expect(await readdir(folder)).toHaveLength(2);
});

describe("the text", () => {
  const facts = {
    channelName: "Acme",
    code: "main",
    url: "https://u:pw@m.example/hook?key=1",
    sinceMs: 0,
    atMs: 3_600_000,
    lastError: "status 503",
    link: "https://panel.example/webhooks/ep_1",
  };

  test.each(["warning", "disabled", "recovered"] as const)(
    "%s is there in Italian and English, names endpoint and error, and leads to its page",
    (kind) => {
      const italian = alertMail({ ...facts, kind }, "it");
      const english = alertMail({ ...facts, kind }, "en");
      expect(alertMail({ ...facts, kind }, "de")).toEqual(english);
      expect(italian.subject).not.toBe(english.subject);
      for (const { subject, text } of [italian, english]) {
        expect(subject + text).not.toMatch(/[{}]|key=1|pw/);
        expect(subject).toContain("Acme, main");
        expect(text).toContain("1970-01-01 01:00:00");
        expect(text).toContain("https://m.example/hook");
        expect(text).toMatch(/: status 503\.\n/);
        expect(text).toEndWith(": https://panel.example/webhooks/ep_1\n");
      }
      const { text } = alertMail({ ...facts, kind, lastError: null }, "en");
      expect(text).not.toMatch(/error|null/i);
    },
  );
});
