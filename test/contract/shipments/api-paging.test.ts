/** `Link`, `ETag`, `If-None-Match` and gzip: extensions of document 1 for readers of pages and shipments. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { Elysia } from "elysia";
import { finishJob, readJob } from "#core/merchants/store/jobs/import-jobs.ts";
import { compression } from "#core/platform/http/compression.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

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
      (await get(`/v2/orders?limit=1&source=${"x".repeat(count)}`)).headers.get("link")?.length ??
      null;
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

describe("ETag of orders, parcels and jobs", () => {
  const OF_ORDER = "orderReference=O1&orderOrigin=shopify";

  /** @returns the tag of the body, after 304 was the answer to it */
  async function tagOf(path: string): Promise<string> {
    const tag = (await get(path)).headers.get("etag") ?? "";
    expect(tag).toMatch(/^W\/"[0-9a-z]+"$/);
    const again = await get(path, { "if-none-match": tag });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", tag]);
    return tag;
  }

  test("stays until what they say changes", async () => {
    const token = await api.token("key_acme_main");
    const [order] = (await (await get("/v2/orders")).json()) as { id: number }[];
    const page = (await (await get(`/v2/parcels?${OF_ORDER}`)).json()) as {
      items: { hash: string }[];
    };
    const parcel = `/v2/parcels/${page.items[0]?.hash}`;
    const lookup = "/v2/orders?source=shopify&reference=O1";
    const paths = [
      "/v2/orders",
      lookup,
      `/v2/orders/${order?.id}`,
      `/v2/parcels?${OF_ORDER}`,
      parcel,
    ];
    const before = await Promise.all(paths.map(tagOf));
    expect(
      (await get("/v2/orders", { "if-none-match": before[0] ?? "" })).headers.has("link"),
    ).toBe(true);
    await api.advance(1);
    await api.call("PATCH", parcel, { token, body: { weightKg: 7 } });
    const after = await Promise.all(paths.map(tagOf));
    for (const [at, tag] of after.entries())
      expect([paths[at], tag]).not.toEqual([paths[at], before[at]]);
  });

  test("of a job stays while nothing of it is done, and changes when it ends", async () => {
    const token = await api.token("key_acme_main");
    const shipments = [item("PAGE-JOB")];
    const { body } = await api.call("POST", "/v2/shipments/import", { token, body: { shipments } });
    const path = `/v2/jobs/${body.jobId}`;
    const begun = await tagOf(path);
    const { redis, live } = api.runtime;
    const partition = companyPartition(channelOf(api.runtime).companyId);
    const job = await readJob(redis, partition, body.jobId, live.now());
    if (job) await finishJob(redis, partition, job, null, live.now());
    expect(await tagOf(path)).not.toBe(begun);
    const parcels = Array.from({ length: 101 }, () => ({ weightKg: 1 }));
    const order = { orderReference: "O2", orderOrigin: "shopify", parcels };
    const { body: accepted } = await api.call("POST", "/v2/parcels", { token, body: order });
    await tagOf(`/v2/jobs/${accepted.jobId}`);
  });
});

describe("gzip", () => {
  const GZIP = { "accept-encoding": "br, gzip;q=0.8" };

  /** `app.handle` inflates nothing by itself. */
  async function inflated(answer: Response) {
    return JSON.parse(gunzipSync(await answer.bytes()).toString());
  }

  test("a page is compressed for those who accept it, with the same tag and content", async () => {
    const path = "/v2/shipments?sortBy=id_desc";
    const plain = await get(path);
    const zipped = await get(path, GZIP);
    expect([plain, zipped].map(({ headers }) => headers.get("content-encoding"))).toEqual([
      null,
      "gzip",
    ]);
    for (const { headers } of [plain, zipped]) {
      expect([headers.get("vary"), headers.get("etag")]).toEqual([
        "accept-encoding",
        plain.headers.get("etag"),
      ]);
      expect(headers.get("link")).toBe(plain.headers.get("link"));
    }
    expect(await inflated(zipped)).toEqual(await plain.json());
    const known = { ...GZIP, "if-none-match": zipped.headers.get("etag") ?? "" };
    const again = await get(path, known);
    expect([again.status, await again.text(), again.headers.get("vary")]).toEqual([
      ...[304, "", "accept-encoding"],
    ]);
  });

  test.each(["gzip;q=0", "br", "identity, gzip;q=0.5", "*;q=0", "deflate"])(
    "Accept-Encoding: %s gets it as it is",
    async (accepted) => {
      const { headers } = await get("/v2/shipments", { "accept-encoding": accepted });
      expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([
        null,
        "accept-encoding",
      ]);
    },
  );

  test("1,024 bytes are compressed, 1,023 are not", async () => {
    const app = new Elysia().use(compression()).get("/:length", ({ params }) => {
      const headers = { "content-type": "text/plain" };
      return new Response("x".repeat(Number(params.length)), { headers });
    });
    const encodingOf = async (length: number) => {
      const answer = await app.handle(new Request(`${BASE}/${length}`, { headers: GZIP }));
      return answer.headers.get("content-encoding");
    };
    expect([await encodingOf(1_023), await encodingOf(1_024)]).toEqual([null, "gzip"]);
  });

  test("a long answer is compressed piece by piece, as it is made", async () => {
    const made: number[] = [];
    const parts = Array.from({ length: 40 }, (_, at) => `${at} ${"x".repeat(300_000)}`);
    const app = new Elysia().use(compression()).get("/", () => {
      const rest = parts.entries();
      const body = new ReadableStream({
        pull(controller) {
          const { done, value } = rest.next();
          if (done) return controller.close();
          made.push(value[0]);
          controller.enqueue(new TextEncoder().encode(value[1]));
        },
      });
      return new Response(body, { headers: { "content-type": "text/plain" } });
    });
    const answer = await app.handle(new Request(BASE, { headers: GZIP }));
    expect(made.length).toBeLessThan(parts.length);
    expect(answer.headers.get("content-encoding")).toBe("gzip");
    const text = gunzipSync(await answer.bytes()).toString();
    expect(text === parts.join("")).toBe(true);
    expect(made).toHaveLength(parts.length);
  });

  test("the access token is never compressed", async () => {
    const body = JSON.stringify({ apiKey: "key_acme_main", more: "x".repeat(2_000) });
    const headers = { ...GZIP, "content-type": "application/json" };
    const request = new Request(`${BASE}/v2/auth/token`, { method: "POST", headers, body });
    const answer = await api.fetch(request);
    expect(answer.headers.get("content-encoding")).toBeNull();
    expect(await answer.json()).toMatchObject({ token_type: "Bearer" });
  });

  test("the document of the API is compressed too", async () => {
    const path = "/v2/openapi.json";
    const zipped = await get(path, GZIP);
    expect(zipped.headers.get("vary")).toBe("accept-encoding");
    expect(await inflated(zipped)).toEqual(await (await get(path)).json());
  });
});
