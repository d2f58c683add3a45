/** Pages out of the rows that search keeps: what blocks are left out by their bounds never changes an answer. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { firstWhere } from "#core/platform/process/first-where.ts";
import type { IndexOrder } from "#core/platform/redis/keys.ts";
import { compareHits, type Hit } from "#core/search/store/index-ranges.ts";
import type { Filter } from "#core/search/store/match-rows.ts";
import { selectAfter, selectPage } from "#core/search/store/select-page.ts";
import {
  type Block,
  type ColumnRow,
  DAY_SHIFT,
  emptyBlock,
  putRow,
  ROWS_PER_BLOCK,
  tighten,
} from "#core/shipments/store/columns.ts";

const CHANNELS = [3, 5] as const;
const ROWS = 14_000;
const ANY = { least: 0, most: Number.MAX_SAFE_INTEGER };
const ALL: Filter = { id: ANY, ship: ANY, upd: ANY, statuses: -1, exact: null };
const FIRST_SECOND = 1_790_000_000;

interface Row extends ColumnRow {
  readonly channelId: number;
  readonly rank: number;
}

/** Ids of both channels are interleaved; the values are spread as given. */
function fill(valuesAt: (at: number) => Omit<ColumnRow, "id">): { rows: Row[]; blocks: Block[] } {
  const rows: Row[] = [];
  const blocks = new Map<string, Block>();
  const counts = new Map<number, number>();
  for (let at = 0; at < ROWS; at += 1) {
    const channelId = CHANNELS[at % 4 === 0 ? 1 : 0];
    const rank = counts.get(channelId) ?? 0;
    counts.set(channelId, rank + 1);
    const first = rank - (rank % ROWS_PER_BLOCK);
    const name = `${channelId} ${first}`;
    const block = blocks.get(name) ?? emptyBlock(channelId, first);
    blocks.set(name, block);
    const row = { id: 2 ** 33 + at * 16, ...valuesAt(at) };
    // Every row first stands there with other values, as before its shipment changed.
    putRow(block, rank - first, { ...row, updated: 0, status: 0 });
    putRow(block, rank - first, row);
    rows.push({ ...row, channelId, rank });
  }
  const all = [...blocks.values()];
  all.forEach(tighten);
  return { rows, blocks: all };
}

const within = (value: number, { least, most }: { least: number; most: number }) =>
  value >= least && value <= most;

function naive(rows: readonly Row[], filter: Filter, by: IndexOrder, descending: boolean) {
  const value = (row: Row) => ({ id: row.id, ship: row.shipped - DAY_SHIFT, upd: row.updated })[by];
  return rows
    .filter((row) => within(row.shipped, filter.ship) && within(row.updated, filter.upd))
    .filter((row) => (filter.statuses >>> row.status) & 1)
    .filter(({ channelId, rank }) => {
      const byte = filter.exact?.get(channelId)?.[rank >>> 3] ?? 0;
      return filter.exact === null || (byte & (128 >>> (rank & 7))) !== 0;
    })
    .sort((one, other) => (descending ? -1 : 1) * (value(one) - value(other) || one.id - other.id))
    .map((row) => ({ id: row.id, score: value(row) }));
}

const spreads: [string, (at: number) => Omit<ColumnRow, "id">][] = [
  ["never updated, one ship date", () => ({ updated: 0, shipped: 740_000, status: 1 })],
  [
    "updated in the order of ids, some of them late",
    (at) => ({
      updated: FIRST_SECOND + at * 30 + (at % 97 === 0 ? 10_000_000 : 0),
      shipped: 740_000 + Math.floor(at / 300),
      status: at % 5 === 0 ? 3 : 12,
    }),
  ],
  [
    "updated in any order, most of them in one second",
    (at) => ({
      updated: at % 3 === 0 ? FIRST_SECOND + ((at * 7_919) % 100_000) : FIRST_SECOND,
      shipped: 740_000 + ((at * 31) % 4),
      status: at % 13,
    }),
  ],
];

test.each(spreads)("%s: every page agrees with a plain filter and sort", (_name, valuesAt) => {
  const { rows, blocks } = fill(valuesAt);
  const bits = new Map(CHANNELS.map((id) => [id, new Uint8Array(ROWS / 8).fill(0b0110_1011)]));
  const second = fc.integer({ min: 0, max: ROWS - 1 }).map((at) => rows[at]?.updated ?? 0);
  const day = fc.integer({ min: 739_999, max: 740_050 });
  const asked = fc.record({
    by: fc.constantFrom<IndexOrder>("id", "ship", "upd"),
    descending: fc.boolean(),
    offset: fc.oneof(fc.nat(100), fc.nat(ROWS + 100)),
    limit: fc.integer({ min: 1, max: 100 }),
    statuses: fc.constantFrom(-1, 1 << 12, (1 << 3) | (1 << 12), 1 << 1),
    upd: fc.option(second, { nil: 0 }),
    ship: fc.option(fc.tuple(day, day), { nil: null }),
    isExact: fc.boolean(),
  });
  fc.assert(
    fc.property(asked, ({ by, descending, offset, limit, statuses, upd, ship, isExact }) => {
      const filter: Filter = {
        ...ALL,
        statuses,
        upd: { ...ANY, least: upd },
        exact: isExact ? bits : null,
        ship: ship ? { least: Math.min(...ship), most: Math.max(...ship) } : ANY,
      };
      const expected = naive(rows, filter, by, descending);
      const { total, hits } = selectPage(blocks, filter, { by, descending }, offset, limit);
      expect(total).toBe(expected.length);
      expect(hits).toEqual(expected.slice(offset, offset + limit));
      const compare = compareHits({ by, descending });
      const others = naive(rows, ALL, by, descending)
        .filter((_, at) => at % 7 === 0)
        .slice(0, isExact ? 300 : ROWS)
        .map(({ id, score }) => ({ id: id + 8, score }));
      const othersBefore = (hit: Hit) =>
        firstWhere(others.length, (at) => compare(others[at] as Hit, hit) >= 0);
      // At most so many: a hit at the lowest possible position may seem to come later.
      const isBefore = (hit: Hit, position: number) =>
        position + Math.ceil(othersBefore(hit) / 64) * 64 < offset;
      const cut = { least: offset - others.length, most: offset, isBefore };
      const before = expected.filter(isBefore).length;
      const first = Math.min(expected.length, Math.max(offset - others.length, before));
      expect(selectAfter(blocks, filter, { by, descending }, cut, limit)).toEqual({
        total: expected.length,
        first,
        hits: expected.slice(first, first + limit),
      });
    }),
    { numRuns: 150 },
  );
});
