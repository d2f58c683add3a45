/**
 * Shipments move to the archive and back while processes and stores are killed: whoever pages through all of them, or catches up as
 * document 1 prints it, finds each of them once, and no event is lost or doubled.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ClickhouseServer, startClickhouseHttp } from "#test/support/clickhouse-http.ts";
import { createShipments, startEventStream } from "#test/support/event-stream.ts";
import { eventually, within } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { type Answer, type Merchant, signIn } from "#test/support/merchant.ts";
import { askPanel } from "#test/support/operator.ts";
import { expectExactlyOnce } from "#test/support/oracle.ts";
import { BARE, newProduct, type Product } from "#test/support/product.ts";
import { testSetup } from "#test/support/setup.ts";
import { STORES } from "#test/support/stores.ts";

/** What dies at once: the process, Redis (a master of the cluster) with it, ClickHouse. A round each, and in turn from then on. */
const KILLS = {
  "one Redis server": [["ClickHouse"], ["process", "Redis", "ClickHouse"]],
  "a six-node Redis Cluster": [
    ["process", "ClickHouse"],
    ["process", "Redis"],
  ],
} as const;
const SHIPMENTS = 150;
const PAGE = 60;
/** As document 1 prints it: with a smaller limit the shipments of one second could fill a page for ever. */
const CATCH_UP_LIMIT = 100;
/** The round whose kill finds a channel on its way back. */
const BRINGING_BACK = 1;
/** Late events bring some shipments back while others leave. */
const PACE_MS = 250;
const LIFE_MS = { least: 200, spread: 1_500 };
/** Whatever has not ended is over after 180 days. */
const SILENCE_SECONDS = 181 * 86_400;
const RETRY_MS = 50;
const ENV = { ARCHIVE_AFTER_DAYS: "1", ARCHIVE_ROUND_SECONDS: "1" };
/** While something is unavailable, or the clock has moved past the expiry of a token. */
const RETRIED = new Set([401, 429, 500, 502, 503, 504]);

/** A merchant that tries again until it is answered. */
function startReader({ api }: Product, ids: readonly number[]) {
  let over = false;
  let merchant: Merchant | null = null;
  const counts = { pagings: 0, catchUps: 0 };

  async function ask(query: string): Promise<Answer["body"]> {
    for (;;) {
      merchant ??= await signIn(api, "key_acme_main").catch(() => null);
      const answer = await merchant?.call("GET", `/v2/shipments?${query}`).catch(() => null);
      if (answer?.status === 200) return answer.body;
      if (answer && !RETRIED.has(answer.status)) throw new Error(JSON.stringify(answer.body));
      if (answer?.status === 401) merchant = null;
      await Bun.sleep(RETRY_MS);
    }
  }

  /** All pages in an order that nothing changes. */
  async function pageThrough(): Promise<void> {
    const found: number[] = [];
    for (let page = 1; found.length < ids.length; page += 1) {
      const { items, total } = await ask(`sortBy=id_asc&limit=${PAGE}&page=${page}`);
      expect([page, total]).toEqual([page, ids.length]);
      if (items.length === 0) break;
      found.push(...items.map(({ id }: { id: number }) => id));
    }
    expect(found).toEqual([...ids]);
    counts.pagings += 1;
  }

  /** Document 1, "Reconciliation procedure across channels". */
  async function catchUp(): Promise<void> {
    const found = new Set<number>();
    for (let after = "2026-01-01 00:00:00"; ; ) {
      const query = `scope=company&sortBy=updatedAt_asc&limit=${CATCH_UP_LIMIT}&updatedAfter=`;
      const { items } = await ask(`${query}${encodeURIComponent(after)}`);
      const own = items.map(({ id }: { id: number }) => id);
      expect(new Set(own).size).toBe(own.length);
      for (const id of own) found.add(id);
      if (items.length < CATCH_UP_LIMIT) break;
      after = items.at(-1).statusUpdatedAt;
    }
    expect([...found].sort((one, other) => one - other)).toEqual([...ids]);
    counts.catchUps += 1;
  }

  const reading = (async () => {
    while (!over) {
      await pageThrough();
      await catchUp();
    }
  })();
  let failure: unknown = null;
  reading.catch((error) => {
    failure = error;
  });
  return {
    counts,
    /** @throws what the reader did not find, or found twice */
    check() {
      if (failure) throw failure;
    },
    async stop() {
      over = true;
      await within(reading, "the reader has read all", 60_000);
    },
  };
}

describe.each(STORES)("on %s", (store) => {
  let product: Product;
  let clickhouse: ClickhouseServer;

  beforeAll(async () => {
    clickhouse = await startClickhouseHttp();
    const { address } = clickhouse;
    const env = { ...ENV, CLICKHOUSE_URL: address, CLICKHOUSE_READ_URL: address };
    product = await newProduct(BARE, testSetup(), env, store);
    await product.start();
  }, 120_000);

  afterAll(async () => {
    await product.end();
    await clickhouse.stop();
  }, 120_000);

  async function killAndStart(which: readonly string[]): Promise<void> {
    const [hasClickhouse, hasProcess] = [which.includes("ClickHouse"), which.includes("process")];
    await Promise.all([
      hasClickhouse && clickhouse.kill(),
      hasProcess && product.kill(which.includes("Redis")),
    ]);
    await Promise.all([hasClickhouse && clickhouse.restart(), hasProcess && product.start()]);
  }

  const hold = (method: "PUT" | "DELETE") =>
    askPanel(product, method, "/channels/acme-it/archive-hold");
  const isBack = async (): Promise<boolean> => {
    const { body } = await askPanel(product, "GET", "/archive");
    return body.heldChannels.some(({ isDone }: { isDone: boolean }) => isDone);
  };

  const archived = async (): Promise<number> =>
    (await askPanel(product, "GET", "/overview")).body.stores.archive?.shipments ?? 0;
  const letThemEnd = async () => {
    const { status } = await askPanel(product, "POST", "/clock", {
      advanceSeconds: SILENCE_SECONDS,
    });
    expect(status).toBe(200);
  };

  test("kills while shipments are archived and come back lose none of them and no event", async () => {
    const ids = await createShipments(product, "ARC", SHIPMENTS);
    const first = startEventStream(product, "ARC", SHIPMENTS, { senders: 2, paceMs: 20 });
    await eventually(() => first.accepted.size >= 4 * SHIPMENTS, "each has events", 60_000);
    await first.stop();
    await expectExactlyOnce(product, "ARC", ids, first.accepted);
    await letThemEnd();
    await eventually(async () => (await archived()) === SHIPMENTS, "all are archived", 120_000);

    const reader = startReader(product, ids);
    const stream = startEventStream(product, "ARC", SHIPMENTS, {
      ...{ senders: 1, paceMs: PACE_MS, sentBefore: 100_000 },
    });
    const measuring = startMeasuring("Kill everything", `archiving and restoring, on ${store}`);
    const until = Date.now() + RUN_MS / STORES.length;
    let kills = 0;
    for (; kills < KILLS[store].length || Date.now() < until; kills += 1) {
      const before = stream.accepted.size;
      await eventually(() => stream.accepted.size > before + 40, "late events arrive", 60_000);
      await letThemEnd();
      const isComingBack = kills === BRINGING_BACK;
      if (isComingBack) expect((await hold("PUT")).status).toBe(200);
      await Bun.sleep(LIFE_MS.least + Math.random() * LIFE_MS.spread);
      const killedAtMs = performance.now();
      await killAndStart(KILLS[store][kills % KILLS[store].length] ?? []);
      measuring.recovered(killedAtMs);
      if (isComingBack) {
        await eventually(isBack, "the channel is back", 60_000);
        expect((await hold("DELETE")).status).toBe(204);
      }
      reader.check();
    }
    await stream.stop();
    await reader.stop();
    expect(reader.counts.catchUps).toBeGreaterThan(0);
    const accepted = new Map([...first.accepted, ...stream.accepted]);
    await expectExactlyOnce(product, "ARC", ids, accepted);
    await letThemEnd();
    await eventually(
      async () => (await archived()) === SHIPMENTS,
      "all are archived again",
      120_000,
    );
    const counted = await expectExactlyOnce(product, "ARC", ids, accepted);
    await measuring.done({ kills, ...counted });
  }, 3_600_000);
});
