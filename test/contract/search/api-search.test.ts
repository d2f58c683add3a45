/** Document 1, `GET /v2/shipments`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { asIndexed } from "#api/shipments/as-indexed.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { searchShipments } from "#core/search/store/search.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { queryOf, searchedCompany } from "#test/support/data/searched-shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { type Answer, item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
let outlet: string;
/** By tracking number. */
const ids = new Map<string, number>();

const ITEMS = [
  item("S1", {
    shipDate: "2026-11-01",
    orderReference: "o-1",
    customAttributes: { custom1: "red" },
  }),
  item("S2", {
    shipDate: "2026-11-02",
    orderReference: "o-2",
    customAttributes: { custom1: "red", custom2: "big" },
  }),
  item("S3", { shipDate: "2026-11-02", customAttributes: { custom3: "late" } }),
  item("S4", { shipDate: "2026-11-03", courier: "BRT_ITA", orderReference: "o-1" }),
  item("S5", { shipDate: "2026-11-04" }),
  item("S1", { shipDate: "2026-11-05", courier: "BRT_ITA" }),
];

beforeAll(async () => {
  api = await openTestApi(testSetup());
  token = await api.token("key_acme_main");
  outlet = await api.token("key_acme_outlet");
  await create(token, ITEMS, "");
  await create(outlet, [item("S1"), item("S6", { shipDate: "2026-11-06" })], "outlet ");
  for (const [number, code] of [
    ["S5", "TRN"],
    ["S2", "TRN"],
    ["S1", "DLV"],
    ["outlet S6", "DLV"],
  ] as const) {
    await api.advance(10);
    await applyEvents(api.runtime, [{ shipmentId: id(number), code }]);
  }
});
afterAll(() => api.end());

async function create(as: string, items: readonly ReturnType<typeof item>[], prefix: string) {
  const { status, body } = await api.call("POST", "/v2/shipments", {
    token: as,
    body: { shipments: items },
  });
  expect(status).toBe(201);
  items.forEach(({ trackingNumber, courier }, at) => {
    const suffix = ids.has(prefix + trackingNumber) ? ` ${courier}` : "";
    ids.set(prefix + trackingNumber + suffix, body.items[at].id);
  });
}

function id(number: string): number {
  const known = ids.get(number);
  if (known === undefined) throw new Error(`no shipment ${number}`);
  return known;
}

function search(query: string, as = token): Promise<Answer> {
  return api.call("GET", `/v2/shipments?${query}`, { token: as });
}

/** Names of the shipments found, in order. */
async function found(query: string, as = token): Promise<string[]> {
  const names = new Map([...ids].map(([name, number]) => [number, name]));
  const { status, body } = await search(query, as);
  expect(status).toBe(200);
  return body.items.map((row: { id: number }) => names.get(row.id) ?? "?");
}

const ALL_DESC = ["S1 BRT_ITA", "S5", "S4", "S3", "S2", "S1"];

describe("200", () => {
  test("the envelope has items, total, page, limit and pages; the newest id comes first", async () => {
    const { body } = await search("");
    expect(body).toEqual({ items: expect.any(Array), total: 6, page: 1, limit: 20, pages: 1 });
    expect(await found("")).toEqual(ALL_DESC);
  });

  test("an item has every field of the summary and none of the detail", async () => {
    const { body } = await search("trackingNumber=S2");
    expect(Object.keys(body.items[0])).toEqual(
      "id channelId trackingNumber trackingUrl courier courierName status statusDescription statusDetail statusDetailDescription statusDate statusUpdatedAt statusPlace shipDate orderReference platformOrderId orderDate tag note origin isReturn consignee monetary customAttributes".split(
        " ",
      ),
    );
    expect(body.items[0]).toMatchObject({ status: "IN_TRANSIT", courierName: "GLS Italy" });
  });

  test("no match is an empty page, not an error", async () => {
    const { status, body } = await search("trackingNumber=nobody");
    expect([status, body]).toEqual([200, { items: [], total: 0, page: 1, limit: 20, pages: 0 }]);
  });

  test("a parameter that the document does not know is refused", async () => {
    expect((await search("colour=red")).body.code).toBe("UNKNOWN_PARAMETER");
  });
});

describe("courier, an extension", () => {
  test("by code, name or transcoding, combined with the other filters; total and pages are exact", async () => {
    const all = (await search("limit=100")).body.items;
    const own = all.filter(({ courier }: { courier: string }) => courier === "BRT_ITA");
    expect(own.length).toBeGreaterThan(0);
    for (const name of ["BRT_ITA", "brt_ita"]) {
      const { body } = await search(`courier=${name}&limit=100`);
      expect([body.items, body.total]).toEqual([own, own.length]);
    }
    const { body } = await search("courier=GLS_ITA&limit=2&page=2&sortBy=id_asc");
    const gls = all.filter(({ courier }: { courier: string }) => courier === "GLS_ITA");
    expect([body.items, body.total]).toEqual([gls.toReversed().slice(2, 4), gls.length]);
    const [first] = own;
    const none = await search(`courier=GLS_ITA&status=${first.status}&trackingNumber=none`);
    expect(none.body.total).toBe(0);
  });

  test("one that is not known is 422 and says which was meant", async () => {
    const { status, body } = await search("courier=GSL_ITA");
    expect(status).toBe(422);
    expect(body.violations[0]).toMatchObject({ path: "courier", code: "NOT_ALLOWED" });
    expect(body.violations[0].message).toInclude("Did you mean GLS_ITA?");
  });
});

describe("filters", () => {
  const cases: [string, string[]][] = [
    ["trackingNumber=S1", ["S1 BRT_ITA", "S1"]],
    ["trackingNumber=s1", []],
    ["orderReference=o-1", ["S4", "S1"]],
    ["custom1=red", ["S2", "S1"]],
    ["custom2=big", ["S2"]],
    ["custom3=late", ["S3"]],
    ["custom1=red&custom2=big", ["S2"]],
    ["shipDateFrom=2026-11-03", ["S1 BRT_ITA", "S5", "S4"]],
    ["shipDateTo=2026-11-02", ["S3", "S2", "S1"]],
    ["shipDateFrom=2026-11-02&shipDateTo=2026-11-03", ["S4", "S3", "S2"]],
    ["shipDateFrom=2026-11-04&shipDateTo=2026-11-03", []],
    ["status=IN_TRANSIT", ["S5", "S2"]],
    ["status=IN_TRANSIT,DELIVERED", ["S5", "S2", "S1"]],
    ["status=PENDING", ["S1 BRT_ITA", "S4", "S3"]],
    ["status=RETURNED", []],
    ["trackingNumber=S1&status=DELIVERED&custom1=red&shipDateTo=2026-11-01", ["S1"]],
    ["trackingNumber=S1&status=IN_TRANSIT", []],
    ["orderReference=o-1&status=DELIVERED", ["S1"]],
    ["custom1=red&shipDateFrom=2026-11-02", ["S2"]],
    ["status=IN_TRANSIT&shipDateTo=2026-11-02", ["S2"]],
  ];

  test.each(cases)("%s", async (query, expected) => {
    expect(await found(query)).toEqual(expected);
    expect((await search(query)).body.total).toBe(expected.length);
  });

  test("updatedAfter: at or after it, in Rome local time; a shipment never updated is excluded", async () => {
    const { body } = await search("trackingNumber=S2&status=IN_TRANSIT");
    const at = body.items[0].statusUpdatedAt;
    expect(at).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    expect(await found(`updatedAfter=${encodeURIComponent(at)}`)).toEqual(["S2", "S1"]);
    expect(await found(`updatedAfter=${at.replace(" ", "+")}`)).toEqual(["S2", "S1"]);
    const later = romeDateTime(api.runtime.live.now() + 3_600_000);
    expect(await found(`updatedAfter=${encodeURIComponent(later)}`)).toEqual([]);
    expect(await found("updatedAfter=2000-01-01+00:00:00")).toEqual(["S5", "S2", "S1"]);
    expect(await found("updatedAfter=1960-01-01+00:00:00")).toEqual(["S5", "S2", "S1"]);
    expect(await found("updatedAfter=2000-01-01+00:00:00&shipDateFrom=2026-11-02")).toEqual([
      "S5",
      "S2",
    ]);
  });
});

describe("sorts", () => {
  const cases: [string, string[]][] = [
    ["id_desc", ALL_DESC],
    ["id_asc", [...ALL_DESC].reverse()],
    ["shipDate_asc", ["S1", "S2", "S3", "S4", "S5", "S1 BRT_ITA"]],
    ["shipDate_desc", ["S1 BRT_ITA", "S5", "S4", "S3", "S2", "S1"]],
    ["updatedAt_asc", ["S3", "S4", "S1 BRT_ITA", "S5", "S2", "S1"]],
    ["updatedAt_desc", ["S1", "S2", "S5", "S1 BRT_ITA", "S4", "S3"]],
  ];

  test.each(cases)(
    "%s, ties by id, never updated ones before all others",
    async (sort, expected) => {
      expect(await found(`sortBy=${sort}`)).toEqual(expected);
    },
  );
});

describe("pages", () => {
  test("page and limit cut the list, total and pages stay exact", async () => {
    const { body } = await search("limit=4&page=2");
    expect(body).toMatchObject({ total: 6, page: 2, limit: 4, pages: 2 });
    expect(await found("limit=4&page=2")).toEqual(["S2", "S1"]);
    expect(await found("limit=4&page=3")).toEqual([]);
    expect(await found("limit=100&page=1000000")).toEqual([]);
  });
});

describe("422", () => {
  const cases: [string, string, string][] = [
    ["page=0", "page", "OUT_OF_RANGE"],
    ["page=-1", "page", "OUT_OF_RANGE"],
    ["page=one", "page", "WRONG_TYPE"],
    ["page=1.5", "page", "WRONG_TYPE"],
    ["limit=0", "limit", "OUT_OF_RANGE"],
    ["limit=101", "limit", "OUT_OF_RANGE"],
    ["limit=x", "limit", "WRONG_TYPE"],
    ["status=5", "status", "NOT_ALLOWED"],
    ["status=SHIPPED", "status", "NOT_ALLOWED"],
    ["status=DELIVERED,SHIPPED", "status", "NOT_ALLOWED"],
    ["status=delivered", "status", "NOT_ALLOWED"],
    ["status=", "status", "TOO_SHORT"],
    ["shipDateFrom=2026-02-30", "shipDateFrom", "BAD_FORMAT"],
    ["shipDateTo=tomorrow", "shipDateTo", "BAD_FORMAT"],
    ["updatedAfter=2026-11-10", "updatedAfter", "BAD_FORMAT"],
    ["updatedAfter=2026-11-10T10:00:00%2B01:00", "updatedAfter", "BAD_FORMAT"],
    ["updatedAfter=2026-13-10+10:00:00", "updatedAfter", "BAD_FORMAT"],
    ["sortBy=name", "sortBy", "NOT_ALLOWED"],
    ["sortBy=toString", "sortBy", "NOT_ALLOWED"],
    ["scope=world", "scope", "NOT_ALLOWED"],
    ["page=1&page=2", "page", "TOO_MANY"],
  ];

  test.each(cases)("%s", async (query, path, code) => {
    const { status, headers, body } = await search(query);
    expect(status).toBe(422);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(body.violations).toMatchObject([{ path, code, message: expect.any(String) }]);
  });

  test("all violations are reported at once", async () => {
    const { body } = await search("page=0&limit=0&status=5&sortBy=x");
    expect(body.violations).toHaveLength(4);
  });
});

describe("scope=company", () => {
  test("shows the shipments of all channels of the company, with their channelId", async () => {
    expect(await found("scope=company")).toEqual(["outlet S6", "outlet S1", ...ALL_DESC]);
    const { body } = await search("scope=company");
    expect(body.total).toBe(8);
    expect(new Set(body.items.map((row: { channelId: number }) => row.channelId)).size).toBe(2);
  });

  test("combines with every filter and sort", async () => {
    expect(await found("scope=company&trackingNumber=S1")).toEqual([
      "outlet S1",
      "S1 BRT_ITA",
      "S1",
    ]);
    expect(await found("scope=company&status=DELIVERED&sortBy=updatedAt_asc")).toEqual([
      "S1",
      "outlet S6",
    ]);
    expect(await found("scope=company&sortBy=shipDate_desc&limit=2")).toEqual([
      "outlet S1",
      "outlet S6",
    ]);
  });

  test("403 for a key without company-wide reads; scope=channel is open to it", async () => {
    const { status, body } = await search("scope=company", outlet);
    expect([status, body.code]).toEqual([403, "COMPANY_WIDE_READ_NOT_ENABLED"]);
    expect(await found("scope=channel", outlet)).toEqual(["outlet S6", "outlet S1"]);
  });

  test("leaves out channels that are not active", async () => {
    const setup = testSetup();
    Object.assign(setup.companies?.[0]?.channels?.[1] ?? {}, { active: false });
    await applySetupFile(api.runtime, setup);
    expect(await found("scope=company")).toEqual(ALL_DESC);
    await applySetupFile(api.runtime, testSetupActive());
    expect((await search("scope=company")).body.total).toBe(8);
  });

  test("the detail stays per channel", async () => {
    const { status } = await api.call("GET", `/v2/shipments/${id("outlet S6")}`, { token });
    expect(status).toBe(404);
  });
});

function testSetupActive() {
  const setup = testSetup();
  Object.assign(setup.companies?.[0]?.channels?.[1] ?? {}, { active: true });
  return setup;
}

describe("the reconciliation procedure as printed", () => {
  const SHIPMENTS = 1_000;
  const PER_ROUND = 95;
  let changed: number[];

  beforeAll(async () => {
    changed = [];
    for (let from = 0; from < SHIPMENTS; from += 100) {
      const items = Array.from({ length: 100 }, (_, at) => item(`R${from + at}`));
      const as = from % 200 === 0 ? token : outlet;
      const { body } = await api.call("POST", "/v2/shipments", {
        token: as,
        body: { shipments: items },
      });
      changed.push(...body.items.map((row: { id: number }) => row.id));
    }
  });

  /** Repeats the call from the last item's statusUpdatedAt until a page is not full. */
  async function reconcile(updatedAfter: string, between = async () => {}) {
    const seen = new Map<number, string>();
    let calls = 0;
    for (let after = updatedAfter; ; calls += 1) {
      expect(calls).toBeLessThan(200);
      const { body } = await search(
        `scope=company&sortBy=updatedAt_asc&limit=100&updatedAfter=${encodeURIComponent(after)}`,
      );
      const updates = body.items.map((row: { statusUpdatedAt: string }) => row.statusUpdatedAt);
      expect(updates).toEqual([...updates].sort());
      for (const row of body.items) seen.set(row.id, row.status);
      if (body.items.length < 100) return seen;
      after = updates.at(-1);
      await between();
    }
  }

  test("ends and misses nothing when 1,000 shipments changed within one second", async () => {
    await api.advance(3_600);
    const start = romeDateTime(api.runtime.live.now());
    await applyEvents(
      api.runtime,
      changed.map((shipmentId) => ({ shipmentId, code: "TRN" })),
    );
    const seen = await reconcile(start);
    expect([...seen.keys()].sort()).toEqual([...changed].sort());
    expect(new Set(seen.values())).toEqual(new Set(["IN_TRANSIT"]));
  });

  test("ends at the last state of each while they change during the reading", async () => {
    await api.advance(3_600);
    const start = romeDateTime(api.runtime.live.now());
    const left = [...changed];
    const change = async (code: string, count: number) => {
      const part = left.splice(0, count);
      await applyEvents(
        api.runtime,
        part.map((shipmentId) => ({ shipmentId, code })),
      );
    };
    await change("OUT", 400);
    const again = changed.slice(0, 100);
    let round = 0;
    const seen = await reconcile(start, async () => {
      round += 1;
      await change("OUT", 150);
      if (round === 2) {
        const delivered = again.map((shipmentId) => ({ shipmentId, code: "DLV" }));
        await applyEvents(api.runtime, delivered);
      }
    });
    expect(left).toEqual([]);
    expect(seen.size).toBe(SHIPMENTS);
    for (const shipmentId of again) expect(seen.get(shipmentId)).toBe("DELIVERED");
  });

  test("misses nothing while some change once and others again and again during the reading", async () => {
    await api.advance(3_600);
    const start = romeDateTime(api.runtime.live.now());
    const restless = changed.slice(0, 10);
    const calm = changed.slice(10);
    let done = false;
    // One commit fills more than a second, so that the restless ones at its end stand in a later one.
    const writing = (async () => {
      for (let round = 0; round * PER_ROUND < calm.length; round += 1) {
        const once = calm.slice(round * PER_ROUND, (round + 1) * PER_ROUND);
        const code = round % 2 === 0 ? "TRN" : "HLD";
        await applyEvents(api.runtime, [
          ...once.map((shipmentId) => ({ shipmentId, code: "HLD" })),
          ...restless.map((shipmentId) => ({ shipmentId, code })),
        ]);
      }
      done = true;
    })();
    const seen = new Set<number>();
    for (let after = start, last = false; !last; ) {
      const settled = done;
      const { body } = await search(
        `scope=company&sortBy=updatedAt_asc&limit=100&updatedAfter=${encodeURIComponent(after)}`,
      );
      for (const row of body.items) seen.add(row.id);
      after = body.items.at(-1)?.statusUpdatedAt ?? after;
      last = settled && body.items.length < 100;
    }
    await writing;
    expect(changed.filter((shipmentId) => !seen.has(shipmentId))).toEqual([]);
  });

  test("a shipment that changes between the index and its row keeps the time it was found by", async () => {
    const { redis } = api.runtime;
    const byTime = { updatedFrom: 1, order: { by: "upd", descending: false }, limit: 100 } as const;
    const company = searchedCompany(api.runtime);
    const { hits } = await searchShipments(redis, queryOf(company, byTime));
    await api.advance(3_600);
    await applyEvents(
      api.runtime,
      hits.slice(-1).map(({ id: shipmentId }) => ({ shipmentId, code: "OUT" })),
    );
    const rows = await readShipments(
      redis,
      hits.map(({ id: shipmentId }) => shipmentId),
    );
    const shown = asIndexed(rows, hits).map(({ statusUpdatedAtMs }) => statusUpdatedAtMs);
    expect(shown).toEqual(hits.map(({ score }) => score * 1000));
    expect(rows.at(-1)?.statusUpdatedAtMs).toBeGreaterThan(shown.at(-1) ?? 0);
  });
});
