/** The overview: its live stream, which one reading serves for all, and its alarms. */

import { beforeAll, describe, expect, test } from "bun:test";
import { pino } from "pino";
import { ALARMS, codeOf } from "#core/alarms/rules/alarm.ts";
import { deadLetterKey, eventLogs } from "#core/platform/redis/keys.ts";
import { startPanel } from "#panel/main.ts";
import { createFeed } from "#panel/server/http/feed.ts";
import { alarmsOf, rememberAlarms } from "#panel/server/operations/alarms.ts";
import type { Overview } from "#panel/server/operations/overview-view.ts";
import { PAGE_PATHS } from "#panel/web/paths.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { NO_CLICKHOUSE, openTestRuntime } from "#test/support/product/runtime.ts";

const VIEWERS_LIMIT = 500;
const READINGS_WAITING = 5;

let cookie: string;

const runtime = forAll(() =>
  openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  }),
);
const panel = forAll(() => startPanel(runtime));
beforeAll(async () => {
  cookie = (await makeAccount(runtime, "operator", "read-only")).cookie;
});

async function overview(): Promise<Overview> {
  const answer = await fetch(`${panel.url}/panel/api/overview`, { headers: { cookie } });
  return (await answer.json()) as Overview;
}

const HEALTHY_CLICKHOUSE = { ready: true, behindSeconds: 0 };

const log = pino({ level: "silent" });

const stays = async () => true;

describe("GET /panel/api/overview/stream", () => {
  test("pushes the overview as server-sent events", async () => {
    const abort = new AbortController();
    const answer = await fetch(`${panel.url}/panel/api/overview/stream`, {
      headers: { cookie },
      signal: abort.signal,
    });
    expect(answer.headers.get("content-type")).toStartWith("text/event-stream");
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (text.split("\n\n").length < 3) text += (await reader?.read())?.value ?? "";
    abort.abort();
    const [first = "", second = ""] = text.split("\n\n");
    expect(first).toStartWith("event: overview\ndata: ");
    const [one, other] = [first, second].map((event) => JSON.parse(event.split("data: ")[1] ?? ""));
    expect(Object.keys(one).sort()).toEqual(Object.keys(await overview()).sort());
    expect(Date.parse(other.at)).toBeGreaterThan(Date.parse(one.at));
  });

  test("reads once for all viewers, and nothing when nobody watches", async () => {
    let readings = 0;
    const feed = createFeed(async () => ({ reading: ++readings }), { log, everyMs: 10 });
    const viewers = Array.from({ length: 20 }, () => feed.join(stays).body?.getReader());
    const texts = await Promise.all(
      viewers.map(async (viewer) => new TextDecoder().decode((await viewer?.read())?.value)),
    );
    expect(new Set(texts)).toEqual(new Set(['event: overview\ndata: {"reading":1}\n\n']));
    await Promise.all(viewers.map((viewer) => viewer?.cancel()));
    const before = readings;
    // Thirty turns, of which one may have begun.
    await Bun.sleep(300);
    expect(readings - before).toBeLessThanOrEqual(1);
    feed.close();
  });

  test("ends the stream of whoever has been logged out since, and of nobody else", async () => {
    let isLoggedIn = true;
    const feed = createFeed(async () => null, { log, everyMs: 10, checkMs: 20 });
    const left = feed.join(async () => isLoggedIn).body?.getReader();
    const other = feed
      .join(async () => {
        throw new Error("the store is away for a moment");
      })
      .body?.getReader();
    expect((await left?.read())?.done).toBe(false);
    isLoggedIn = false;
    await eventually(async () => (await left?.read())?.done, "the end of the stream");
    for (let reading = 0; reading <= READINGS_WAITING; reading += 1) {
      expect((await other?.read())?.done).toBe(false);
    }
    feed.close();
  });

  test(`${VIEWERS_LIMIT} watch at the same time, one more is 503`, () => {
    const feed = createFeed(async () => null, { log });
    for (let viewer = 0; viewer < VIEWERS_LIMIT; viewer += 1) feed.join(stays);
    expect(() => feed.join(stays)).toThrow("Too many watch");
    feed.close();
  });

  test(`a viewer who takes nothing is left after ${READINGS_WAITING} readings`, async () => {
    let readings = 0;
    const feed = createFeed(async () => ++readings, { log, everyMs: 10 });
    const reader = feed.join(stays).body?.getReader();
    await eventually(() => readings > READINGS_WAITING, "the reading that nobody takes");
    let taken = 0;
    while (!(await reader?.read())?.done) taken += 1;
    expect(taken).toBe(READINGS_WAITING);
    feed.close();
  });
});

describe("alarms", () => {
  test("say what is wrong, the gravest first, and since when", async () => {
    const calm = await overview();
    expect(calm.alarms.map(({ code }) => code)).toEqual(["CLICKHOUSE_UNAVAILABLE"]);
    await runtime.redis.xAdd(deadLetterKey(eventLogs()[0] ?? ""), "*", { group: "track" });
    const found = await eventually(async () => {
      const { alarms } = await overview();
      return alarms.length > 1 && alarms;
    }, "the alarm of the dead letter");
    expect(found[0]?.since).toBe(calm.alarms[0]?.since ?? "");
    expect(found.map(({ code }) => code)).toContain("DEAD_LETTERS");
  });

  test("each lead to a section of the documents, which the panel serves with all links alive", async () => {
    const calm = await overview();
    const lag = calm.lag.map((one) => ({ ...one, seconds: 1_000, entries: 1 }));
    const findings = alarmsOf({
      ...calm,
      lag,
      queues: { ...calm.queues, deadLetters: 1 },
      ledger: { ...calm.ledger, difference: { received: 1, applied: 0, webhooks: 0 } },
      webhooks: { ...calm.webhooks, oldestWaitingSeconds: 1_000, failingEndpoints: 1 },
      silentCouriers: ["GLS_ITA"],
    });
    expect(findings.length).toBe(lag.length + 6);
    expect(findings.find((one) => codeOf(one) === "COURIER_SILENT_GLS_ITA")?.page).toBe(
      "/carriers/GLS_ITA?tab=quality",
    );
    const panelPages = new Set<string>(PAGE_PATHS);
    const pageOf = (path: string) => path.replace(/\?.*/, "").replace(/GLS_ITA$/, ":code");
    expect(findings.filter(({ page }) => !panelPages.has(pageOf(page)))).toEqual([]);
    const read = async (path: string) => (await fetch(`${panel.url}${path}`)).text();
    const contents = await read("/docs");
    const namesIn = (page: string) =>
      [...page.matchAll(/href="\/docs\/([a-z0-9/-]+)(?:#[^"]*)?"/g)].map(([, name = ""]) => name);
    const pages = new Map<string, string>();
    const names = namesIn(contents);
    for (const name of names) {
      if (pages.has(name)) continue;
      const page = await read(`/docs/${name}`);
      pages.set(name, page);
      names.push(...namesIn(page));
    }
    const leadsSomewhere = (link: string) => {
      const [page = "", anchor] = link.split("#");
      const text = pages.get(page) ?? "";
      return text !== "" && (anchor === undefined || text.includes(`id="${anchor}"`));
    };
    for (const { docs } of Object.values(ALARMS)) {
      expect([docs, leadsSomewhere(docs.replace(".md", ""))]).toEqual([docs, true]);
    }
    for (const [name, text] of pages) {
      const links = [...text.matchAll(/href="([^"]*)"/g)].map(([, link = ""]) => link);
      const others = links.filter((link) => /^\/(?!docs\/(?!source\/))/.test(link));
      const dead = links.filter((link) => {
        if (/^(https?|data):/.test(link) || others.includes(link)) return false;
        return !leadsSomewhere(link.startsWith("#") ? name + link : link.replace("/docs/", ""));
      });
      for (const link of others) {
        if ((await fetch(`${panel.url}${link}`)).status !== 200) dead.push(link);
      }
      expect([name, dead]).toEqual([name, []]);
    }
    expect((await fetch(`${panel.url}/docs/..%2Fpackage`)).status).toBe(404);
  });

  test("of the ledger wait until the difference has stood for a minute", async () => {
    const wrong = { ...(await overview()), queues: { eventLog: 0, changeLog: 0, deadLetters: 0 } };
    const ledger = { ...wrong.ledger, difference: { received: 0, applied: 0, webhooks: 1 } };
    const stores = { ...wrong.stores, clickhouse: HEALTHY_CLICKHOUSE };
    const findings = alarmsOf({ ...wrong, ledger, stores });
    const since = rememberAlarms();
    expect(since(findings, 0)).toEqual([]);
    expect(since(findings, 59_999)).toEqual([]);
    expect(since(findings, 60_000)).toMatchObject([{ code: "LEDGER_DIFFERENCE" }]);
    expect(since([], 60_001)).toEqual([]);
    expect(since(findings, 60_002)).toEqual([]);
  });
});
