/** Alarms that reach people: incidents, who has seen them, and receivers by mail and by the webhook of a chat. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { createRunningTime } from "#core/platform/log/running-time.ts";
import {
  ALARM_KEYS,
  changeLogs,
  companyPartition,
  deadLetterKey,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { exportSetup } from "#core/setup/store/export-setup.ts";
import { type AlarmDeps, openTelling, watchOnce } from "#panel/server/alarms/watch-alarms.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import { type Receiver, startReceiver, WEBHOOK_ENV } from "#test/support/servers/receiver.ts";

const SECRET_PATH = "/services/T000/B000/a-secret-of-the-chat";
const DEAD_LETTERS = deadLetterKey(changeLogs()[0] ?? "");
const RECEIVERS = "/panel/api/alarm-receivers";

let runtime: TestRuntime;
let panel: TestPanel;
let mails: MailServer;
let chat: Receiver;
let benchmarks: Benchmarks;
/** Of two panels. */
let panels: AlarmDeps[];
let endpointId: string;

beforeAll(async () => {
  mails = await startMailServer();
  chat = await startReceiver({ path: SECRET_PATH });
  const setup = testSetup();
  const company = setup.companies?.[0];
  const [channel] = company?.channels ?? [];
  if (!company || !channel) throw new Error("no channel");
  channel.webhooks = [
    { code: "main", url: "https://merchant.test/hook", alertEmail: "ops@acme.test" },
    { code: "trial", mode: "test", url: "https://merchant.test/t", alertEmail: "ops@acme.test" },
  ];
  setup.companies?.push({ code: "other", name: "Other" });
  runtime = await openTestRuntime(setup, { ...WEBHOOK_ENV, SMTP_URL: mails.url });
  panel = await openTestPanel(runtime);
  benchmarks = await openBenchmarks({ ...runtime.config, clickhouseUrl: NO_CLICKHOUSE });
  const { redis, live, log, config } = runtime;
  const own = { redis, live, log, config, benchmarks, insights: undefined };
  panels = [
    { ...own, telling: await openTelling(runtime) },
    { ...own, telling: await openTelling(runtime) },
  ];
  const endpoints = [...live.configuration().endpoints.values()];
  endpointId = endpoints.find(({ code }) => code === "main")?.id ?? "";
});

afterAll(async () => {
  for (const { telling } of panels ?? []) {
    telling.mailer.close();
    telling.transport.close();
  }
  await benchmarks?.close();
  await panel?.end();
  await runtime?.end();
  await Promise.all([mails?.stop(), chat?.stop()]);
});

/** Both panels look at once, again and again, while service time passes in steps. */
async function pass(seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= 30) {
    await panel.call("POST", "/panel/api/clock", { advanceSeconds: Math.min(30, left) });
    await Promise.all(panels.map(watchOnce));
  }
}

/** Those of an alarm, in the order of their arrival. */
const subjects = (to: string, code: string) =>
  mails.received
    .filter((mail) => mail.to.includes(to) && mail.subject.includes(code))
    .map(({ subject }) => subject.split(": ")[1]);
const chatted = (words: string) =>
  chat.requests.map(({ body }) => String(body.text)).filter((text) => text.includes(words));

async function add(body: object): Promise<{ readonly id: string; readonly version: string }> {
  const { status, body: view } = await panel.call("POST", RECEIVERS, body);
  expect(status).toBe(201);
  return view;
}

describe("an operator", () => {
  test("is told once by mail and once in a chat, acknowledges, and is told when it is over", async () => {
    await add({ email: "on-call@waybill.test", language: "en", description: "On call" });
    await add({ url: chat.url, language: "it" });
    const quiet = await add({ email: "board@waybill.test", severity: "critical" });
    await runtime.redis.xAdd(DEAD_LETTERS, "1-1", {
      group: "references",
      id: "1-0",
      reason: "x",
      entry: "{}",
    });
    await pass(30);
    expect(subjects("on-call@waybill.test", "DEAD_LETTERS")).toEqual([]);
    await pass(300);
    expect(subjects("on-call@waybill.test", "DEAD_LETTERS")).toEqual(["Warning"]);
    expect(subjects("board@waybill.test", "DEAD_LETTERS")).toEqual([]);
    expect(subjects("board@waybill.test", "CLICKHOUSE_UNAVAILABLE")).toEqual(["Critico"]);
    expect(chatted("Dead letter")).toHaveLength(1);

    const [incident] = (await panel.call("GET", "/panel/api/incidents")).body.open.filter(
      ({ code }: { code: string }) => code === "DEAD_LETTERS",
    );
    expect(incident).toMatchObject({
      severity: "warning",
      page: "/dead-letters",
      acknowledged: null,
    });
    const path = `/panel/api/incidents/${incident.id}/acknowledge`;
    const { body: seen } = await panel.call("POST", path);
    expect(seen.acknowledged.by).toBe("PANEL_TOKEN");
    expect((await panel.call("POST", path)).body).toEqual(seen);
    expect((await panel.call("POST", "/panel/api/incidents/inc_none/acknowledge")).status).toBe(
      404,
    );

    await runtime.redis.del(DEAD_LETTERS);
    await pass(300);
    expect(subjects("on-call@waybill.test", "DEAD_LETTERS")).toEqual(["Warning", "Over"]);
    expect(chatted("Dead letter").map((text) => text.split(":")[0])).toEqual([
      "Avviso",
      "Terminato",
    ]);
    const { body } = await panel.call("GET", "/panel/api/incidents");
    expect(body.past[0]).toMatchObject({ id: incident.id, acknowledged: seen.acknowledged });
    expect(body.open.map(({ code }: { code: string }) => code)).toEqual(["CLICKHOUSE_UNAVAILABLE"]);
    const ids = mails.received.map(({ messageId }) => messageId);
    expect(new Set(ids).size).toBe(ids.length);
    await panel.call("DELETE", `${RECEIVERS}/${quiet.id}`);
  });

  test("never sees the URL of a chat again, which is stored encrypted and may be changed", async () => {
    const made = await add({ url: chat.url });
    expect(made).toMatchObject({ urlHost: new URL(chat.url).host, email: "" });
    const { body: list } = await panel.call("GET", RECEIVERS);
    const audited = await runtime.redis.keys("*");
    expect(JSON.stringify(list)).not.toContain("a-secret-of-the-chat");
    for (const key of audited.filter((one) => one.includes("alarmReceiver:"))) {
      expect(JSON.stringify(await runtime.redis.hGetAll(key))).not.toContain("a-secret");
    }
    expect(JSON.stringify(await exportSetup(runtime.redis))).not.toContain("a-secret");
    const path = `${RECEIVERS}/${made.id}`;
    const { body: kept } = await panel.call("PATCH", path, { description: "Chat" });
    expect(kept).toMatchObject({ description: "Chat", urlHost: new URL(chat.url).host });
    const { body: tried } = await panel.call("POST", `${path}/test`);
    expect(tried).toEqual({ delivered: true, error: null });
    const { body: mailed } = await panel.call("PATCH", path, { email: "chat@waybill.test" });
    expect(mailed).toMatchObject({ email: "chat@waybill.test", urlHost: null });
    const faults = [
      {},
      { email: "a@b.test", url: chat.url },
      { url: "http://merchant.test/" },
      { url: "https://169.254.169.254/latest" },
      { email: "a@b.test, c@d.test" },
    ];
    for (const body of faults) {
      expect([body, (await panel.call("POST", RECEIVERS, body)).status]).toEqual([body, 422]);
    }
    expect((await panel.call("PATCH", path, { email: "" })).status).toBe(422);
    const stale = new Request(`http://localhost${path}`, {
      method: "DELETE",
      headers: {
        authorization: `Bearer ${runtime.secrets.panelToken}`,
        "if-match": `"${made.version}"`,
      },
    });
    expect((await panel.handle(stale)).status).toBe(412);
    expect((await panel.call("DELETE", path)).status).toBe(204);
  });

  test("is told again later where a receiver could not be told, and never of an end before its beginning", async () => {
    chat.requests.length = 0;
    chat.behave(503);
    await runtime.redis.xAdd(DEAD_LETTERS, "1-1", {
      group: "references",
      id: "1-0",
      reason: "x",
      entry: "{}",
    });
    await pass(120);
    await runtime.redis.del(DEAD_LETTERS);
    await pass(90);
    const { body } = await panel.call("GET", RECEIVERS);
    const told = body.items.find(({ urlHost }: { urlHost: string | null }) => urlHost !== null);
    expect(told.lastTold.error).toBe("status 503");
    chat.behave(200);
    const refused = chat.requests.length;
    expect(refused).toBeGreaterThan(0);
    await pass(600);
    const heads = chat.requests.slice(refused).map(({ body }) => String(body.text).split(":")[0]);
    expect(heads).toEqual(["Avviso", "Terminato"]);
    chat.behave(404);
    await runtime.redis.xAdd(DEAD_LETTERS, "1-1", {
      group: "references",
      id: "1-0",
      reason: "x",
      entry: "{}",
    });
    await pass(300);
    await runtime.redis.del(DEAD_LETTERS);
    await pass(300);
    // Refused for good: one attempt each, and nothing waits.
    expect(chat.requests).toHaveLength(refused + 4);
    expect(await runtime.redis.hLen(ALARM_KEYS.outbox)).toBe(0);
    chat.behave(200);
  });
});

describe("a company", () => {
  test("is told of its own endpoint after 15 minutes in which webhooks were sent, and of nothing else", async () => {
    const { redis, live } = runtime;
    const owner = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
    const stranger = await makeAccount(runtime, "company", "owner", { companyCode: "other" });
    const as = (cookie: string, method: string, path: string, body?: object) =>
      panel.handle(
        new Request(`http://localhost${path}`, {
          method,
          headers: { cookie, "content-type": "application/json", "sec-fetch-site": "same-origin" },
          body: body ? JSON.stringify(body) : null,
        }),
      );
    const made = await as(owner.cookie, "POST", RECEIVERS, { email: "it@acme.test" });
    expect(made.status).toBe(201);
    const { id, company } = (await made.json()) as { id: string; company: string };
    expect(company).toBe("acme");
    const items = async (cookie: string) =>
      ((await (await as(cookie, "GET", RECEIVERS)).json()) as { items: { id: string }[] }).items;
    expect((await items(owner.cookie)).map((one) => one.id)).toEqual([id]);
    expect(await items(stranger.cookie)).toEqual([]);
    for (const path of [`${RECEIVERS}/${id}`, `${RECEIVERS}/ar_none`]) {
      expect((await as(stranger.cookie, "PATCH", path, { active: false })).status).toBe(404);
    }

    const configuration = live.configuration();
    const companyId = [...configuration.companies.values()].find(({ code }) => code === "acme")?.id;
    const { failing } = webhookKeys(companyPartition(companyId ?? 0));
    for (const one of configuration.endpoints.keys()) {
      await redis.zAdd(failing, { score: live.now(), value: one });
    }
    // Processors do not run: it cannot recover, and that is not its fault.
    await pass(1_200);
    expect(subjects("it@acme.test", "ENDPOINT_FAILING")).toEqual([]);
    const running = createRunningTime(redis);
    const passRunning = async (seconds: number) => {
      for (let left = seconds; left > 0; left -= 30) {
        await panel.call("POST", "/panel/api/clock", { advanceSeconds: 30 });
        await running.note(live.now());
        await Promise.all(panels.map(watchOnce));
      }
    };
    await passRunning(870);
    expect(subjects("it@acme.test", "ENDPOINT_FAILING")).toEqual([]);
    await passRunning(120);
    expect(subjects("it@acme.test", "ENDPOINT_FAILING")).toEqual(["Avviso"]);
    const mail = mails.received.find(({ to }) => to.includes("it@acme.test"));
    expect(mail?.text).toContain("Il webhook main del canale");
    expect(mail?.text).not.toContain("merchant.test");
    const incidents = (await (await as(owner.cookie, "GET", "/panel/api/incidents")).json()) as {
      open: { id: string; code: string }[];
    };
    // The endpoint of test mode fails too, and raises none.
    expect(incidents.open.map(({ code }) => code)).toEqual([`ENDPOINT_FAILING_${endpointId}`]);
    const path = `/panel/api/incidents/${incidents.open[0]?.id}/acknowledge`;
    expect((await as(stranger.cookie, "POST", path)).status).toBe(404);
    expect((await as(owner.cookie, "POST", path)).status).toBe(200);

    await panel.call("DELETE", "/panel/api/companies/acme");
    await passRunning(180);
    expect(subjects("it@acme.test", "ENDPOINT_FAILING")).toEqual(["Avviso"]);
    const { body } = await panel.call("GET", "/panel/api/incidents");
    const codes = body.open.map((one: { code: string }) => one.code);
    expect(codes).not.toContain(`ENDPOINT_FAILING_${endpointId}`);
  });
});

describe("receivers of a setup file", () => {
  const apply = (alarmReceivers: object[]) =>
    applySetup(runtime.redis, runtime.secrets.vault, { alarmReceivers }, runtime.live.now(), {
      webhookAllowedCidrs: runtime.config.webhookAllowedCidrs,
    });

  test("are applied once, keep what the panel has changed, and are exported without URLs", async () => {
    const file = [
      { code: "duty", email: "duty@waybill.test", severity: "critical" },
      { code: "other-chat", company: "other", url: chat.url },
    ];
    expect((await apply(file)).written).toBe(2);
    expect((await apply(file)).written).toBe(0);
    const named = async (code: string, query = "") =>
      (await panel.call("GET", `${RECEIVERS}${query}`)).body.items.find(
        (one: { code: string }) => one.code === code,
      );
    const duty = await named("duty");
    expect(await named("other-chat", "?company=other")).toMatchObject({
      company: "other",
      email: "",
    });
    await panel.call("PATCH", `${RECEIVERS}/${duty.id}`, { severity: "warning" });
    expect((await apply(file)).written).toBe(0);
    expect((await named("duty")).severity).toBe("warning");
    const { alarmReceivers = [] } = await exportSetup(runtime.redis);
    const codes = alarmReceivers.map(({ code }) => code);
    expect(codes).toContain("duty");
    expect(codes).not.toContain("other-chat");
    expect((await apply(alarmReceivers)).generated).toEqual([]);
    await apply(file);
    await panel.call("DELETE", `${RECEIVERS}/${duty.id}`);
    await apply(file);
    expect(await named("duty")).toBeUndefined();
  });

  test("are refused with all of their faults", async () => {
    const faulty = [
      { code: "nowhere" },
      { code: "both", email: "a@b.test", url: chat.url },
      { code: "whose", company: "nobody", email: "a@b.test" },
      { code: "inside", url: "https://10.0.0.1/" },
    ];
    const error = await apply(faulty).catch((one: Error) => one);
    for (const path of ["[0]", "[1].url", "[2].company", "[3].url"]) {
      expect(String(error)).toContain(`alarmReceivers${path}`);
    }
  });
});
