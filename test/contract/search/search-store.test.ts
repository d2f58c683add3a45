/** Search over the store: every way to a page against a plain filter and sort of the same shipments. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CHUNK } from "#core/search/store/index-ranges.ts";
import { searchShipments } from "#core/search/store/search.ts";
import {
  type Asked,
  createSearched,
  FIRST_DAY,
  ORDERS,
  pageOf,
  queryOf,
  questions,
  type Row,
  type Searched,
  STATUSES,
  searchedCompany,
  type Variety,
} from "#test/support/data/searched-shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

/** Enough for every way: more than what is sorted at once, more than a block of rows, several chunks a range. */
const SHIPMENTS = 9_000;
const VARIETY: Variety = {
  inSecond: 3,
  perShipDay: 112,
  customAttributes: (number) => ({
    custom1: number % 2 === 0 ? "even" : `odd-${number % 50}`,
    ...(number % 7 === 0 && { custom2: "ten" }),
  }),
};

let runtime: TestRuntime;
let rows: Row[];
let company: Searched;
let channelIds: readonly number[];

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  company = searchedCompany(runtime);
  channelIds = company.channelIds;
  rows = await createSearched(runtime, company, VARIETY, 0, SHIPMENTS);
}, 300_000);
afterAll(() => runtime.end());

async function expectAgreement(asked: Asked): Promise<void> {
  const query = queryOf(company, asked);
  const { total, hits } = await searchShipments(runtime.redis, query);
  expect({ total, ids: hits.map(({ id }) => id) }).toEqual(pageOf(rows, query));
}

describe("pages agree with a plain filter and sort", () => {
  test("any combination of filters, sorts and positions", async () => {
    const odd = { custom1: "odd-7" };
    const both = { custom1: "even", custom2: "ten" };
    const exact = fc.constantFrom({}, {}, {}, { custom1: "even" }, odd, both);
    const asked = questions(company, rows, exact);
    await fc.assert(fc.asyncProperty(asked, expectAgreement), { numRuns: 250 });
  }, 300_000);

  const positions = [0, CHUNK - 20, CHUNK, 5_000, SHIPMENTS - 5, SHIPMENTS, SHIPMENTS * 2];
  test.each(positions)(
    "every sort from position %d, over one and over both channels",
    async (at) => {
      for (const by of ORDERS) {
        for (const descending of [true, false]) {
          await expectAgreement({ order: { by, descending }, offset: at });
          await expectAgreement({
            order: { by, descending },
            offset: at,
            channelIds: channelIds.slice(0, 1),
          });
          await expectAgreement({ order: { by, descending }, offset: at, statuses: STATUSES });
        }
      }
    },
  );

  test("a ship date range at the far end of the ids, sorted by id", async () => {
    const shipTo = FIRST_DAY + 40;
    await expectAgreement({ shipTo });
    await expectAgreement({ shipTo, offset: 3_400, limit: 100 });
    await expectAgreement({ shipTo, statuses: ["PENDING", "DELIVERED"] });
    await expectAgreement({ shipFrom: shipTo, order: { by: "id", descending: false } });
  });

  test("an exact value that most shipments have", async () => {
    await expectAgreement({ exact: { custom1: "even" } });
    await expectAgreement({ exact: { custom1: "even" }, order: { by: "upd", descending: false } });
    await expectAgreement({ exact: { custom1: "even", custom2: "ten" }, statuses: ["DELIVERED"] });
  });

  test("a value that nobody has", async () => {
    await expectAgreement({ exact: { custom1: "nobody" } });
    await expectAgreement({ trackingNumber: "nobody" });
    await expectAgreement({ shipFrom: FIRST_DAY + 1_000 });
  });
});
