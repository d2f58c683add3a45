/** Shipments of the panel: one search box, lists in pages, and no other company's shipment in any of them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const QUERY_LENGTH = 256;
const FOUND_LIMIT = 200;
const PART_LENGTH = 3;

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

  test(`of a reference that more than ${FOUND_LIMIT} have it finds all, in pages`, async () => {
    for (let at = 0; at <= FOUND_LIMIT; at += 1) {
      await addShipment(runtime, `MANY-${at}`, { orderReference: "MANY", isRegistered: false });
    }
    const first = await ask(acme, "?q=MANY&limit=150");
    expect([first.body.items.length, first.body.total]).toEqual([150, FOUND_LIMIT + 1]);
    const second = await ask(acme, `?q=MANY&limit=150&cursor=${first.body.nextCursor}`);
    expect([second.body.items.length, second.body.nextCursor]).toEqual([51, null]);
    expect(new Set([...idsOf(first.body), ...idsOf(second.body)]).size).toBe(FOUND_LIMIT + 1);
  });

  test("finds by part of a number, reference or recipient's name, in any case and spelling", async () => {
    const one = await addShipment(runtime, "rr 77 zz-01 it", {
      orderReference: "Web/Aa-9001",
      consignee: { name: "Gina Lollobrigida" },
    });
    const other = await addShipment(runtime, "RR77ZZ02IT", { channel: "beta-it" });
    for (const q of ["77zz-0", "R77ZZ-01IT", "b/aA-90", "lollo", "GINA L"]) {
      const { body } = await ask(operator, `?q=${encodeURIComponent(q)}`);
      expect([q, idsOf(body), body.matched]).toEqual([q, [one], "part"]);
    }
    expect(idsOf((await ask(operator, "?q=77zz")).body)).toEqual([one, other].sort());
    expect(idsOf((await ask(beta, "?q=77zz")).body)).toEqual([other]);
    // Of the courier's code nothing is found, and nothing that begins in one text and ends in the next.
    for (const q of ["GLS", "ITWeb"]) expect((await ask(operator, `?q=${q}`)).body.total).toBe(0);
  });

  test("an erased recipient is not found by name any more, the parcel by its number still", async () => {
    const id = await addShipment(runtime, "ERASE-ME", { consignee: { name: "Fausto Coppi" } });
    expect(idsOf((await ask(acme, "?q=coppi")).body)).toEqual([id]);
    await fetch(`${panel.url}/panel/api/shipments/${id}/personal-data`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${runtime.secrets.panelToken}` },
    });
    expect((await ask(acme, "?q=coppi")).body.items).toEqual([]);
    expect(idsOf((await ask(acme, "?q=rase-m")).body)).toEqual([id]);
  });

  test(`looks for parts from ${PART_LENGTH} characters on`, async () => {
    const id = await addShipment(runtime, "QQX-1");
    expect(idsOf((await ask(acme, "?q=qqx")).body)).toEqual([id]);
    expect((await ask(acme, "?q=qq")).body.items).toEqual([]);
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

  test("is of all companies for operators, in pages without a gap", async () => {
    const totals = await Promise.all([acme, beta, operator].map((one) => ask(one, "?limit=1")));
    const [own = 0, others = 0, all = 0] = totals.map(({ body }) => body.total);
    expect(all).toBe(own + others);
    const seen: number[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Answered = (await ask(operator, `?limit=50&cursor=${cursor}`)).body;
      seen.push(...idsOf(page));
      cursor = page.nextCursor;
    }
    expect([new Set(seen).size, seen.length]).toEqual([all, all]);
  });

  test("is filtered by courier, ship date and days without news, and sorted", async () => {
    const common = { channel: "beta-it", shipDate: "2026-01-05" };
    const first = await addShipment(runtime, "FILTER-1", { ...common, courier: "BRT_ITA" });
    const later = { ...common, courier: "BRT_ITA", shipDate: "2026-01-06" };
    const second = await addShipment(runtime, "FILTER-2", later);
    const listed = async (query: string) =>
      (await ask(beta, `?${query}`)).body.items.map(({ id }) => id);
    expect(await listed("courier=BRT_ITA&sort=created")).toEqual([first, second]);
    expect(await listed("courier=BRT_ITA&sort=-shipDate")).toEqual([second, first]);
    expect(await listed("courier=BRT_ITA&q=filter-2")).toEqual([second]);
    expect(await listed("courier=GLS_ITA&q=filter-2")).toEqual([]);
    expect(await listed("shipFrom=2026-01-06&shipTo=2026-01-06")).toEqual([second]);
    expect((await ask(beta, "?courier=NOBODY")).status).toBe(404);
  });

  test("is 404 for somebody else's company or channel as for none", async () => {
    expect((await ask(operator, "?channelCode=beta-it")).status).toBe(200);
    for (const name of ["companyCode", "channelCode"]) {
      const [own, other] = name === "companyCode" ? ["beta", "acme"] : ["beta-it", "acme-it"];
      expect((await ask(beta, `?${name}=${own}`)).status).toBe(200);
      const answer = await ask(beta, `?${name}=${other}`);
      expect(answer.status).toBe(404);
      const none = await ask(beta, `?${name}=nothing`);
      expect({ ...none.body, requestId: "" }).toEqual({ ...answer.body, requestId: "" });
    }
  });

  test.each([
    "status=GONE",
    "limit=0",
    "cursor=abc",
    "quietDays=0",
    "quietDays=366",
    "shipFrom=x",
    "sort=name",
    "sort=__proto__",
  ])("%s is 422", async (query) => {
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

test("tells for how long nothing was heard: of a status under way, or since its creation", async () => {
  // Sessions end before the clock stands there.
  const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const asked = async (query: string): Promise<Answered> => {
    const answer = await fetch(`${panel.url}/panel/api/shipments?q=quiet-&${query}`, { headers });
    return (await answer.json()) as Answered;
  };
  const quiet = async () => idsOf(await asked("quietDays=3"));
  const advance = async () => {
    await advanceClock(runtime.redis, 3 * 86_400);
    await runtime.live.refresh();
  };
  const [moving = 0, waiting = 0] = [
    await addShipment(runtime, "QUIET-1", { channel: "beta-it" }),
    await addShipment(runtime, "QUIET-2", { channel: "beta-it" }),
  ];
  expect(await quiet()).toEqual([]);
  await advance();
  const young = await addShipment(runtime, "QUIET-3", { channel: "beta-it" });
  expect(await quiet()).toEqual([moving, waiting].sort());
  await applyEvents(runtime, [{ shipmentId: moving, code: "TRN" }]);
  expect(await quiet()).toEqual([waiting]);
  await advance();
  expect(await quiet()).toEqual([moving, waiting, young].sort());
  await applyEvents(runtime, [{ shipmentId: moving, code: "DLV" }]);
  await advance();
  expect(await quiet()).toEqual([waiting, young].sort());
  expect((await asked("quietDays=3&status=DELIVERED")).total).toBe(1);
});
