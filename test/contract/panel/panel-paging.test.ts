/** Lists of the panel's API that can grow have one kind of pages: `limit`, `cursor`, `nextCursor` and `Link`. */
import { beforeAll, describe, expect, test } from "bun:test";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

interface Call {
  readonly parameters?: readonly { name: string; description?: string; deprecated?: boolean }[];
  readonly responses: Readonly<Record<number, { headers?: object; content?: Content }>>;
}

interface Content {
  readonly "application/json"?: { readonly schema: Schema };
}

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, { readonly type?: string }>>;
}

interface List {
  readonly path: string;
  readonly call: Call;
  readonly members: Readonly<Record<string, { readonly type?: string }>>;
}

/** Of 5 endpoints, 20 links, 20 receivers and 20 replays at most, and of what the set-up file registers. */
const SHORT = [
  "/panel/api/channels/{channelCode}/webhooks",
  "/panel/api/channels/{channelCode}/jobs/{jobId}/failures",
  "/panel/api/couriers/{code}/quality-links",
  "/panel/api/webhooks/{endpointId}/replays",
  "/panel/api/alarm-receivers",
  "/panel/api/status-details",
];

let lists: List[];
let endpointId: string;

const runtime = forAll(() => openTestRuntime(testSetup()));
const panel = forAll(() => openTestPanel(runtime));
beforeAll(async () => {
  const { body } = await panel.call("GET", "/panel/api/openapi.json");
  const resolved = ({ $ref, ...schema }: Schema): Schema =>
    $ref ? body.components.schemas[$ref.split("/").at(-1) ?? ""] : schema;
  lists = Object.entries<{ get?: Call }>(body.paths).flatMap(([path, { get: call }]) => {
    const schema = call?.responses[200]?.content?.["application/json"]?.schema;
    const members = schema ? (resolved(schema).properties ?? {}) : {};
    return call ? [{ path, call, members }] : [];
  });
  const made = await panel.call("POST", "/panel/api/channels/acme-it/webhooks", {
    url: "https://merchant.example/paging",
    trigger: "status_change",
    alertEmail: "ops@acme.test",
  });
  ({ endpointId } = made.body);
});

const paged = () => lists.filter(({ members }) => "nextCursor" in members);

function addressOf(path: string, query: string): string {
  const named = path
    .replace("{code}", "GLS_ITA")
    .replace("{channelCode}", "acme-it")
    .replace("{endpointId}", endpointId)
    .replace("{id}", "1");
  const needed = path.endsWith("/events") ? "courier=GLS_ITA&eventId=x&" : "";
  const company = path.endsWith("/shipments") ? "companyCode=acme&" : "";
  return `${named}?${needed}${company}${query}`;
}

const ask = (path: string, query: string) => panel.call("GET", addressOf(path, query));

describe("every list that can grow", () => {
  test("has pages", () => {
    const whole = lists.filter(({ members }) => members["items"] && !members["nextCursor"]);
    const paths = whole.map(({ path }) => path).filter((path) => !SHORT.includes(path));
    expect(paths).toEqual([]);
    expect(paged().length).toBeGreaterThan(12);
  });

  test("says so in its parameters and headers, and what older programs use is deprecated", () => {
    for (const { path, call, members } of paged()) {
      const names = (call.parameters ?? []).map(({ name }) => name);
      expect([path, names.includes("cursor"), names.includes("limit")]).toEqual([path, true, true]);
      expect(call.responses[200]?.headers).toHaveProperty("Link");
      const offset = call.parameters?.find(({ name }) => name === "offset");
      if (offset) expect([path, offset.deprecated]).toEqual([path, true]);
      if ("cursor" in members) expect(members["cursor"]).toMatchObject({ deprecated: true });
    }
  });

  test("takes its greatest limit, and answers 422 to one more, to 0 and to no number", async () => {
    for (const { path, call } of paged()) {
      const { description } = call.parameters?.find(({ name }) => name === "limit") ?? {};
      const most = Number(/^1 to (\d+);/.exec(description ?? "")?.[1]);
      // A shipment that does not exist is looked for only when the query is right.
      const right = path.endsWith("/trace") ? 404 : 200;
      expect([path, (await ask(path, `limit=${most}`)).status]).toEqual([path, right]);
      for (const limit of [most + 1, 0, -1, "x", ""]) {
        const { status, body } = await ask(path, `limit=${limit}`);
        expect([path, limit, status, body.code]).toEqual([path, limit, 422, "INVALID_QUERY"]);
        expect(body.detail).toBe(`limit is a number from 1 to ${most}.`);
      }
    }
  });

  test("begins at an empty cursor, and answers 422 to one that it has not given", async () => {
    for (const { path } of paged()) {
      const right = path.endsWith("/trace") ? 404 : 200;
      expect([path, (await ask(path, "cursor=")).status]).toEqual([path, right]);
      const { status, body } = await ask(path, `cursor=${"x".repeat(1_001)}`);
      expect([path, status, body.code]).toEqual([path, 422, "INVALID_QUERY"]);
      expect(body.detail).toBe("cursor must be the nextCursor of an earlier page.");
    }
  });
});

describe("Link", () => {
  const codes = (items: readonly { code: string }[]) => items.map(({ code }) => code);

  test.each([
    "/panel/api/couriers",
    "/panel/api/channels",
    "/panel/api/couriers/GLS_ITA/catalogue",
  ])(
    "of %s leads through all items, one by one, and without a limit they are one page",
    async (path) => {
      const whole = await panel.call("GET", path);
      expect([whole.body.nextCursor, whole.headers.get("link")]).toEqual([null, null]);
      const found: string[] = [];
      for (let next: string | null = `${path}?limit=1&note=a%26b`; next !== null; ) {
        const { body, headers } = await panel.call("GET", next);
        expect(body.items).toHaveLength(1);
        found.push(...codes(body.items));
        const link = headers.get("link");
        expect(link === null).toBe(body.nextCursor === null);
        next = link === null ? null : (/^<([^>]+)>; rel="next"$/.exec(link)?.[1] ?? "");
        if (next !== null) expect(new URLSearchParams(next.split("?")[1]).get("note")).toBe("a&b");
      }
      expect(found).toEqual(codes(whole.body.items));
      expect(found.length).toBeGreaterThan(1);
    },
  );

  test("is left out where it would be too long", async () => {
    const link = async (count: number) =>
      (await panel.call("GET", `/panel/api/couriers?limit=1&x=${"x".repeat(count)}`)).headers.get(
        "link",
      )?.length ?? null;
    const short = (await link(1)) ?? 0;
    expect(await link(4_097 - short)).toBe(4_096);
    expect(await link(4_098 - short)).toBe(null);
  });
});

describe("what older programs use", () => {
  test("offset still skips items, but not beside a cursor", async () => {
    const path = "/panel/api/couriers/GLS_ITA/remaps";
    expect((await panel.call("GET", `${path}?offset=0&limit=1`)).status).toBe(200);
    for (const query of ["offset=x", "offset=1000001", "offset=0&cursor=MQ"]) {
      const { status, body } = await panel.call("GET", `${path}?${query}`);
      expect([query, status, body.code]).toEqual([query, 422, "INVALID_QUERY"]);
    }
    expect((await panel.call("GET", `${path}?offset=1000000`)).status).toBe(200);
  });
});
