/** `GET /panel/api/shipments/{id}/trace` (setup-file.md): what happened to a shipment and what was reported of it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  newShipment,
  openWebhookRuntime,
  STATUS,
} from "#test/support/product/webhooks.ts";

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
