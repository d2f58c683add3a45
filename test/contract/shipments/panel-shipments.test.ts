/** Shipments of the panel: one search box, lists in pages, and no other company's shipment in any of them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const QUERY_LENGTH = 256;
const FOUND_LIMIT = 200;

let runtime: TestRuntime;
let panel: Running;
let acme: TestAccount;
let beta: TestAccount;
let operator: TestAccount;
let ours: number;
let theirs: number;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  panel = await startPanel(runtime);
  acme = await makeAccount(runtime, "company", "read-only", { companyCode: "acme" });
  beta = await makeAccount(runtime, "company", "owner", { companyCode: "beta" });
  operator = await makeAccount(runtime, "operator", "read-only");
  const common = { orderReference: "ORDER-1", consignee: { name: "Ann", city: "Roma" } };
  ours = await addShipment(runtime, "BOTH-1", { ...common, parcelNumbers: [] });
  theirs = await addShipment(runtime, "BOTH-1", { ...common, channel: "beta-it" });
});
afterAll(async () => {
  await panel.stop();
  await runtime.end();
});

interface Answered {
  readonly items: readonly { readonly id: number }[];
  readonly nextCursor: string | null;
  readonly total: number;
  readonly matched: string | null;
}

async function ask({ cookie }: TestAccount, path: string) {
  const answer = await fetch(`${panel.url}/panel/api/shipments${path}`, { headers: { cookie } });
  return { status: answer.status, body: (await answer.json()) as Answered };
}

const idsOf = (body: Answered) => body.items.map(({ id }) => id).sort();

describe("the search box", () => {
  test("finds a tracking number, an order reference and an id, and says what it is", async () => {
    for (const [q, matched] of [
      ["BOTH-1", "trackingNumber"],
      [" ORDER-1 ", "reference"],
      [String(ours), "id"],
    ] as const) {
      const { body } = await ask(acme, `?q=${encodeURIComponent(q)}`);
      expect([idsOf(body), body.matched, body.total]).toEqual([[ours], matched, 1]);
    }
    expect((await ask(acme, "?q=nothing")).body).toMatchObject({ items: [], matched: null });
  });

  test("shows members their own, and operators those of every company", async () => {
    expect(idsOf((await ask(acme, "?q=BOTH-1")).body)).toEqual([ours]);
    expect(idsOf((await ask(beta, "?q=BOTH-1")).body)).toEqual([theirs]);
    expect(idsOf((await ask(operator, "?q=BOTH-1")).body)).toEqual([ours, theirs].sort());
    expect(idsOf((await ask(operator, "?q=BOTH-1&companyCode=beta")).body)).toEqual([theirs]);
    expect((await ask(beta, `?q=${ours}`)).body.items).toEqual([]);
  });

  test("a number finds what has it as a reference and as an id", async () => {
    const other = await addShipment(runtime, "NUMBER-1", { orderReference: String(ours) });
    const { body } = await ask(acme, `?q=${ours}`);
    expect(idsOf(body)).toEqual([ours, other].sort());
  });

  test(`takes ${QUERY_LENGTH} characters, not one more`, async () => {
    expect((await ask(acme, `?q=${"x".repeat(QUERY_LENGTH)}`)).status).toBe(200);
    expect((await ask(acme, `?q=${"x".repeat(QUERY_LENGTH + 1)}`)).status).toBe(422);
  });

  test(`of a reference with more it finds ${FOUND_LIMIT}, in pages`, async () => {
    for (let at = 0; at <= FOUND_LIMIT; at += 1) {
      await addShipment(runtime, `MANY-${at}`, { orderReference: "MANY", isRegistered: false });
    }
    const first = await ask(acme, "?q=MANY&limit=150");
    expect([first.body.items.length, first.body.total]).toEqual([150, FOUND_LIMIT]);
    const second = await ask(acme, `?q=MANY&limit=150&cursor=${first.body.nextCursor}`);
    expect([second.body.items.length, second.body.nextCursor]).toEqual([50, null]);
  });
});

describe("a company's list", () => {
  test("comes in pages without a gap or a repetition, and by status", async () => {
    const seen: number[] = [];
    let total = 0;
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Answered = (await ask(acme, `?limit=100&cursor=${cursor}`)).body;
      seen.push(...idsOf(page));
      ({ nextCursor: cursor, total } = page);
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBe(total);
    expect(seen).not.toContain(theirs);
    expect((await ask(acme, "?status=DELIVERED")).body.total).toBe(0);
    expect((await ask(acme, "?status=WAITING_TO_COMPUTE,DELIVERED")).body.total).toBe(total);
  });

  test("needs a company from operators, and is 404 for somebody else's as for none", async () => {
    expect((await ask(operator, "")).status).toBe(422);
    expect((await ask(operator, "?channelCode=beta-it")).body.total).toBe(1);
    for (const name of ["companyCode", "channelCode"]) {
      const [own, other] = name === "companyCode" ? ["beta", "acme"] : ["beta-it", "acme-it"];
      expect((await ask(beta, `?${name}=${own}`)).status).toBe(200);
      const answer = await ask(beta, `?${name}=${other}`);
      expect(answer.status).toBe(404);
      const none = await ask(beta, `?${name}=nothing`);
      expect({ ...none.body, requestId: "" }).toEqual({ ...answer.body, requestId: "" });
    }
  });

  test.each(["status=GONE", "limit=0", "cursor=abc"])("%s is 422", async (query) => {
    expect((await ask(acme, `?${query}`)).status).toBe(422);
  });
});

test("one shipment has what its page shows", async () => {
  const { body } = await ask(acme, `/${ours}`);
  expect(body).toMatchObject({
    id: ours,
    channelCode: "acme-it",
    companyCode: "acme",
    trackingNumber: "BOTH-1",
    status: "WAITING_TO_COMPUTE",
    statusUpdatedAt: null,
    reference: "ORDER-1",
    furtherNumbers: [],
    consignee: { name: "Ann", city: "Roma", postcode: null },
    notifications: [],
  });
});
