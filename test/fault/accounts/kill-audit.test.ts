/** Every change that was answered is in the audit log once, whatever is killed: the product, its Redis, its ClickHouse with it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { askPanel, readPanel } from "#test/support/clients/operator.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import { STORES } from "#test/support/servers/stores.ts";

const KILLS = 2;
/** Answered before a kill: entries are on their way to ClickHouse, or in an insert, or inserted and still in Redis. */
const ANSWERED = 60;
const AT_ONCE = 8;
const PATH = "/channels/acme-it/rate-limit";

interface Entry {
  readonly id: string;
  readonly action: string;
  readonly after: { readonly bucketSize: number };
}

describe.each(STORES)("on %s", (store) => {
  let product: Product;
  let size = 1_000;

  beforeAll(async () => {
    product = await startProduct(testSetup(), {}, store);
  }, 300_000);
  afterAll(() => product?.end(), 300_000);

  /** Changes on and on until the product dies. @returns what has been answered, and what has been asked for */
  async function changeUntilKilled(withRedis: boolean) {
    const answered: number[] = [];
    const asked: number[] = [];
    let isOver = false;
    const changing = Array.from({ length: AT_ONCE }, async () => {
      while (!isOver) {
        size += 1;
        const bucketSize = size;
        asked.push(bucketSize);
        const body = { bucketSize, refillRate: 50 };
        const answer = await askPanel(product, "PUT", PATH, body).catch(() => null);
        if (answer?.status === 200) answered.push(bucketSize);
      }
    });
    await eventually(() => answered.length >= ANSWERED, "changes are under way");
    await product.kill(withRedis);
    isOver = true;
    await Promise.all(changing);
    await product.start();
    return { answered, asked };
  }

  async function wholeLog(): Promise<{ entries: Entry[]; isPartial: boolean }> {
    const entries: Entry[] = [];
    let isPartial = false;
    for (let cursor: string | null = ""; cursor !== null; ) {
      const next: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page = await readPanel(product, `/audit?limit=200${next}`);
      entries.push(...page.items);
      isPartial ||= page.isPartial;
      cursor = page.nextCursor;
    }
    return { entries, isPartial };
  }

  const isTaken = async () => {
    const metrics = await (await fetch(`${product.panel}/metrics`)).text();
    return /^waybill_group_lag_entries\{log="audit",group="audit"[^}]*\} 0$/m.test(metrics);
  };

  test("after kills in the middle of changes and inserts, each that was answered is one entry, and none stands there twice", async () => {
    const answered: number[] = [];
    const asked = new Set<number>();
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const round = await changeUntilKilled(kill % 2 === 0);
      answered.push(...round.answered);
      for (const one of round.asked) asked.add(one);
    }
    await eventually(isTaken, "ClickHouse has the entries");
    const complete = await eventually(async () => {
      const log = await wholeLog();
      return log.isPartial ? false : log;
    }, "ClickHouse answers");
    const entries = complete.entries.filter(({ action }) => action.startsWith("PUT"));
    const sizes = entries.map(({ after }) => after.bucketSize);
    expect(sizes.length).toBe(new Set(sizes).size);
    expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
    expect(answered.filter((one) => !sizes.includes(one))).toEqual([]);
    expect(sizes.filter((one) => !asked.has(one))).toEqual([]);
  }, 300_000);
});
