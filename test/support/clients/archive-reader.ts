/** A merchant that reads all of its shipments over and over while they move, and what it must find. */
import { expect } from "bun:test";
import type { Urls } from "#test/support/data/oracle.ts";
import { within } from "#test/support/eventually.ts";
import { type Answer, type Merchant, signIn } from "./merchant.ts";

const PAGE = 60;
/** As document 1 prints it: with a smaller limit the shipments of one second could fill a page for ever. */
const CATCH_UP_LIMIT = 100;
const RETRY_MS = 50;
/** While something is unavailable, or the clock has moved past the expiry of a token. */
const RETRIED = new Set([401, 429, 500, 502, 503, 504]);

/**
 * Pages through all shipments and catches up, in turn; tries again until it is answered.
 * @param ids all that there are, in ascending order
 */
export function startReader({ api }: Pick<Urls, "api">, ids: readonly number[]) {
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
