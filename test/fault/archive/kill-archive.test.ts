/**
 * Shipments move to the archive and back while processes and stores are killed: whoever pages through all of them, or catches up as
 * document 1 prints it, finds each of them once, and no event is lost or doubled.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startReader } from "#test/support/clients/archive-reader.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { askPanel, readPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";
import { onServer, STORES } from "#test/support/servers/stores.ts";

/** What dies at once: the process, Redis (a master of the cluster) with it, ClickHouse. A round each, and in turn from then on. */
const KILLS = {
  "one Redis server": [["ClickHouse"], ["process", "Redis", "ClickHouse"]],
  "a six-node Redis Cluster": [
    ["process", "ClickHouse"],
    ["process", "Redis"],
  ],
} as const;
const SHIPMENTS = 150;
/** The round whose kill finds a channel on its way back. */
const BRINGING_BACK = 1;
/** Late events bring some shipments back while others leave. */
const PACE_MS = 250;
const LIFE_MS = { least: 200, spread: 1_500 };
/** Whatever has not ended is over after 180 days. */
const SILENCE_SECONDS = 181 * 86_400;
const ENV = { ARCHIVE_AFTER_DAYS: "1", ARCHIVE_ROUND_SECONDS: "1" };

describe.each(STORES)("on %s", (store) => {
  let product: Product;
  let clickhouse: ClickhouseServer;

  beforeAll(async () => {
    clickhouse = await startClickhouseHttp();
    const { address } = clickhouse;
    const env = { ...ENV, CLICKHOUSE_URL: address, CLICKHOUSE_READ_URL: address };
    product = await startProduct(testSetup(), { ...env, ...onServer(store, 16) }, store);
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await clickhouse.stop();
  }, 300_000);

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
    const { heldChannels } = await readPanel(product, "/archive");
    return heldChannels.some(({ isDone }: { isDone: boolean }) => isDone);
  };

  const archived = async (): Promise<number> =>
    (await readPanel(product, "/overview")).stores.archive?.shipments ?? 0;
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
      senders: 1,
      paceMs: PACE_MS,
      sentBefore: 100_000,
    });
    const measuring = startMeasuring("Kill everything", `archiving and restoring, on ${store}`);
    const until = Date.now() + RUN_MS / STORES.length;
    let kills = 0;
    for (; kills < KILLS[store].length || Date.now() < until; kills += 1) {
      await stream.grows("late events arrive", 40);
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
