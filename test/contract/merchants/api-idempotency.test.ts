/** `Idempotency-Key`, an extension of document 1: one answer for each key of a channel, for 24 hours. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readAddressChecks } from "#core/merchants/store/address-checks.ts";
import {
  ANSWER_KEPT_CHARACTERS,
  beginRequest,
  endRequest,
} from "#core/merchants/store/idempotency.ts";
import { packAnswer, unpackAnswer } from "#core/platform/http/kept-answer.ts";
import { type Depot, startDepot } from "#demo/depot.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let depot: Depot;
let counter = 0;

beforeAll(async () => {
  const setup = labelSetup();
  const acme = setup.companies?.[0];
  Object.assign(acme ?? {}, { products: ["api-parcels", "checkAddress"] });
  const template = { event: "review", language: "it", subject: "Com'è andata?", body: "x" };
  Object.assign(acme?.channels?.[0] ?? {}, {
    addressCheck: true,
    emails: { managed: true, templates: [template] },
  });
  const words = { code: "OUT", description: "Svincolata" };
  depot = startDepot({ now: Date.now, wordsOf: () => words, tell: async () => {} });
  const stockReleaseUrl = depot.url("sync");
  Object.assign(setup.couriers?.[0] ?? {}, { stockRelease: "sync", stockReleaseUrl });
  api = await openTestApi(setup);
});
afterAll(async () => {
  await depot.stop();
  await api.end();
});

function newName(prefix = "IDEM"): string {
  counter += 1;
  return `${prefix}-${counter}`;
}

interface Repeat {
  readonly status: number;
  readonly replayed: boolean;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the API answered
  readonly body: any;
}

async function post(
  path: string,
  body: unknown,
  key: string | null,
  apiKey = "key_acme_main",
): Promise<Repeat> {
  const response = await api.fetch(
    new Request(`http://localhost${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${await api.token(apiKey)}`,
        "content-type": "application/json",
        ...(key !== null && { "idempotency-key": key }),
      },
      body: JSON.stringify(body),
    }),
  );
  const { status, headers } = response;
  const replayed = headers.get("idempotency-replayed") === "true";
  return { status, replayed, headers, body: await response.json() };
}

const creation = (number = newName()) => ({ shipments: [item(number)] });

describe("the same request under the same key", () => {
  const calls: [string, () => [path: string, body: unknown]][] = [
    ["creates shipments", () => ["/v2/shipments", creation()]],
    ["imports", () => ["/v2/shipments/import", creation()]],
    [
      "creates parcels",
      () => {
        const order = { orderReference: newName(), orderOrigin: "shopify" };
        return ["/v2/parcels", { ...order, parcels: [{ weightKg: 1 }] }];
      },
    ],
    ["makes a label", () => ["/v2/labels", labelBody()]],
  ];
  test.each(calls)("%s once and is answered the same", async (_, call) => {
    const [path, body] = call();
    const key = newName("key");
    const first = await post(path, body, key);
    const second = await post(path, body, key);
    expect(first.status).toBeOneOf([201, 202]);
    expect([first.replayed, second.replayed]).toEqual([false, true]);
    expect([second.status, second.body]).toEqual([first.status, first.body]);
    const without = await post(path, body, null);
    expect(without.body).not.toEqual(first.body);
  });

  test("confirms labels once, with the same Location", async () => {
    const { body: label } = await post("/v2/labels", labelBody(), null);
    const body = { courier: "GENERIC", labelIds: [label.id] };
    const key = newName("key");
    const first = await post("/v2/labels/confirm", body, key);
    const second = await post("/v2/labels/confirm", body, key);
    expect([first.status, second.status, second.replayed]).toEqual([201, 201, true]);
    expect(second.body).toEqual(first.body);
    expect(first.headers.get("location")).toBeString();
    expect(second.headers.get("location")).toBe(first.headers.get("location"));
  });

  test("is billed once where it is billed", async () => {
    const billed = async () => {
      const checks = await readAddressChecks(api.runtime.redis, ownerOf());
      return checks.reduce((sum, month) => sum + month.checks, 0);
    };
    const before = await billed();
    const body = { street: "Via Roma 1", city: "Milano" };
    const key = newName("key");
    const first = await post("/v2/addresses/check", body, key);
    const second = await post("/v2/addresses/check", body, key);
    expect(second.body).toEqual(first.body);
    expect((await billed()) - before).toBe(1);
  });

  test("however many come at once, is carried out once; the others are 409 with Retry-After", async () => {
    const body = creation();
    const key = newName("key");
    const all = await Promise.all(
      Array.from({ length: 20 }, () => post("/v2/shipments", body, key)),
    );
    const done = all.filter(({ status }) => status === 201);
    const busy = all.filter(({ status }) => status === 409);
    expect(done.length + busy.length).toBe(20);
    expect(done.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(new Set(done.map((one) => JSON.stringify(one.body))).size).toBe(1);
    for (const one of busy) {
      expect(one.body.code).toBe("IDEMPOTENCY_KEY_IN_USE");
      expect(one.headers.get("retry-after")).toBe("1");
    }
    const { status, replayed } = await post("/v2/shipments", body, key);
    expect([status, replayed]).toEqual([201, true]);
  });
});

describe("a key", () => {
  test("of another body or another path is 409, and stays the first request's", async () => {
    const key = newName("key");
    const body = creation();
    const first = await post("/v2/shipments", body, key);
    const bent = await post("/v2/shipments", creation(), key);
    const elsewhere = await post("/v2/shipments/import", body, key);
    for (const { status, body: told } of [bent, elsewhere]) {
      expect([status, told.code]).toEqual([409, "IDEMPOTENCY_KEY_REUSED"]);
    }
    expect((await post("/v2/shipments", body, key)).body).toEqual(first.body);
  });

  test("is of its channel alone", async () => {
    const key = newName("key");
    const body = creation();
    await post("/v2/shipments", body, key);
    for (const apiKey of ["key_acme_outlet", "key_beta_main"]) {
      const { status, replayed } = await post("/v2/shipments", body, key, apiKey);
      expect([status, replayed]).toEqual([201, false]);
    }
  });

  test("of a request that failed is free again", async () => {
    const key = newName("key");
    const order = { orderReference: newName(), orderOrigin: "shopify", parcels: [{ weightKg: 1 }] };
    await post("/v2/parcels", order, null);
    expect((await post("/v2/parcels", order, key)).body.code).toBe("ORDER_EXISTS");
    const other = { ...order, orderReference: newName() };
    expect((await post("/v2/parcels", other, key)).status).toBe(201);
  });

  test.each([
    ["of 255 characters is taken", "k".repeat(255), 201],
    ["of 256 characters is 422", "k".repeat(256), 422],
    ["with a blank inside is 422", "a b", 422],
    ["without a character is 422", "", 422],
  ])("%s", async (_, key, status) => {
    const answer = await post("/v2/shipments", creation(), key);
    expect(answer.status).toBe(status);
    if (status !== 422) return;
    expect(answer.body.violations).toMatchObject([{ path: "Idempotency-Key", code: "BAD_FORMAT" }]);
  });

  test("whose process died before it answered is in use for a minute; then the request is carried out", async () => {
    const key = newName("key");
    const body = creation();
    const { redis, live } = api.runtime;
    const before = new Set(await redis.keys("*:idem:*"));
    const first = await post("/v2/shipments", body, key);
    const [record = ""] = (await redis.keys("*:idem:*")).filter((one) => !before.has(one));
    await redis.hDel(record, "answer");
    await redis.hSet(record, { owner: "dead", leased: live.now() + 60_000 });
    expect((await post("/v2/shipments", body, key)).body.code).toBe("IDEMPOTENCY_KEY_IN_USE");
    expect((await post("/v2/shipments", creation(), key)).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
    await api.advance(60);
    const { status, replayed, body: told } = await post("/v2/shipments", body, key);
    expect([status, replayed]).toEqual([207, false]);
    expect(told.items[0].errors).toMatchObject([
      { code: "DUPLICATE_SHIPMENT", existingId: first.body.items[0].id },
    ]);
    expect((await post("/v2/shipments", body, key)).body).toEqual(told);
  });

  test("that somebody else has taken over meanwhile is not settled by who was slow", async () => {
    const { redis, live } = api.runtime;
    const key = newName("key");
    const nowMs = live.now();
    const begin = (afterMs: number) =>
      beginRequest(redis, ownerOf(), key, "a request", nowMs + afterMs);
    const slow = await begin(0);
    expect((await begin(59_999)).kind).toBe("running");
    const next = await begin(60_000);
    if (slow.kind !== "begun" || next.kind !== "begun") throw new Error("not begun");
    await endRequest(redis, ownerOf(), key, slow.owner, "slow");
    expect((await begin(60_000)).kind).toBe("running");
    await endRequest(redis, ownerOf(), key, next.owner, "next");
    await endRequest(redis, ownerOf(), key, slow.owner, null);
    expect(await begin(60_000)).toEqual({ kind: "answered", answer: "next" });
  });

  test("keeps an answer of up to 64 Ki characters, and carries the repetition of a longer one out again", async () => {
    const { redis } = api.runtime;
    const kept = async (characters: number) => {
      const key = newName("key");
      const begin = () => beginRequest(redis, ownerOf(), key, "print", Date.now());
      const begun = await begin();
      if (begun.kind !== "begun") throw new Error(begun.kind);
      await endRequest(redis, ownerOf(), key, begun.owner, "x".repeat(characters));
      return (await begin()).kind;
    };
    expect(await kept(ANSWER_KEPT_CHARACTERS)).toBe("answered");
    expect(await kept(ANSWER_KEPT_CHARACTERS + 1)).toBe("begun");
  });

  test("keeps the answer to 100 parcels however long their texts are", async () => {
    const shippingNotes = () => randomBytes(1_000).toString("hex");
    const parcels = Array.from({ length: 100 }, () => ({
      weightKg: 1,
      shippingNotes: shippingNotes(),
    }));
    const body = { orderReference: newName(), orderOrigin: "shopify", parcels };
    const key = newName("key");
    const first = await post("/v2/parcels", body, key);
    await api.advance(1);
    const second = await post("/v2/parcels", body, key);
    expect([first.status, second.status, second.replayed]).toEqual([201, 201, true]);
    expect(first.body).toHaveLength(100);
    expect(second.body).toEqual(first.body);
  });

  test("keeps a long answer compressed: that to 100 shipments, and to 1,000 labels of as many transmissions", async () => {
    const shipments = Array.from({ length: 100 }, () => item(newName()));
    const key = newName("key");
    const first = await post("/v2/shipments", { shipments }, key);
    const second = await post("/v2/shipments", { shipments }, key);
    expect([second.replayed, second.body]).toEqual([true, first.body]);
    const transmissions = Array.from({ length: 1_000 }, (_, n) => ({
      transmissionId: n,
      transmissionNumber: `T${String(n).padStart(9, "0")}`,
      slipUrl: `https://track.example/slips/${randomBytes(16).toString("base64url")}`,
      labelIds: [999_999_999_999 - n],
    }));
    const answer = JSON.stringify({ status: 200, location: null, body: { transmissions } });
    const kept = await packAnswer(answer);
    expect(answer.length).toBeGreaterThan(ANSWER_KEPT_CHARACTERS);
    expect(kept.length).toBeLessThanOrEqual(ANSWER_KEPT_CHARACTERS);
    expect(await unpackAnswer(kept)).toBe(answer);
  });

  test("keeps the answer to a label however large its sheets are, and not the sheets", async () => {
    const size = { weight: 1, length: 1, width: 1, height: 1 };
    const body = labelBody({ parcels: Array.from({ length: 30 }, () => size) });
    const key = newName("key");
    const first = await post("/v2/labels", body, key);
    expect(JSON.stringify(first.body).length).toBeGreaterThan(ANSWER_KEPT_CHARACTERS);
    const second = await post("/v2/labels", body, key);
    expect([first.status, second.status, second.replayed]).toEqual([201, 201, true]);
    expect(second.body).toEqual(first.body);
  });
});

/** A request that carries the operation out, and another one of it. */
interface Pair {
  readonly path: string;
  readonly body: object;
  readonly other: object;
}

async function created(members: Readonly<Record<string, unknown>> = {}): Promise<number> {
  const { body } = await post("/v2/shipments", { shipments: [item(newName(), members)] }, null);
  return body.items[0].id;
}

/** By `operationId`. */
const PAIRS: Readonly<Record<string, () => Promise<Pair>>> = {
  createShipments: async () => ({
    path: "/v2/shipments",
    body: creation(),
    other: creation(),
  }),
  importShipments: async () => ({
    path: "/v2/shipments/import",
    body: creation(),
    other: creation(),
  }),
  releaseStock: async () => {
    const id = await created();
    await applyEvents(api.runtime, [{ shipmentId: id, code: "HLD" }]);
    const path = `/v2/shipments/${id}/stock-release`;
    return { path, body: { action: "redeliver" }, other: { action: "return_to_sender" } };
  },
  notifyRecipient: async () => {
    const id = await created({ consignee: { name: "Ada", email: "ada@client.test" } });
    const path = `/v2/shipments/${id}/notifications`;
    return {
      path,
      body: { event: "review" },
      other: { event: "review", variables: { custom1: "b" } },
    };
  },
  createParcels: async () => {
    const order = () => ({ orderReference: newName(), orderOrigin: "shopify" });
    const parcels = [{ weightKg: 1 }];
    const [body, other] = [order(), order()].map((one) => ({ ...one, parcels }));
    return { path: "/v2/parcels", body: body ?? {}, other: other ?? {} };
  },
  checkAddress: async () => {
    const body = { street: "Via Roma 1", city: "Milano" };
    return { path: "/v2/addresses/check", body, other: { ...body, city: "Torino" } };
  },
  createLabel: async () => ({ path: "/v2/labels", body: labelBody(), other: labelBody() }),
  confirmLabels: async () => {
    const ids = [
      await post("/v2/labels", labelBody(), null),
      await post("/v2/labels", labelBody(), null),
    ];
    const [body, other] = ids.map(({ body: { id } }) => ({ courier: "GENERIC", labelIds: [id] }));
    return { path: "/v2/labels/confirm", body: body ?? {}, other: other ?? {} };
  },
};
/** They create, send and bill nothing. */
const READING = ["createToken", "promiseDelivery", "readDeliveryTimes", "readEfficiencyIndex"];

describe("every POST of the API", () => {
  const posts = () => api.operations.filter(({ method }) => method === "post");

  test("takes a key, or changes nothing", () => {
    const withKey = posts().filter(({ operation: { parameters = [] } }) =>
      parameters.some(({ name }) => name === "Idempotency-Key"),
    );
    const ids = (list: ReturnType<typeof posts>) =>
      list.map(({ operation }) => operation.id).sort();
    expect(ids(withKey)).toEqual(Object.keys(PAIRS).sort());
    expect(ids(posts())).toEqual([...Object.keys(PAIRS), ...READING].sort());
  });

  test.each(Object.entries(PAIRS))(
    "%s is carried out once under a key, however many come at once, and another body is 409",
    async (_, pairOf) => {
      const { path, body, other } = await pairOf();
      const key = newName("key");
      const all = await Promise.all(Array.from({ length: 5 }, () => post(path, body, key)));
      const busy = all.filter(({ body: answer }) => answer.code === "IDEMPOTENCY_KEY_IN_USE");
      const [first, ...others] = all.filter(({ replayed, status }) => !replayed && status < 300);
      expect([first?.status, others]).toEqual([expect.any(Number), []]);
      const repeats = [...all.filter(({ replayed }) => replayed), await post(path, body, key)];
      expect(repeats.length + busy.length).toBe(5);
      for (const { status, replayed, body: answer } of repeats) {
        expect([status, replayed, answer]).toEqual([first?.status ?? 0, true, first?.body]);
      }
      const bent = await post(path, other, key);
      expect([bent.status, bent.body.code]).toEqual([409, "IDEMPOTENCY_KEY_REUSED"]);
    },
  );
});

/** Last: it moves the clock by a day. */
describe("the same request a day later", () => {
  test("is carried out again after 24 hours by the service clock, not before", async () => {
    const body = creation();
    const key = newName("key");
    await post("/v2/shipments", body, key);
    await api.advance(86_400 - 120);
    // Tokens last as long as keys.
    const fresh = await api.call("POST", "/v2/auth/token", { body: { apiKey: "key_acme_main" } });
    const again = async () => {
      const request = new Request("http://localhost/v2/shipments", {
        method: "POST",
        headers: { authorization: `Bearer ${fresh.body.token}`, "idempotency-key": key },
        body: JSON.stringify(body),
      });
      return (await api.fetch(request)).json() as Promise<{ items: { errors?: unknown[] }[] }>;
    };
    expect((await again()).items[0]?.errors).toBeUndefined();
    await api.advance(240);
    expect((await again()).items[0]?.errors).toMatchObject([{ code: "DUPLICATE_SHIPMENT" }]);
  });
});

function ownerOf() {
  const channels = [...api.runtime.live.configuration().channels.values()];
  const channel = channels.find(({ code }) => code === "acme-it");
  if (!channel) throw new Error("no channel");
  return { companyId: channel.companyId, channelId: channel.id };
}
