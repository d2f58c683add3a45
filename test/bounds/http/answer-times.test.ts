/**
 * Invariant 7: another tenant's resource answers like a missing one, in time too. Counted on every route: both are asked of Redis
 * with the same commands, and a foreign one is not unpacked. Measured on a few, by a rank test (Mann-Whitney): whoever sees one
 * answer time of each kind can tell no better than by chance which is which.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openArchive } from "#analytics/archive.ts";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { IS_MEASURED, startMeasuring } from "#test/support/measured.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

const PAIRS = 800;
const WARM_UP = 100;
/** Chance is 0.5, and its standard error with so many pairs 0.014: five of them. */
const TOLERANCE = 0.07;
/**
 * What a busy machine does to one round falls on both kinds by chance, and may fall on one of them. Work that is really done for
 * one kind alone shows in every round: only then the test fails.
 */
const ROUNDS = 3;
/** Counts of the same question: what runs in the background only ever adds to one. */
const COUNTS = 3;
/** On a slow machine it may add to all counts of one question: work that is really done for one kind alone differs every time. */
const COMPARISONS = 5;
/** Characters of JSON, parsed in less than a microsecond: the foreign resources of this test have thousands. */
const PARSED_LIMIT = 300;
/** Ids of a partition are 4,096 apart: this one is in the same partition, and nobody's. */
const FAR = 4_096_000_000;

let api: TestApi;
/** Another channel of the same company, so that both have the same partition. */
let own: string;
let foreign: Readonly<Record<string, string>>;

beforeAll(async () => {
  const setup = labelSetup();
  const [acme] = setup.companies ?? [];
  const [main] = acme?.channels ?? [];
  const parcels = Array.from({ length: 99 }, (_, at) => ({ weight: at + 1, content: "tea" }));
  Object.assign(acme ?? {}, { products: ["api-parcels"] });
  Object.assign(main ?? {}, {
    orders: [{ source: "shopify", reference: "1001", parcels }],
    sandbox: [{ id: 7, stringValue: "x".repeat(5_000), intValue: 1 }],
  });
  api = await openTestApi(setup);
  own = await api.token("key_acme_outlet");
  foreign = await makeResources(await api.token("key_acme_main"));
}, 300_000);
afterAll(() => api.end());

/** One of each kind, of another channel, each too large to be read unnoticed. */
async function makeResources(token: string): Promise<Record<string, string>> {
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await api.call(method, path, { token, ...(body !== undefined && { body }) });
    expect(answer.status).toBeLessThan(300);
    return answer.body;
  };
  const shipment = await call("POST", "/v2/shipments", { shipments: [item("TIMES-1")] });
  const [order] = await call("GET", "/v2/orders?source=shopify&reference=1001");
  const consignee = { ...labelBody().consignee, street: "Via Roma ".repeat(25) };
  const parcels = Array.from({ length: 50 }, () => ({ weight: 1 }));
  const label = await call("POST", "/v2/labels", labelBody({ consignee, parcels }));
  const closing = { courier: "GENERIC", labelIds: [label.id] };
  const transmission = await call("POST", "/v2/labels/confirm", closing);
  const many = {
    orderReference: "P-1",
    orderOrigin: "api",
    parcels: Array(200).fill({ weightKg: 1 }),
  };
  const job = await call("POST", "/v2/parcels", many);
  const query = "orderReference=P-1&orderOrigin=api&limit=1";
  const { items } = await call("GET", `/v2/parcels?${query}`);
  return {
    shipments: String(shipment.items[0].id),
    orders: String(order.id),
    labels: String(label.id),
    transmissions: String(transmission.transmissionId),
    jobs: job.jobId,
    parcels: items[0].hash,
    sandbox: "7",
  };
}

/** Every route of the merchant API that names a resource, and the one that names them in its body. */
const ROUTES: ReadonlyArray<readonly [route: string, kind: string, body: unknown]> = [
  ["GET /v2/shipments/:id", "shipments", null],
  ["PATCH /v2/shipments/:id", "shipments", { note: "" }],
  ["POST /v2/shipments/:id/stock-release", "shipments", { action: "redeliver" }],
  ["GET /v2/shipments/:id/stock-releases/:releaseId", "shipments", null],
  ["POST /v2/shipments/:id/notifications", "shipments", { event: "review" }],
  ["GET /v2/shipments/:id/notifications/:notificationId", "shipments", null],
  ["GET /v2/jobs/:jobId", "jobs", null],
  ["GET /v2/sandbox/:id", "sandbox", null],
  [
    "PUT /v2/sandbox/:id",
    "sandbox",
    { stringValue: "", intValue: 1, boolValue: true, floatValue: 1 },
  ],
  ["PATCH /v2/sandbox/:id", "sandbox", { intValue: 2 }],
  ["DELETE /v2/sandbox/:id", "sandbox", null],
  ["GET /v2/orders/:id", "orders", null],
  ["GET /v2/parcels/:hash", "parcels", null],
  ["PATCH /v2/parcels/:hash", "parcels", { weightKg: 2 }],
  ["DELETE /v2/parcels/:hash", "parcels", null],
  ["GET /v2/labels/:id", "labels", null],
  ["DELETE /v2/labels/:id", "labels", null],
  ["GET /v2/labels/transmissions/:id", "transmissions", null],
];

/** An id of the same form that names nothing. */
function missing(kind: string): string {
  const id = foreign[kind] ?? "";
  return /^\d+$/.test(id) ? String(Number(id) + FAR) : id.replaceAll(/[0-9a-f]/g, "a");
}

interface Work {
  /** Calls by command, those of scripts too. */
  readonly commands: Readonly<Record<string, number>>;
  /** Characters. */
  readonly parsed: number;
}

async function callsByCommand(): Promise<Map<string, number>> {
  const text = await api.runtime.redis.info("commandstats");
  return new Map(
    [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = "", calls]) => [
      name,
      Number(calls),
    ]),
  );
}

async function workOf(ask: () => Promise<unknown>): Promise<Work> {
  const commands: Record<string, number>[] = [];
  const parsed: number[] = [];
  const { parse } = JSON;
  for (let count = 0; count < COUNTS; count += 1) {
    let characters = 0;
    const before = await callsByCommand();
    JSON.parse = (text, reviver) => {
      characters += text.length;
      return parse(text, reviver);
    };
    try {
      await ask();
    } finally {
      JSON.parse = parse;
    }
    const after = await callsByCommand();
    const calls = [...after].map(([name, all]) => [name, all - (before.get(name) ?? 0)] as const);
    commands.push(Object.fromEntries(calls.filter(([, made]) => made > 0)));
    parsed.push(characters);
  }
  const names = Object.keys(commands[0] ?? {}).filter((name) =>
    commands.every((one) => name in one),
  );
  return {
    commands: Object.fromEntries(
      names.map((name) => [name, Math.min(...commands.map((one) => one[name] ?? 0))]),
    ),
    parsed: Math.min(...parsed),
  };
}

/** Of both, counted until it is the same. */
async function workOfBoth(
  theirs: () => Promise<unknown>,
  nobodys: () => Promise<unknown>,
): Promise<readonly [Work, Work]> {
  for (let compared = 1; ; compared += 1) {
    const [found, none] = [await workOf(theirs), await workOf(nobodys)];
    const isSame =
      Bun.deepEquals(found.commands, none.commands) &&
      Math.abs(found.parsed - none.parsed) < PARSED_LIMIT;
    if (isSame || compared === COMPARISONS) return [found, none];
  }
}

describe("counted", () => {
  test("the list names every route of the merchant API with an id in its path", () => {
    const named = api.routes
      .filter(({ path }) => path.includes(":") && !path.startsWith("/v2/clients/"))
      .map(({ method, path }) => `${method} ${path}`);
    expect(ROUTES.map(([route]) => route).toSorted()).toEqual(named.toSorted());
  });

  test.each(ROUTES)(
    "%s does for a foreign one what it does for a missing one",
    async (route, kind, body) => {
      const [method = "", path = ""] = route.split(" ");
      const ask = async (id: string) => {
        const named = path.replace(/:\w+/, id).replace(/:\w+/, "1");
        const { status } = await api.call(method, named, {
          token: own,
          ...(body !== null && { body }),
        });
        expect(status).toBe(404);
      };
      const theirs = foreign[kind] ?? "";
      await ask(theirs);
      const [found, none] = await workOfBoth(
        () => ask(theirs),
        () => ask(missing(kind)),
      );
      expect(found.commands).toEqual(none.commands);
      expect(Object.keys(found.commands).length).toBeGreaterThan(1);
      expect(Math.abs(found.parsed - none.parsed)).toBeLessThan(PARSED_LIMIT);
    },
  );

  test("POST /v2/labels/confirm does for a foreign label what it does for a missing one", async () => {
    const ask = async (id: number) => {
      const body = { courier: "GENERIC", labelIds: [id] };
      const answer = await api.call("POST", "/v2/labels/confirm", { token: own, body });
      expect([answer.status, answer.body.notFoundIds]).toEqual([200, [id]]);
    };
    const theirs = Number(foreign["labels"]);
    const [found, none] = await workOfBoth(
      () => ask(theirs),
      () => ask(theirs + FAR),
    );
    expect(found.commands).toEqual(none.commands);
    expect(Math.abs(found.parsed - none.parsed)).toBeLessThan(PARSED_LIMIT);
  });
});

describe("measured", () => {
  async function timeOf(path: string): Promise<number> {
    const fromMs = performance.now();
    const { status } = await api.call("GET", path, { token: own });
    const tookMs = performance.now() - fromMs;
    expect(status).toBe(404);
    return tookMs;
  }

  /** How often a time of the first is longer than one of the second; ties count half. */
  function shareLonger(first: readonly number[], second: readonly number[]): number {
    const sorted = second.toSorted((one, other) => one - other);
    const below = (limit: (value: number) => boolean) => {
      let [low, high] = [0, sorted.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (limit(sorted[middle] ?? 0)) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const wins = first.reduce(
      (sum, one) => sum + (below((value) => value < one) + below((value) => value <= one)) / 2,
      0,
    );
    return wins / (first.length * second.length);
  }

  /** One round. */
  async function shareOf(paths: Readonly<Record<"foreign" | "missing", string>>): Promise<number> {
    const times = { foreign: [] as number[], missing: [] as number[] };
    for (let n = 0; n < WARM_UP; n += 1) await timeOf(paths.foreign);
    for (let n = 0; n < PAIRS; n += 1) {
      // In turns, each first as often: what slows the machine down meets both.
      const kinds =
        n % 2 === 0 ? (["foreign", "missing"] as const) : (["missing", "foreign"] as const);
      for (const kind of kinds) times[kind].push(await timeOf(paths[kind]));
    }
    return shareLonger(times.foreign, times.missing);
  }

  test("the share is one half for equal times, and one where all are longer", () => {
    expect(shareLonger([1, 2, 3], [1, 2, 3])).toBe(0.5);
    expect(shareLonger([4, 5], [1, 2, 3])).toBe(1);
    expect(shareLonger([0], [1, 2, 3])).toBe(0);
  });

  test.each(IS_MEASURED ? ["shipments", "orders", "labels", "jobs"] : ["shipments"])(
    "foreign and missing ones of /v2/%s take the same time",
    async (kind) => {
      const measuring = startMeasuring("Nobody in", `answer times of foreign and missing ${kind}`);
      const paths = {
        foreign: `/v2/${kind}/${foreign[kind]}`,
        missing: `/v2/${kind}/${missing(kind)}`,
      };
      const shares: number[] = [];
      const isOff = (share: number) => Math.abs(share - 0.5) >= TOLERANCE;
      while (shares.length < ROUNDS && shares.every(isOff)) shares.push(await shareOf(paths));
      expect(shares.filter((share) => !isOff(share))).not.toEqual([]);
      const last = Math.round((shares.at(-1) ?? 0) * 1_000) / 10;
      const further = { "share of foreign ones that take longer, %": last, rounds: shares.length };
      await measuring.done({ inputs: 2 * PAIRS * shares.length, further });
    },
    120_000,
  );
});

describe("in the control panel", () => {
  let benchmarks: Benchmarks;
  let archive: ReturnType<typeof openArchive>;

  beforeAll(async () => {
    const { redis, live, config, secrets } = api.runtime;
    benchmarks = await openBenchmarks(config);
    archive = openArchive(config, secrets.vault);
    // Now something may be archived, and whoever does not find a shipment in Redis asks ClickHouse, which is not there.
    await beginGeneration(redis, live.now(), config.eventsPerDay);
  });
  afterAll(() => Promise.all([benchmarks.close(), archive.close()]));

  test("a member looks for another company's shipment where it looks for a missing one", async () => {
    const app = createPanelApp(api.runtime, benchmarks, undefined, archive);
    const { cookie } = await makeAccount(api.runtime, "company", "owner", { companyCode: "beta" });
    const theirs = foreign["shipments"] ?? "";
    const paths = (id: string) => [
      `/panel/api/shipments/${id}`,
      `/panel/api/shipments/${id}/trace`,
    ];
    const ask = async (path: string) => {
      const answer = await app.handle(
        new Request(`http://localhost${path}`, { headers: { cookie } }),
      );
      return {
        status: answer.status,
        text: (await answer.text()).replace(/"requestId":"[^"]*"/, ""),
      };
    };
    for (const [at, path] of paths(theirs).entries()) {
      const answer = await ask(path);
      expect(answer.status).toBe(503);
      expect(answer).toEqual(await ask(paths(missing("shipments"))[at] ?? ""));
    }
  });
});
