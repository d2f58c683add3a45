/** An oracle of its own: recomputes what the product must know from what couriers were answered, and compares all of it. */

import { expect } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { type Answer, type Merchant, signIn } from "#test/support/clients/merchant.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { untilServed } from "#test/support/clients/until-served.ts";
import { eventually } from "#test/support/eventually.ts";

/** Codes of the test setup and what its catalogue makes of them. */
const STATUS_OF: Readonly<Record<string, string>> = {
  TRN: "IN_TRANSIT",
  OUT: "OUT_FOR_DELIVERY",
  HLD: "EXCEPTION",
  DEP: "DEPARTED",
};
const PAGE = 100;
/** The analytics wait 60 s for the answer to a write before they write again (`analytics/clickhouse/clickhouse.ts`). */
const SETTLE_LIMIT_MS = 100_000;

export interface Urls {
  readonly api: string;
  readonly panel: string;
}

export interface Listed {
  readonly id: number;
  readonly trackingNumber: string;
  readonly status: string;
}

/** Over all shipments, from the sender's books and what the merchant is shown. */
export interface Counted {
  /** Events that were accepted, once for each shipment that they go to. */
  readonly inputs: number;
  /** Accepted, and not in the history. */
  readonly lost: number;
  /** In the history again. */
  readonly doubled: number;
}

export interface Circumstances {
  /** Shipments of another channel that have the first of these numbers too. */
  readonly shared?: { readonly key: string; readonly ids: readonly number[] };
  /** Groups that have something left to do, since what they write to is away. */
  readonly away?: readonly string[];
}

/**
 * Waits until everything is processed, then recomputes every shipment from what was accepted and compares all of it:
 * books, history, state, and what the search finds by each status.
 * @param ids of shipments `<prefix>-0`, `<prefix>-1`, …: all that there are
 * @param accepted by eventId; the text of an event's status is its eventId
 */
export async function expectExactlyOnce(
  product: Urls,
  prefix: string,
  ids: readonly number[],
  accepted: ReadonlyMap<string, CourierEvent>,
  { shared, away = [] }: Circumstances = {},
): Promise<Counted> {
  const numbers = new Set((shared?.ids ?? []).map((_, at) => `${prefix}-${at}`));
  const twice = [...accepted.values()].filter(({ trackingNumber = "" }) =>
    numbers.has(trackingNumber),
  );
  await expectSettled(product, accepted.size, accepted.size + twice.length, away);
  const merchant = await signIn(product.api, "key_acme_main");
  const byNumber = Map.groupBy(accepted.values(), ({ trackingNumber }) => trackingNumber);
  const expected = ids.map((_, at) => recompute(byNumber.get(`${prefix}-${at}`) ?? []));
  const histories: History[] = [];
  const compare = async (as: Merchant, own: readonly number[]) => {
    for (const [at, id] of own.entries()) {
      const found = await shown(as, id);
      const due = expected[at] ?? recompute([]);
      histories.push({ due: due.history, found: found.history });
      expect(found).toEqual(due);
    }
  };
  await compare(merchant, ids);
  if (shared) await compare(await signIn(product.api, shared.key), shared.ids);
  for (const status of ["PENDING", ...Object.values(STATUS_OF)]) {
    const found = await listAll(merchant, `status=${status}`);
    const due = ids.filter((_, at) => expected[at]?.status === status).toSorted((a, b) => a - b);
    expect([status, found.map(({ id }) => id)]).toEqual([status, due]);
  }
  return count(histories);
}

interface History {
  readonly due: readonly string[];
  readonly found: readonly string[];
}

function count(histories: readonly History[]): Counted {
  const sum = (of: (history: History) => number) =>
    histories.reduce((total, history) => total + of(history), 0);
  return {
    inputs: sum(({ due }) => due.length),
    lost: sum(({ due, found }) => new Set(due).difference(new Set(found)).size),
    doubled: sum(({ found }) => found.length - new Set(found).size),
  };
}

interface Shown {
  readonly status: string;
  readonly statusDate: string | null;
  readonly statusPlace: string | null;
  readonly history: string[];
}

/** What the merchant sees of a shipment, in the form of `recompute`. */
async function shown(merchant: Merchant, id: number): Promise<Shown> {
  const body = await untilServed(() => merchant.call("GET", `/v2/shipments/${id}`));
  const { status, statusDate, statusPlace } = body;
  const history: string[] = body.history.map((one: { courierStatus: string }) => one.courierStatus);
  return { status, statusDate, statusPlace, history };
}

/** Every shipment that a search finds, by ascending id; the total it tells is how many there are. */
export async function listAll(merchant: Merchant, filter: string): Promise<Listed[]> {
  const found: Listed[] = [];
  for (let page = 1; ; page += 1) {
    const query = `${filter}&sortBy=id_asc&limit=${PAGE}&page=${page}`;
    const body = await untilServed(() => merchant.call("GET", `/v2/shipments?${query}`));
    found.push(...body.items);
    if (page < body.pages) continue;
    expect([filter, body.total]).toEqual([filter, found.length]);
    return found;
  }
}

function recompute(events: readonly CourierEvent[]): Shown {
  const own = events.toSorted(
    (one, other) => Date.parse(other.occurredAt) - Date.parse(one.occurredAt),
  );
  const [latest] = own;
  return {
    status: latest ? (STATUS_OF[latest.status.code] ?? "") : "PENDING",
    // November: Rome is one hour ahead of UTC.
    statusDate: latest
      ? new Date(Date.parse(latest.occurredAt) + 3_600_000)
          .toISOString()
          .slice(0, 19)
          .replace("T", " ")
      : null,
    statusPlace: latest?.location?.name ?? null,
    history: own.map(({ eventId }) => eventId),
  };
}

interface Lag {
  readonly group: string;
  readonly entries: number;
}

/**
 * Waits until no group has anything left to do, the books balance with as many events as were accepted, and expects
 * that nothing became a dead letter on the way.
 * @param routed the same events, once for each shipment that they go to
 */
export async function expectSettled(
  { panel }: Urls,
  accepted: number,
  routed = accepted,
  away: readonly string[] = [],
): Promise<void> {
  const ask = (path: string) => askPanel({ panel }, "GET", path);
  const faultOf = (error: Error): Pick<Answer, "body"> => ({ body: { fault: error.message } });
  let last: unknown = "nothing yet";
  await eventually(
    async () => {
      const { body: overview } = await ask("/overview").catch(faultOf);
      last = overview;
      if (!overview?.ledger?.difference) return false;
      const { ledger, lag } = overview;
      const differences: number[] = Object.values(ledger.difference);
      return (
        differences.every((difference) => difference === 0) &&
        lag.every(({ group, entries }: Lag) => entries === 0 || away.includes(group)) &&
        ledger.accepted === accepted &&
        ledger.routed === routed &&
        ledger.applied === routed
      );
    },
    () => `${accepted} events are applied and sent; the overview says ${JSON.stringify(last)}`,
    SETTLE_LIMIT_MS,
  );
  expect((await untilServed(() => ask("/dead-letters"))).items).toEqual([]);
}
