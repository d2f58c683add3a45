/** Mapping a courier's codes: narrower rules, unmapped codes, preview, refolding, versions (setup-file.md, issue 4). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import { companyKeys, REMAP_KEYS, shipmentPartition } from "#core/platform/redis/keys.ts";
import { checkSetup, type SetupFile } from "#core/setup/rules/setup.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { foldAll, initialState } from "#core/shipments/rules/fold.ts";
import { decodeChangeEntry, splitChanges } from "#core/shipments/store/change-log.ts";
import {
  commitShipments,
  readHistory,
  readHotShipments,
  readShipments,
} from "#core/shipments/store/shipments.ts";
import { announceRemap } from "#core/statuses/store/remaps.ts";
import { readUnmappedCodes } from "#core/statuses/store/unmapped.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { isFoundIn } from "#test/support/data/search.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { applyEvents, openWebhookRuntime } from "#test/support/product/webhooks.ts";

let runtime: TestRuntime;
let panel: TestPanel;
let remaps: ReturnType<typeof startRemaps>;
let counter = 0;

beforeAll(async () => {
  runtime = await openWebhookRuntime([
    { code: "change", url: "https://m.example/change" },
    { code: "every", url: "https://m.example/every", trigger: "every_event" },
    { code: "delivered", url: "https://m.example/delivered", statuses: ["DELIVERED"] },
  ]);
  panel = await openTestPanel(runtime);
  remaps = startRemaps(runtime);
});

afterAll(async () => {
  await remaps.stop();
  await panel.end();
  await runtime.end();
});

const at = (hour: number) => `2026-11-10T${String(hour).padStart(2, "0")}:00:00+01:00`;
const status = (code: string) => ({ code, description: `text of ${code}` });

/** A code that no other test knows. */
let code = "";
beforeEach(() => {
  counter += 1;
  code = `NEW ${counter}/ù`;
});

async function shipmentWith(
  events: readonly Partial<CourierEvent>[],
  channel = "acme-it",
): Promise<number> {
  counter += 1;
  const id = await addShipment(runtime, `MAP-${counter}`, { channel });
  await applyEvents(runtime, id, events);
  return id;
}

async function stateOf(id: number) {
  const [found] = await readShipments(runtime.redis, [id]);
  if (!found) throw new Error(`no shipment ${id}`);
  return found.state;
}

const pathOf = (text: string) =>
  `/panel/api/couriers/GLS_ITA/catalogue/${encodeURIComponent(text)}`;

async function map(body: object, text = code) {
  const answer = await panel.call("PUT", pathOf(text), body);
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body;
}

async function done(id: string) {
  remaps.wake();
  return eventually(async () => {
    const { body } = await panel.call("GET", `/panel/api/remaps/${id}`);
    return body.state === "done" ? body : null;
  }, `remap ${id} is done`);
}

const mapAndWait = async (body: object, text = code) => done((await map(body, text)).remap.id);

async function unmapped(text = code) {
  return (await readUnmappedCodes(runtime.redis)).find((one) => one.code === text);
}

/** Change log entries of a shipment, the oldest first. */
async function changesOf(id: number) {
  const log = companyKeys(shipmentPartition(id)).changes;
  const entries = await runtime.redis.xRange(log, "-", "+");
  return (entries ?? [])
    .flatMap(({ message }) => splitChanges(message).map(decodeChangeEntry))
    .filter(({ shipmentId, type }) => shipmentId === id && type !== "created")
    .flatMap((entry) => (entry.type === "created" ? [] : [entry]));
}

describe("rules (issue 4, narrower rules)", () => {
  test("a setup file's rules need a condition that no earlier one has, and known details", async () => {
    const entry = { code: "DLV", description: "d", terminal: true, status: "DELIVERED" };
    const withRules = (rules: object[]) => ({
      couriers: [{ code: "GLS_ITA", tokens: ["tok_gls_1"], catalogue: [{ ...entry, rules }] }],
    });
    const faults = (rules: object[]) => checkSetup(withRules(rules)).map(({ path }) => path);
    const path = "couriers[0].catalogue[0].rules";
    expect(faults([{ status: "DELAY" }])).toEqual([`${path}[0]`]);
    const twice = { isReturn: false, status: "DELAY" };
    expect(faults([twice, twice])).toEqual([`${path}[1]`]);
    expect(faults([{ deliveredTo: "NOBODY", status: "DELAY" }])).toEqual([
      `${path}[0].deliveredTo`,
    ]);
    const unknown = withRules([{ isReturn: true, status: "DELAY", statusDetail: 999 }]);
    const application = applySetup(runtime.redis, runtime.secrets.vault, unknown, 0);
    expect(application).rejects.toThrow(`${path}[0].statusDetail`);
  });
});

describe("unmapped codes: stored, flagged, silent", () => {
  test("are reported with events, shipments, first and last seen, over all partitions", async () => {
    await shipmentWith([{ status: status(code) }, { status: status(code), occurredAt: at(11) }]);
    await shipmentWith([{ status: status(code) }], "beta-it");
    const { body } = await panel.call("GET", "/panel/api/unmapped-codes?limit=1000");
    const found = body.items.find((one: { code: string }) => one.code === code);
    expect(found).toMatchObject({ courier: "GLS_ITA", events: 3, shipments: 2 });
    expect(found.description).toBe(`text of ${code}`);
    expect(Date.parse(found.firstSeen)).toBeLessThanOrEqual(Date.parse(found.lastSeen));
  });

  test("mapped events write nothing of it", async () => {
    const before = await readUnmappedCodes(runtime.redis);
    await shipmentWith([{ status: status("TRN") }]);
    expect(await readUnmappedCodes(runtime.redis)).toEqual(before);
  });
});

describe("PUT /panel/api/couriers/{code}/catalogue/{statusCode}", () => {
  test("?preview=true counts events, shipments, states and webhooks, and changes nothing", async () => {
    const first = await shipmentWith([{ status: status(code), occurredAt: at(11) }, {}]);
    await shipmentWith([{ status: status(code), occurredAt: at(8) }, {}]);
    const version = runtime.live.configuration().version;
    const mapping = { status: "DELIVERED", terminal: true };
    const { body } = await panel.call("PUT", `${pathOf(code)}?preview=true`, mapping);
    expect(body.preview).toMatchObject({ complete: true, events: 2, shipments: 2 });
    expect(body.preview.states).toEqual([
      {
        before: { status: "IN_TRANSIT", detail: 0 },
        after: { status: "DELIVERED", detail: 0 },
        shipments: 1,
      },
    ]);
    const verdicts = body.preview.webhooks.map(
      (one: { endpoint: string; verdict: string; count: number }) =>
        `${one.endpoint} ${one.verdict} ${one.count}`,
    );
    expect(verdicts.sort()).toEqual(["change send 1", "delivered send 1", "every send 1"]);
    expect((await runtime.live.refresh()).version).toBe(version);
    expect((await stateOf(first)).pair.status).toBe("IN_TRANSIT");
    expect((await unmapped())?.events).toBe(2);
  });

  test("refolds the shipments, and the lists of unmapped codes forget the code", async () => {
    const ids: number[] = [];
    for (const channel of ["acme-it", "acme-outlet", "beta-it"]) {
      ids.push(await shipmentWith([{ status: status(code), occurredAt: at(12) }, {}], channel));
    }
    const remap = await mapAndWait({ status: "DELIVERED", terminal: true });
    expect(remap.progress).toEqual({ examined: 3, shipments: 3, events: 3, statesChanged: 3 });
    for (const id of ids) {
      const state = await stateOf(id);
      const history = await readHistory(runtime.redis, id);
      expect([state.pair.status, state.unmapped]).toEqual(["DELIVERED", 0]);
      expect(history.map(({ mapping }) => mapping?.status)).toEqual(["IN_TRANSIT", "DELIVERED"]);
      expect(state).toEqual(foldAll(initialState("PENDING"), history).state);
      expect(await isFoundIn(runtime, id, "IN_TRANSIT")).toBe(false);
      expect(await isFoundIn(runtime, id, "DELIVERED")).toBe(true);
    }
    expect(await unmapped()).toBeUndefined();
  });

  test("one change with the deciding fact where the current pair changes, only a rewrite of the rows where it stays", async () => {
    const moved = await shipmentWith([{ status: status(code), occurredAt: at(12) }, {}]);
    const stays = await shipmentWith([{ status: status(code), occurredAt: at(9) }, {}]);
    const changed = async (id: number) =>
      (await changesOf(id)).filter(({ type }) => type === "changed").length;
    const before = await changed(stays);
    await mapAndWait({ status: "DELIVERED", terminal: true });
    const last = (await changesOf(moved)).at(-1);
    const fact = (await readHistory(runtime.redis, moved)).at(-1);
    expect(last?.type).toBe("changed");
    expect(last?.change).toMatchObject({ changed: true, firstOccurrence: true });
    expect(last?.change.fact.key).toBe(fact?.key ?? "");
    expect(last?.readRows().lane).toMatchObject({ deliveredOn: "2026-11-10", removed: false });
    expect(await changed(stays)).toBe(before);
  });

  test("a lane row that changes without the pair is corrected, and no endpoint decides on it", async () => {
    const id = await shipmentWith([
      { status: status(code), occurredAt: at(9) },
      { status: status("DLV"), occurredAt: at(18) },
    ]);
    await mapAndWait({ status: "EXCEPTION", statusDetail: 5 });
    const entries = await changesOf(id);
    expect(entries.at(-1)).toMatchObject({ type: "rewritten", change: { changed: false } });
    expect(entries.at(-1)?.readRows().lane).toMatchObject({ exceptions: 1, removed: false });
    const log = companyKeys(shipmentPartition(id)).changes;
    const [newest] = (await runtime.redis.xRevRange(log, "+", "-", { COUNT: 1 })) ?? [];
    const handler = decideHandler(runtime);
    const ledger = companyKeys(shipmentPartition(id)).ledger;
    const counted = await runtime.redis.hGetAll(ledger);
    await handler([
      { key: log, id: newest?.id ?? "", fields: newest?.message as LogItem["fields"] },
    ]);
    expect(await runtime.redis.hGetAll(ledger)).toEqual(counted);
  });

  test("a long history keeps every fact and its order", async () => {
    const events = Array.from({ length: 70 }, (_, n) => ({
      status: n % 3 === 0 ? status(code) : status("TRN"),
      occurredAt: `2026-11-10T10:${String(n % 60).padStart(2, "0")}:00+01:00`,
    }));
    const id = await shipmentWith(events.slice(0, 31));
    for (const [from, to] of [
      [31, 32],
      [32, 33],
      [33, 69],
      [69, 70],
    ]) {
      await applyEvents(runtime, id, events.slice(from, to));
    }
    const before = await readHistory(runtime.redis, id);
    expect(new Set(before.map(({ key }) => key)).size).toBe(70);
    await mapAndWait({ status: "DELAY" });
    const after = await readHistory(runtime.redis, id);
    expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
    expect(after.filter(({ mapping }) => mapping?.status === "DELAY").length).toBe(24);
    // Which pairs it has been in follows from when the facts came, not from what they say now.
    const { state } = foldAll(initialState("PENDING"), after);
    expect(await stateOf(id)).toEqual({ ...state, entered: ["IN_TRANSIT:0"] });
    await applyEvents(runtime, id, [{ status: status(code), occurredAt: at(20) }]);
    expect((await readHistory(runtime.redis, id)).slice(0, 70)).toEqual(after);
  });

  test("narrower rules map the facts they meet, the others stay unmapped and listed", async () => {
    const hit = await shipmentWith([{ status: status(code), reason: { code: "R1" } }]);
    const miss = await shipmentWith([{ status: status(code) }]);
    await mapAndWait({ status: null, rules: [{ reasonCode: "R1", status: "DELAY" }] });
    expect((await stateOf(hit)).pair.status).toBe("DELAY");
    expect((await stateOf(miss)).mapped).toBeNull();
    expect(await unmapped()).toMatchObject({ events: 1, shipments: 1 });
  });

  test("a code that had another mapping is found by looking at the courier's shipments", async () => {
    const id = await shipmentWith([{ status: status(code) }]);
    await mapAndWait({ status: "DELAY", statusDetail: 7 });
    expect((await stateOf(id)).pair).toEqual({ status: "DELAY", detail: 7 });
    await mapAndWait({ status: "EXCEPTION", statusDetail: 8 });
    expect((await stateOf(id)).pair).toEqual({ status: "EXCEPTION", detail: 8 });
    await mapAndWait({ status: null });
    const state = await stateOf(id);
    expect([state.pair.status, state.unmapped]).toEqual(["PENDING", 1]);
    expect(await unmapped()).toMatchObject({ events: 1, shipments: 1 });
    expect((await changesOf(id)).at(-1)?.change.fact.status).toBeNull();
  });

  test("the same call again starts no second remap, and tells the first", async () => {
    await shipmentWith([{ status: status(code) }]);
    const mapping = { status: "DELAY" };
    const first = await map(mapping);
    const second = await map(mapping);
    expect(second.remap.id).toBe(first.remap.id);
    await done(first.remap.id);
  });

  test("404 for an unknown courier, 422 for a faulty mapping", async () => {
    const unknown = await panel.call("PUT", "/panel/api/couriers/NOBODY/catalogue/X", {
      status: "DELAY",
    });
    expect([unknown.status, unknown.body.code]).toEqual([404, "COURIER_NOT_FOUND"]);
    for (const body of [
      { status: "LOST" },
      {},
      { status: "DELAY", statusDetail: 999 },
      { status: null, statusDetail: 4 },
      { status: "DELAY", rules: [{ status: "DELAY" }] },
      { status: "DELAY", more: 1 },
    ]) {
      const answer = await panel.call("PUT", pathOf(code), body);
      expect([answer.status, answer.body.code]).toEqual([422, "INVALID_BODY"]);
      expect(answer.body.violations.length).toBeGreaterThan(0);
    }
  });
});

describe("remaps are durable", () => {
  test("one that was announced and not applied before a crash takes effect all the same", async () => {
    const id = await shipmentWith([{ status: status(code) }]);
    const after = { code, description: "d", terminal: false, status: "DELAY" } as const;
    const entries = [{ code, before: null, after }];
    const order = { courier: "GLS_ITA", by: "operator", entries, reverts: null };
    await done(await announceRemap(runtime.redis, order, runtime.live.now()));
    expect((await stateOf(id)).pair.status).toBe("DELAY");
    const { couriers } = await runtime.live.refresh();
    expect(couriers.get("GLS_ITA")?.catalogue.get(code)?.status).toBe("DELAY");
  });

  test("one that was cut short goes on where it stood, in another process", async () => {
    const ids: number[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await shipmentWith([{ status: status(code) }]));
    await remaps.stop();
    const { remap } = await map({ status: "DELAY" });
    expect(remap.state).toBe("running");
    const third = ids[2] ?? 0;
    const partition = shipmentPartition(third);
    const cursor = {
      partition,
      key: companyKeys(partition).unmappedShipments("GLS_ITA", code),
      shipmentId: third,
    };
    const progress = {
      cursor,
      isScan: false,
      examined: 3,
      shipments: 3,
      statesChanged: 3,
      events: 3,
    };
    await runtime.redis.hSet(REMAP_KEYS.remap(remap.id), "progress", JSON.stringify(progress));
    remaps = startRemaps(runtime);
    const { progress: reported } = await done(remap.id);
    expect(reported).toEqual({ examined: 5, shipments: 5, statesChanged: 5, events: 5 });
    const states = await Promise.all(ids.map(stateOf));
    // What stands before the cursor was done by the process that died: here nobody did it.
    expect(states.map(({ pair }) => pair.status)).toEqual([
      ...Array(3).fill("WAITING_TO_COMPUTE"),
      ...Array(2).fill("DELAY"),
    ]);
  });

  test("facts mapped with the configuration before it are not committed after it", async () => {
    const id = await shipmentWith([]);
    const old = runtime.live.configuration().version;
    await mapAndWait({ status: "DELAY" });
    const from = (await readHotShipments(runtime.redis, [id])).get(id);
    if (!from) throw new Error("no shipment");
    const commit = { from, state: from.state, facts: [] as Fact[], changes: [], stamp: false };
    const nowMs = runtime.live.now();
    expect(await commitShipments(runtime.redis, [commit], nowMs, old)).toEqual(["outdated"]);
    await applyEvents(runtime, id, [{ status: status(code) }]);
    expect((await stateOf(id)).pair.status).toBe("DELAY");
  });
});

describe("versions", () => {
  test("every change is listed with who, when, before and after, and can be taken back", async () => {
    const id = await shipmentWith([{ status: status(code), occurredAt: at(12) }, {}]);
    const first = await mapAndWait({ status: "DELIVERED", terminal: true, description: "Done" });
    const path = `/panel/api/remaps/${first.id}/revert`;
    const seen = await panel.call("POST", `${path}?preview=true`);
    expect(seen.body.preview.shipments).toBeGreaterThan(0);
    expect((await panel.call("GET", `/panel/api/remaps/${first.id}`)).body.id).toBe(first.id);
    const reverted = await panel.call("POST", path);
    expect(seen.body.preview.complete).toBe(true);
    const again = await panel.call("POST", `/panel/api/remaps/${first.id}/revert`);
    expect(again.body.id).toBe(reverted.body.id);
    await done(reverted.body.id);
    expect((await stateOf(id)).pair.status).toBe("IN_TRANSIT");
    expect((await unmapped())?.events).toBe(1);
    const lane = (await changesOf(id)).at(-1)?.readRows().lane;
    expect(lane).toMatchObject({ removed: true });
    const { body } = await panel.call("GET", "/panel/api/couriers/GLS_ITA/remaps?limit=2");
    expect(body.items.map((one: { id: string }) => one.id)).toEqual([reverted.body.id, first.id]);
    expect(body.items[1]).toMatchObject({ by: "operator", reverts: null });
    const entry = { code, description: "Done", terminal: true, status: "DELIVERED" };
    expect(body.items[1].entries).toEqual([{ code, before: null, after: entry }]);
    expect(body.items[0]).toMatchObject({
      reverts: first.id,
      entries: [{ before: entry, after: null }],
    });
  });

  test("409 when a code of it has been remapped since", async () => {
    const first = await mapAndWait({ status: "DELAY" });
    await mapAndWait({ status: "EXCEPTION" });
    const { status: reportedNow, body } = await panel.call(
      "POST",
      `/panel/api/remaps/${first.id}/revert`,
    );
    expect([reportedNow, body.code, body.codes]).toEqual([409, "REMAP_SUPERSEDED", [code]]);
  });
});

describe("setup file", () => {
  const applied = (file: SetupFile) =>
    applySetup(runtime.redis, runtime.secrets.vault, file, runtime.live.now());
  const gls = (entries: object[]) =>
    ({
      couriers: [{ code: "GLS_ITA", tokens: ["tok_gls_1"], catalogue: entries }],
    }) as SetupFile;

  test("an unchanged file does not undo what the panel has mapped", async () => {
    await mapAndWait({ status: "DELAY", statusDetail: 7, terminal: false }, "HLD");
    const file = { couriers: testSetup().couriers ?? [] };
    expect((await applied(file)).written).toBe(0);
    const { couriers } = await runtime.live.refresh();
    expect(couriers.get("GLS_ITA")?.catalogue.get("HLD")).toMatchObject({
      status: "DELAY",
      statusDetail: 7,
    });
  });

  test("what a file says otherwise than the last time counts, and refolds the shipments", async () => {
    const id = await shipmentWith([{ status: status(code) }]);
    const entry = { code, description: "d", terminal: false };
    await applied(gls([entry]));
    await mapAndWait({ status: "EXCEPTION", statusDetail: 5 });
    await applied(gls([{ ...entry, terminal: true }]));
    const stored = (await runtime.live.refresh()).couriers.get("GLS_ITA")?.catalogue.get(code);
    expect(stored).toMatchObject({ status: "EXCEPTION", statusDetail: 5, terminal: true });
    await applied(gls([{ ...entry, status: "DELAY" }]));
    remaps.wake();
    await eventually(async () => (await stateOf(id)).pair.status === "DELAY", "refolded");
    expect((await stateOf(id)).pair.detail).toBe(0);
    const { body } = await panel.call("GET", "/panel/api/couriers/GLS_ITA/remaps?limit=1");
    expect(body.items[0]).toMatchObject({ by: "setup file" });
  });
});
