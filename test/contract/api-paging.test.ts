/** `Link`, `ETag` and `If-None-Match`: extensions of document 1 for readers of pages and shipments. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { item, openTestApi, type TestApi } from "#test/support/api.ts";
import { applyEvents } from "#test/support/facts.ts";
import { testSetup } from "#test/support/setup.ts";

const BASE = "http://localhost";

let api: TestApi;
let ids: number[];

beforeAll(async () => {
  const setup = testSetup();
  Object.assign(setup.companies?.[0] ?? {}, { products: ["api-parcels"] });
  api = await openTestApi(setup);
  const token = await api.token("key_acme_main");
  const shipments = Array.from({ length: 5 }, (_, n) =>
    item(`PAGE-${n}`, { orderReference: "R&D" }),
  );
  const { body } = await api.call("POST", "/v2/shipments", { token, body: { shipments } });
  ids = body.items.map(({ id }: { id: number }) => id);
  const parcels = [{ weightKg: 1 }, { weightKg: 2 }, { weightKg: 3 }];
  const order = { orderReference: "O1", orderOrigin: "shopify", parcels };
  await api.call("POST", "/v2/parcels", { token, body: order });
});
afterAll(() => api.end());

async function get(path: string, headers: Readonly<Record<string, string>> = {}) {
  const authorization = `Bearer ${await api.token("key_acme_main")}`;
  return api.fetch(new Request(`${BASE}${path}`, { headers: { authorization, ...headers } }));
}

/** Addresses by relation. */
async function linksOf(path: string): Promise<Record<string, string>> {
  const header = (await get(path)).headers.get("link") ?? "";
  const links = [...header.matchAll(/<([^>]+)>; rel="(\w+)"/g)];
  return Object.fromEntries(links.map(([, to = "", relation = ""]) => [relation, to]));
}

describe("Link", () => {
  test("leads through all pages of a search, with its filters", async () => {
    const found: number[] = [];
    let path: string | undefined = "/v2/shipments?orderReference=R%26D&sortBy=id_asc&limit=2";
    while (path !== undefined) {
      const { items } = (await (await get(path)).json()) as { items: { id: number }[] };
      found.push(...items.map(({ id }) => id));
      path = (await linksOf(path))["next"];
    }
    expect(found).toEqual(ids);
  });

  test("names the pages that exist, and none without a match", async () => {
    const relations = async (path: string) => Object.keys(await linksOf(path));
    expect(await relations("/v2/shipments?limit=2")).toEqual(["first", "next", "last"]);
    expect(await relations("/v2/shipments?limit=2&page=2")).toEqual([
      ...["first", "prev", "next", "last"],
    ]);
    expect(await relations("/v2/shipments?limit=2&page=3")).toEqual(["first", "prev", "last"]);
    expect(await relations("/v2/shipments?limit=2&page=9")).toEqual(["first", "last"]);
    expect(await relations("/v2/shipments?trackingNumber=none")).toEqual([]);
  });

  test("is on pages of parcels and orders too", async () => {
    const parcels = "/v2/parcels?orderReference=O1&orderOrigin=shopify&limit=2";
    expect((await linksOf(parcels))["last"]).toBe(`${parcels}&page=2`);
    expect((await linksOf("/v2/orders?limit=1"))["last"]).toBe("/v2/orders?limit=1&page=1");
  });

  test("of 4,096 characters is sent, a longer one is not", async () => {
    const lengthOf = async (count: number) =>
      (await get(`/v2/orders?limit=1&x=${"x".repeat(count)}`)).headers.get("link")?.length ?? null;
    const short = (await lengthOf(100)) ?? 0;
    const most = 100 + Math.floor((4_096 - short) / 2);
    expect(await lengthOf(most)).toBeGreaterThan(4_094);
    expect(await lengthOf(most + 1)).toBeNull();
  });
});

describe.each([
  ["a shipment", () => `/v2/shipments/${ids[0]}`],
  ["a search", () => "/v2/shipments?sortBy=id_asc"],
])("ETag of %s", (_, path) => {
  test("is answered 304 without a body until the shipment changes", async () => {
    const first = await get(path());
    const tag = first.headers.get("etag") ?? "";
    expect(tag).toMatch(/^W\/"[0-9a-z]+"$/);
    expect(first.headers.get("cache-control")).toBe("private, no-cache");
    for (const known of [tag, `"other", ${tag}`, tag.slice(2), "*"]) {
      const again = await get(path(), { "if-none-match": known });
      expect([again.status, await again.text()]).toEqual([304, ""]);
      expect(again.headers.get("etag")).toBe(tag);
      expect(again.headers.has("x-ratelimit-remaining")).toBe(true);
    }
    expect((await get(path(), { "if-none-match": '"other"' })).status).toBe(200);
    const code = path().includes("?") ? "OUT" : "TRN";
    await applyEvents(api.runtime, [{ shipmentId: ids[0] ?? 0, code }]);
    const changed = await get(path(), { "if-none-match": tag });
    expect(changed.status).toBe(200);
    expect(changed.headers.get("etag")).not.toBe(tag);
  });
});
