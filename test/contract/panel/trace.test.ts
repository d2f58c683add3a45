/** `GET /panel/api/shipments/{id}/trace` (setup-file.md): what happened to a shipment and what was reported of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import { advanceClock } from "#core/configuration/store/live.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readRemap } from "#core/statuses/store/remaps.ts";
import { readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import type { Trace as TraceSchema } from "#panel/server/shipments/trace.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  newShipment,
  openWebhookRuntime,
  STATUS,
  sendDeps,
  startPipeline,
} from "#test/support/product/webhooks.ts";

type Trace = Static<typeof TraceSchema>;

let runtime: TestRuntime;
let panel: TestPanel;
let consumer: Consumer;

beforeAll(async () => {
  runtime = await openWebhookRuntime([
    { code: "change", url: "https://m.example/change" },
    { code: "delivered", url: "https://m.example/delivered", statuses: ["DELIVERED"] },
  ]);
  panel = await openTestPanel(runtime);
  const { redis, log, live } = runtime;
  consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "webhooks",
    batch: 100,
    handler: decideHandler({ redis, live }),
  });
});

afterAll(async () => {
  await consumer.stop();
  await panel.end();
  await runtime.end();
});

const at = (hour: number) => `2026-11-10T${String(hour).padStart(2, "0")}:00:00+01:00`;

test("tells every event, mapping, change, verdict with its reason, and delivery", async () => {
  const id = await newShipment(runtime);
  const reason = { code: "R7", description: "why" };
  await applyEvents(runtime, id, [{ status: STATUS.inTransit, occurredAt: at(10), reason }]);
  await applyEvents(runtime, id, [{ status: STATUS.unmapped, occurredAt: at(11) }]);
  await applyEvents(runtime, id, [{ status: STATUS.departed, occurredAt: at(9) }]);
  await eventually(async () => (await readDecisions(runtime.redis, id)).length === 3, "decided");
  const { status, body } = await panel.call("GET", `/panel/api/shipments/${id}/trace`);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    shipmentId: id,
    channel: "acme-it",
    courier: "GLS_ITA",
    total: 3,
    unmappedEvents: 1,
    current: { status: "IN_TRANSIT", detail: 0 },
  });
  const [moved, unmapped, late] = body.events;
  expect(moved.event.reason).toEqual(reason);
  expect(moved.occurredAt).toBe("2026-11-10T09:00:00.000Z");
  expect(moved.mapping).toEqual({ status: "IN_TRANSIT", detail: 0, terminal: false });
  expect(moved.change).toMatchObject({ changed: true, firstOccurrence: true });
  expect([unmapped.mapping, unmapped.change.changed]).toEqual([null, false]);
  expect(late.change).toMatchObject({ changed: false, firstOccurrence: false });
  const verdicts = body.events.map(
    ({ decisions }: { decisions: { verdicts: { endpoint: string; verdict: string }[] }[] }) =>
      decisions[0]?.verdicts.map(({ endpoint, verdict }) => `${endpoint} ${verdict}`).sort(),
  );
  expect(verdicts).toEqual([
    ["change send", "delivered filtered"],
    ["change unmapped", "delivered unmapped"],
    ["change trigger_not_met", "delivered trigger_not_met"],
  ]);
  const sent = moved.decisions[0].verdicts.find(
    ({ verdict }: { verdict: string }) => verdict === "send",
  );
  expect(sent.delivery).toMatchObject({ state: "queued", generation: 1, attempts: [] });
});

test("comes in pages, in the order of application", async () => {
  const id = await newShipment(runtime);
  for (let hour = 10; hour < 16; hour += 1) {
    await applyEvents(runtime, id, [{ status: STATUS.inTransit, occurredAt: at(hour) }]);
  }
  const times = (events: readonly { occurredAt: string }[]) => events.map((one) => one.occurredAt);
  const last = ["2026-11-10T13:00:00.000Z", "2026-11-10T14:00:00.000Z"];
  const { body } = await panel.call("GET", `/panel/api/shipments/${id}/trace?offset=4&limit=5`);
  expect([body.total, times(body.events)]).toEqual([6, last]);
  const first = await panel.call("GET", `/panel/api/shipments/${id}/trace?limit=4`);
  const path = `/panel/api/shipments/${id}/trace?limit=4&cursor=${first.body.nextCursor}`;
  expect(first.headers.get("link")).toBe(`<${path}>; rel="next"`);
  const second = (await panel.call("GET", path)).body;
  expect([times(second.events), second.nextCursor]).toEqual([last, null]);
});

test("404 for a shipment that is not, 400 for a page that is none", async () => {
  expect((await panel.call("GET", "/panel/api/shipments/999999/trace")).status).toBe(404);
  expect((await panel.call("GET", "/panel/api/shipments/abc/trace")).status).toBe(404);
  expect((await panel.call("GET", "/panel/api/shipments/1/trace?limit=0")).status).toBe(422);
});

describe("as of an earlier time (setup-file.md, `trace?asOf=`)", () => {
  const read = async (id: number, asOf?: number) => {
    const query = asOf === undefined ? "" : `?asOf=${new Date(asOf).toISOString()}`;
    const { status, body } = await panel.call("GET", `/panel/api/shipments/${id}/trace${query}`);
    expect([status, body]).toEqual([200, body]);
    return body;
  };
  /** Two changes of a second each stand apart. */
  const pass = (seconds = 10) =>
    advanceClock(runtime.redis, seconds).then(() => runtime.live.refresh());
  const isDecided = (id: number, count: number) =>
    eventually(async () => (await readDecisions(runtime.redis, id)).length === count, "decided");

  test("it answers what it answered then, whatever was received, mapped and erased since", async () => {
    const id = await newShipment(runtime);
    const code = { code: "LATER", description: "mapped later" };
    const steps: readonly Partial<CourierEvent>[] = [
      { status: STATUS.departed, occurredAt: at(8) },
      { status: code, occurredAt: at(9) },
      { status: STATUS.outForDelivery, occurredAt: at(12), delivery: { signedBy: "Zyxw" } },
      { status: STATUS.inTransit, occurredAt: at(11) },
      {
        status: STATUS.heldInDepot,
        occurredAt: at(13),
        trackingNumberChange: { newTrackingNumber: "NEXT" },
      },
    ];
    const answers: { readonly atMs: number; readonly body: Trace }[] = [];
    for (const [position, step] of steps.entries()) {
      await pass();
      await applyEvents(runtime, id, [step]);
      await isDecided(id, position + 1);
      await pass();
      answers.push({ atMs: runtime.live.now(), body: await read(id) });
    }
    const path = "/panel/api/couriers/GLS_ITA/catalogue/LATER";
    const entry = { description: "mapped later", status: "DELIVERED", terminal: true };
    await pass();
    const remaps = startRemaps(runtime);
    const mapped = await panel.call("PUT", path, entry);
    await eventually(
      async () => (await readRemap(runtime.redis, mapped.body.remap.id))?.state === "done",
      "it is done",
    );
    await remaps.stop();
    expect((await panel.call("DELETE", `/panel/api/shipments/${id}/personal-data`)).status).toBe(
      204,
    );
    for (const { atMs, body } of answers) {
      const then = await read(id, atMs);
      expect(JSON.stringify(then)).not.toContain("Zyxw");
      const [, second] = then.events;
      if (second)
        expect(second).toMatchObject({ mapping: null, mappedBefore: mapped.body.remap.id });
      for (const one of [...then.events, ...body.events]) {
        delete one.event.delivery;
        delete one.mappedBefore;
      }
      expect(then).toEqual(body);
    }
    const now = await read(id);
    expect(now.events[1].mapping).toMatchObject({ status: "DELIVERED" });
    expect(await read(id, runtime.live.now())).toEqual(now);
  });

  test("an attempt that was made later is not there, and its delivery waited", async () => {
    const id = await newShipment(runtime);
    await applyEvents(runtime, id, [{ status: STATUS.inTransit, occurredAt: at(9) }]);
    await isDecided(id, 1);
    await pass();
    const before = await read(id);
    const atMs = runtime.live.now();
    await pass();
    const pipeline = startPipeline(runtime, sendDeps(runtime));
    const attemptsOf = (body: Trace) =>
      body.events.flatMap(({ decisions }) =>
        decisions.flatMap(({ verdicts }) =>
          verdicts.flatMap(({ delivery }) => delivery?.attempts ?? []),
        ),
      );
    await eventually(async () => attemptsOf(await read(id)).length === 1, "it was tried");
    await pipeline.stop();
    expect(await read(id, atMs)).toEqual(before);
  });

  test("an instant that is none, one to come and one before the shipment are 422 with the reason", async () => {
    const id = await newShipment(runtime);
    const refusal = async (asOf: string) => {
      const path = `/panel/api/shipments/${id}/trace?asOf=${encodeURIComponent(asOf)}`;
      const { status, body } = await panel.call("GET", path);
      return [status, body.code, body.violations?.[0]?.path, body.detail];
    };
    const refused = (reason: RegExp) => [
      422,
      "INVALID_QUERY",
      "asOf",
      expect.stringMatching(reason),
    ];
    expect(await refusal("yesterday")).toEqual(refused(/ISO 8601/));
    expect(await refusal("2026-11-10T10:00:00")).toEqual(refused(/offset/));
    const later = new Date(runtime.live.now() + 60_000).toISOString();
    expect(await refusal(later)).toEqual(refused(/will have been received later/));
    expect(await refusal("2001-01-01")).toEqual(refused(/was created at/));
  });
});
