/** The merchants' package, against the API that it is for. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";
import type { Api } from "#client/src/api.ts";
import { createClient, WaybillError } from "#client/src/client.ts";
import { SignatureError, verifyImportCallback, verifyWebhook } from "#client/src/webhooks.ts";
import { orderOfParcels } from "#core/merchants/rules/order-parcel.ts";
import { createOrder } from "#core/merchants/store/orders.ts";
import { createItems } from "#core/shipments/store/create-items.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { CLIENT_CODE_FOLDER, clientCode } from "#test/client-types/generate.ts";
import { PYTHON_TYPES_FILE, pythonTypes } from "#test/client-types/python-types.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

const BASE = "http://localhost";
/** Of channel acme-outlet. */
const BUCKET = 12;

let api: TestApi;

beforeAll(async () => {
  const setup = testSetup();
  const outlet = setup.companies?.[0]?.channels?.[1];
  Object.assign(outlet ?? {}, { rateLimit: { bucketSize: BUCKET, refillRate: BUCKET } });
  api = await openTestApi(setup);
});
afterAll(() => api.end());

/** What stands between the client and the API: it may lose answers, or give its own. */
type Between = (request: Request, pass: () => Promise<Response>) => Promise<Response>;

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
}

function clientOf(apiKey = "key_acme_main", between: Between = (_, pass) => pass()) {
  const seen: Seen[] = [];
  const client = createClient({
    baseUrl: `${BASE}/`,
    apiKey,
    fetch: async (request) => {
      const response = await between(request, () => api.fetch(request));
      const { pathname } = new URL(request.url);
      seen.push({
        method: request.method,
        path: pathname,
        status: response.status,
        headers: new Headers(request.headers),
      });
      return response;
    },
  });
  return { ...client, seen };
}

/** Ids in the order given. */
async function createMany(prefix: string, count: number): Promise<number[]> {
  const { configuration } = { configuration: api.runtime.live.configuration() };
  const channel = [...configuration.channels.values()].find(({ code }) => code === "acme-it");
  if (!channel) throw new Error("no channel");
  const { redis, log, live } = api.runtime;
  const inputs = Array.from({ length: count }, (_, n) => item(`${prefix}-${n}`) as never);
  const outcomes = await createItems({ redis, log, configuration }, channel, inputs, live.now());
  return outcomes.map((one) => (one.kind === "created" ? one.id : 0));
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of items) found.push(one);
  return found;
}

const anyShipment = (on: Api) => on.searchShipments({ query: { limit: 1 } });

test("the generated code is that of the document that the product publishes", async () => {
  const code = await clientCode(api);
  const files = await Array.fromAsync(new Glob("**/*").scan(CLIENT_CODE_FOLDER));
  expect(files.sort()).toEqual([...code.keys()].sort());
  for (const [file, text] of code) {
    expect(await Bun.file(join(CLIENT_CODE_FOLDER, file)).text()).toBe(text);
  }
  expect(await Bun.file(PYTHON_TYPES_FILE).text()).toBe(pythonTypes(api));
});

describe("access tokens", () => {
  test("are exchanged once for requests that begin together", async () => {
    const { api: on, seen } = clientOf();
    const answers = await Promise.all(Array.from({ length: 20 }, () => anyShipment(on)));
    expect(answers.map(({ items }) => items.length)).toEqual(
      Array(20).fill(answers[0]?.items.length),
    );
    const searches = seen.filter(({ path }) => path === "/v2/shipments");
    expect(searches.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(seen.filter(({ path }) => path === "/v2/auth/token")).toHaveLength(1);
  });

  test("are exchanged again when the API no longer takes one, and the request is repeated", async () => {
    let refusals = 1;
    const { api: on, seen } = clientOf("key_acme_main", async (request, pass) => {
      if (request.url.endsWith("/token") || refusals === 0) return pass();
      refusals -= 1;
      return Response.json({ code: "INVALID_TOKEN" }, { status: 401 });
    });
    await anyShipment(on);
    expect(seen.map(({ path, status }) => `${path} ${status}`)).toEqual([
      ...["/v2/auth/token 200", "/v2/shipments 401", "/v2/auth/token 200", "/v2/shipments 200"],
    ]);
  });

  test("of a wrong key are an error with its status and code, and the next call asks again", async () => {
    const { api: on, seen } = clientOf("key_of_nobody");
    for (let n = 0; n < 2; n += 1) {
      const error = await anyShipment(on).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(WaybillError);
      expect(error).toMatchObject({ status: 401, code: "INVALID_API_KEY" });
    }
    expect(seen.map(({ path }) => path)).toEqual(["/v2/auth/token", "/v2/auth/token"]);
  });
});

describe("requests", () => {
  test("that are answered 503 are sent again after Retry-After, a POST under the same key", async () => {
    let refusals = 1;
    const { api: on, seen } = clientOf("key_acme_main", async (request, pass) => {
      if (request.url.endsWith("/token") || refusals === 0) return pass();
      refusals -= 1;
      return new Response(null, { status: 503, headers: { "retry-after": "1" } });
    });
    const from = performance.now();
    const body = { shipments: [item("CLIENT-503")] };
    const { items } = await on.createShipments({ body });
    expect(items[0]?.status).toBe("success");
    expect(performance.now() - from).toBeGreaterThan(1_000);
    const posts = seen.filter(({ path }) => path === "/v2/shipments");
    expect(posts.map(({ status }) => status)).toEqual([503, 201]);
    const [first, second] = posts.map(({ headers }) => headers.get("idempotency-key"));
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).toBe(first ?? "");
  });

  test("whose Retry-After is longer than anybody waits are not repeated", async () => {
    const { api: on } = clientOf("key_acme_main", async (request, pass) =>
      request.url.endsWith("/token")
        ? pass()
        : Response.json({ code: "X" }, { status: 503, headers: { "retry-after": "3600" } }),
    );
    const refused = anyShipment(on).catch((error: unknown) => error);
    expect(await refused).toMatchObject({ status: 503, code: "X" });
  });

  test("whose answer is lost are sent again", async () => {
    let losses = 2;
    const { api: on, seen } = clientOf("key_acme_main", async (request, pass) => {
      const answer = await pass();
      if (request.url.endsWith("/token") || losses === 0) return answer;
      losses -= 1;
      throw new TypeError("the connection was lost");
    });
    await anyShipment(on);
    expect(seen.filter(({ path }) => path === "/v2/shipments")).toHaveLength(1);
  });

  test("that create, whose answer is lost, are sent again and create once", async () => {
    let losses = 1;
    let replayed: string | null = null;
    const { api: on } = clientOf("key_acme_main", async (request, pass) => {
      const answer = await pass();
      replayed = answer.headers.get("idempotency-replayed");
      if (request.url.endsWith("/token") || losses === 0) return answer;
      losses -= 1;
      throw new TypeError("the connection was lost");
    });
    const { items } = await on.createShipments({ body: { shipments: [item("CLIENT-LOST")] } });
    expect([items[0]?.status, replayed as string | null]).toEqual(["success", "true"]);
  });

  test("never exceed the budget, however many begin together", async () => {
    const { api: on, seen } = clientOf("key_acme_outlet");
    const ending = new AbortController();
    const { signal } = ending;
    const query = { limit: 1 };
    const calls = Array.from({ length: BUCKET * 3 }, () =>
      on.searchShipments({ query, signal }).catch(() => null),
    );
    const sent = () => seen.filter(({ path }) => path === "/v2/shipments");
    await eventually(() => sent().length === BUCKET, "the budget is spent");
    ending.abort();
    const answered = (await Promise.all(calls)).filter((answer) => answer !== null);
    expect(answered).toHaveLength(BUCKET);
    expect(sent().map(({ status }) => status)).toEqual(Array(BUCKET).fill(200));
  });
});

describe("errors", () => {
  test("say the first violation in their message, and have all of them with the request's id", async () => {
    const { api: on } = clientOf();
    const query = { limit: 0, page: 0 };
    const error = await on.searchShipments({ query }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      status: 422,
      violations: [{ code: "OUT_OF_RANGE" }, { code: "OUT_OF_RANGE" }],
      requestId: expect.any(String),
    });
    const { message, violations } = error as WaybillError;
    expect(message).toEndWith(`${violations[0]?.path}: ${violations[0]?.message}`);
  });

  test("of a proxy that redirects are its status, and neither key nor token goes where it points", async () => {
    for (const target of ["/token", "/shipments"]) {
      const { api: on, seen } = clientOf("key_acme_main", async (request, pass) => {
        expect(request.redirect).toBe("manual");
        if (!new URL(request.url).pathname.endsWith(target)) return pass();
        return new Response(null, { status: 302, headers: { location: "http://elsewhere/" } });
      });
      const error = await anyShipment(on).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ status: 302, code: "UNKNOWN", requestId: null });
      expect(seen.at(-1)?.path).toEndWith(target);
    }
  });
});

describe("a signal", () => {
  test("ends a request that waits for others to end", async () => {
    const gate = Promise.withResolvers<void>();
    let held = 0;
    const { api: on } = clientOf("key_acme_main", async (request, pass) => {
      if (request.url.endsWith("/token")) return pass();
      held += 1;
      await gate.promise;
      return pass();
    });
    const first = Array.from({ length: 8 }, () => anyShipment(on));
    await eventually(() => held === 8, "as many as may be are in flight");
    const ending = new AbortController();
    const next = on.searchShipments({ query: { limit: 1 }, signal: ending.signal });
    let reason: unknown = null;
    next.catch((error: unknown) => {
      reason = error;
    });
    await Bun.sleep(0);
    ending.abort(new Error("enough"));
    await eventually(() => reason !== null, "the request that waits has ended");
    expect(String(reason)).toContain("enough");
    gate.resolve();
    await Promise.all(first);
    await anyShipment(on);
    expect(held).toBe(9);
  });

  test("ends the wait for an import at once", async () => {
    const { runImport, seen } = clientOf();
    const ending = new AbortController();
    const running = runImport({ shipments: [item("CLIENT-IMPORT")] }, ending.signal);
    const ended = running.catch((error: unknown) => String(error));
    // Nothing works the job off.
    await eventually(
      () => seen.some(({ path }) => path.startsWith("/v2/jobs/")),
      "the job is read",
    );
    await Bun.sleep(0);
    ending.abort(new Error("enough"));
    const timer = new Promise((resolve) => setTimeout(resolve, 0, "it waits for its next look"));
    expect(await Promise.race([ended, timer])).toContain("enough");
  });
});

describe("lists", () => {
  test("every order once, also while new ones are created", async () => {
    const channel = [...api.runtime.live.configuration().channels.values()].find(
      ({ code }) => code === "acme-it",
    );
    const owner = { companyId: channel?.companyId ?? 0, channelId: channel?.id ?? 0 };
    const create = async (reference: string) => {
      const parcels = [{ weightKg: 1 }];
      const wanted = { orderReference: reference, orderOrigin: "shopify", parcels };
      const record = orderOfParcels(owner.channelId, wanted, api.runtime.live.now());
      await createOrder(api.runtime.redis, owner, record);
    };
    for (let n = 0; n < 120; n += 1) await create(`CLIENT-ORDER-${n}`);
    const { orders } = clientOf();
    const found: string[] = [];
    for await (const { reference } of orders()) {
      found.push(reference);
      if (found.length === 50) for (let n = 0; n < 5; n += 1) await create(`CLIENT-NEW-${n}`);
    }
    expect(found).toHaveLength(120);
    expect(new Set(found).size).toBe(120);
  });

  test("every page of a search, each shipment once", async () => {
    const ids = await createMany("CLIENT-PAGE", 230);
    const { shipments } = clientOf();
    const found = (await all(shipments({ shipDateFrom: "2026-11-10" }))).filter(
      ({ trackingNumber }) => trackingNumber.startsWith("CLIENT-PAGE-"),
    );
    expect(found.map(({ id }) => id)).toEqual(ids);
  });

  test("every change since a time, in order, and the ones that happen meanwhile", async () => {
    const ids = await createMany("CLIENT-CHANGE", 250);
    const since = "2026-01-01 00:00:00";
    const change = (some: readonly number[], code: string) =>
      applyEvents(
        api.runtime,
        some.map((shipmentId) => ({ shipmentId, code })),
      );
    await change(ids, "TRN");
    const { changesSince, seen } = clientOf();
    const found: { id: number; status: string; at: string }[] = [];
    for await (const { id, status, statusUpdatedAt } of changesSince({ since })) {
      found.push({ id, status, at: statusUpdatedAt ?? "" });
      if (found.length === 30) {
        await api.advance(2);
        await change(ids.slice(0, 5), "OUT");
      }
    }
    expect(new Set(found.map(({ id }) => id))).toEqual(new Set(ids));
    expect(found.map(({ at }) => at)).toEqual(found.map(({ at }) => at).toSorted());
    const again = found.filter(({ status }) => status === "OUT_FOR_DELIVERY");
    expect(again.map(({ id }) => id).toSorted()).toEqual(ids.slice(0, 5).toSorted());
    expect(new Set(found.map(({ id, at }) => `${id} ${at}`)).size).toBe(found.length);
    expect(seen.length).toBeLessThan(10);
    const last = found.at(-1)?.at ?? "";
    const next = await all(changesSince({ since: last }));
    expect(next.every(({ statusUpdatedAt }) => statusUpdatedAt === last)).toBe(true);
  });
});

describe("webhooks", () => {
  const vector = Bun.file("docs/vectors/webhook-signature.json").json();

  test("of the test vector are verified with either secret, as text and as bytes, and typed", async () => {
    const { body, signature, secrets, t } = await vector;
    for (const secret of [secrets.new, secrets.old, ["whsec_other", secrets.new]]) {
      for (const raw of [body, Buffer.from(body)]) {
        const event = await verifyWebhook({ body: raw, signature, secret, nowMs: t * 1000 });
        expect(event.type).toBe("shipment.updated");
        expect(event.data.shipment.statusPlace).toBe("Forlì");
      }
    }
  });

  test("that are not authentic or too old are refused with the reason", async () => {
    const { body, signature, secrets, t } = await vector;
    const good = { body, signature, secret: secrets.new, nowMs: t * 1000 };
    const bad = [
      { ...good, secret: WEBHOOK_SECRET },
      { ...good, secret: [] },
      { ...good, body: `${body} ` },
      { ...good, nowMs: (t + 301) * 1000 },
      { ...good, signature: null },
      { ...good, signature: `t=${t}` },
      { ...good, signature: "t=1e9,v1=zz" },
    ];
    const reasons = await Promise.all(
      bad.map((request) =>
        verifyWebhook(request).catch((error: unknown) =>
          error instanceof SignatureError ? error.reason : "another error",
        ),
      ),
    );
    expect(reasons as string[]).toEqual([
      ...["mismatch", "mismatch", "mismatch", "expired", "malformed", "malformed", "malformed"],
    ]);
  });

  test("callbacks of imports are verified in the same way", async () => {
    const body = JSON.stringify({ jobId: "1", status: "completed", result: null });
    const signature = sign([WEBHOOK_SECRET], body, Date.now());
    const told = await verifyImportCallback({ body, signature, secret: WEBHOOK_SECRET });
    expect(told).toEqual({ jobId: "1", status: "completed", result: null });
  });
});
