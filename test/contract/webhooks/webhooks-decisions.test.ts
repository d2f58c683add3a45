import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bumpVersion, saveEntity } from "#core/configuration/store/entities.ts";
import { createLive } from "#core/configuration/store/live.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import { changeLogs, shipmentPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { type Change, encodeChange } from "#core/shipments/store/change-log.ts";
import { eventIdOf, readDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  newShipment,
  openWebhookRuntime,
  type Pipeline,
  STATUS,
  sendDeps,
  setActive,
  startPipeline,
} from "#test/support/product/webhooks.ts";
import { type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

let receiver: Receiver;
let runtime: TestRuntime;
let pipeline: Pipeline;

const at = (hour: number) => `2026-11-10T${String(hour).padStart(2, "0")}:00:00+01:00`;

beforeAll(async () => {
  receiver = await startReceiver({ path: "" });
  const url = receiver.url;
  runtime = await openWebhookRuntime([
    { code: "change", url: `${url}/change` },
    { code: "first", url: `${url}/first`, trigger: "first_occurrence" },
    { code: "every", url: `${url}/every`, trigger: "every_event", include: ["consignee"] },
    { code: "filtered", url: `${url}/filtered`, statuses: ["EXCEPTION", "DELIVERED"] },
    { code: "off", url: `${url}/off` },
  ]);
  await setActive(runtime.redis, endpointOf(runtime, "off").id, false);
  pipeline = startPipeline(runtime, sendDeps(runtime));
});

afterAll(async () => {
  await pipeline.stop();
  await runtime.end();
  await receiver.stop();
});

/** What arrived for a shipment, by path: the fact's `STATUS:detail`, in the order of creation. */
async function arrived(shipmentId: number, count: number) {
  const own = await eventually(() => {
    const found = receiver.requests.filter(({ body }) => body.data.shipment.id === shipmentId);
    return found.length >= count ? found : null;
  }, `${count} webhooks arrive`);
  const order = (await readDecisions(runtime.redis, shipmentId)).map(({ eventId }) => eventId);
  own.sort((one, other) => order.indexOf(one.body.id) - order.indexOf(other.body.id));
  const pairs = (path: string) =>
    own
      .filter((request) => request.path === path)
      .map(({ body }) => `${body.data.event.statusCode}:${body.data.event.statusDetailId}`);
  return {
    own,
    change: pairs("/change"),
    first: pairs("/first"),
    every: pairs("/every"),
    filtered: pairs("/filtered"),
    off: pairs("/off"),
  };
}

/** Events one after the other, each in a commit of its own. */
async function applyInTurn(shipmentId: number, codes: ReadonlyArray<keyof typeof STATUS>) {
  for (const [hour, code] of codes.entries()) {
    await applyEvents(runtime, shipmentId, [{ status: STATUS[code], occurredAt: at(hour) }]);
  }
}

/** A delivery, by a fact of its own. */
function changeOf(key: string): Change {
  return {
    companyId: 1,
    channelId: endpointOf(runtime, "change").channelId,
    fact: {
      key,
      occurredAtMs: 1,
      receivedAtMs: 1,
      place: null,
      courierStatus: "x",
      status: "DELIVERED",
      detail: 0,
    },
    changed: true,
    firstOccurrence: true,
    lane: null,
  };
}

describe("document 3, Trigger semantics", () => {
  test("three in-transit events: one status change, one first occurrence, three events", async () => {
    const id = await newShipment(runtime);
    await applyInTurn(id, ["inTransit", "inTransit", "inTransit"]);
    const { change, first, every, filtered, off } = await arrived(id, 5);
    expect(change).toEqual(["IN_TRANSIT:0"]);
    expect(first).toEqual(["IN_TRANSIT:0"]);
    expect(every).toEqual(["IN_TRANSIT:0", "IN_TRANSIT:0", "IN_TRANSIT:0"]);
    expect(filtered).toEqual([]);
    expect(off).toEqual([]);
  });

  test("returning to a pair already seen is a change and no first occurrence; the filter follows the trigger", async () => {
    const id = await newShipment(runtime);
    await applyInTurn(id, ["inTransit", "heldInDepot", "inTransit", "delivered"]);
    const { change, first, every, filtered } = await arrived(id, 13);
    expect(change).toEqual(["IN_TRANSIT:0", "EXCEPTION:4", "IN_TRANSIT:0", "DELIVERED:0"]);
    expect(first).toEqual(["IN_TRANSIT:0", "EXCEPTION:4", "DELIVERED:0"]);
    expect(every).toHaveLength(4);
    expect(filtered).toEqual(["EXCEPTION:4", "DELIVERED:0"]);
  });

  test("a late fact that never becomes the current one leaves its pair to be entered later", async () => {
    const id = await newShipment(runtime);
    await applyEvents(runtime, id, [{ status: STATUS.inTransit, occurredAt: at(5) }]);
    await applyEvents(runtime, id, [{ status: STATUS.heldInDepot, occurredAt: at(2) }]);
    await applyEvents(runtime, id, [{ status: STATUS.heldInDepot, occurredAt: at(6) }]);
    const { first } = await arrived(id, 8);
    expect(first).toEqual(["IN_TRANSIT:0", "EXCEPTION:4"]);
  });

  test("data.trigger is the endpoint's own, the id is shared by all endpoints of the channel", async () => {
    const id = await newShipment(runtime);
    await applyInTurn(id, ["delivered"]);
    const { own } = await arrived(id, 4);
    expect(new Set(own.map(({ body }) => body.id)).size).toBe(1);
    const triggers = Object.fromEntries(own.map(({ path, body }) => [path, body.data.trigger]));
    expect(triggers).toEqual({
      "/change": "status_change",
      "/first": "first_occurrence",
      "/every": "every_event",
      "/filtered": "status_change",
    });
  });

  test("consignee is there only for the endpoint that includes it", async () => {
    const id = await newShipment(runtime);
    await applyInTurn(id, ["delivered"]);
    const { own } = await arrived(id, 4);
    for (const { path, body } of own) {
      expect(Object.hasOwn(body.data.shipment, "consignee")).toBe(path === "/every");
    }
  });

  test("another channel's endpoints hear nothing", async () => {
    const id = await addShipment(runtime, "OUTLET-1", { channel: "acme-outlet" });
    await applyInTurn(id, ["delivered"]);
    const own = await newShipment(runtime);
    await applyInTurn(own, ["delivered"]);
    await arrived(own, 4);
    expect(receiver.requests.filter(({ body }) => body.data.shipment.id === id)).toEqual([]);
    expect(await readDecisions(runtime.redis, id)).toEqual([]);
  });
});

describe("a decision is recorded for every change and endpoint", () => {
  test("with the reason when nothing is sent", async () => {
    const id = await newShipment(runtime);
    await applyInTurn(id, ["inTransit", "inTransit", "unmapped"]);
    const decisions = await eventually(async () => {
      const found = await readDecisions(runtime.redis, id);
      return found.length === 3 ? found : null;
    }, "three decisions");
    const codes = new Map(
      [...runtime.live.configuration().endpoints.values()].map((one) => [one.id, one.code]),
    );
    const verdicts = decisions.map((decision) =>
      Object.fromEntries(
        decision.verdicts.map(([endpoint, verdict]) => [codes.get(endpoint), verdict]),
      ),
    );
    const none = {
      change: "trigger_not_met",
      first: "trigger_not_met",
      filtered: "trigger_not_met",
    };
    expect(verdicts).toEqual([
      { change: "send", first: "send", every: "send", filtered: "filtered", off: "disabled" },
      { ...none, every: "send", off: "disabled" },
      ...[
        {
          change: "unmapped",
          first: "unmapped",
          every: "unmapped",
          filtered: "unmapped",
          off: "disabled",
        },
      ],
    ]);
  });

  test("for 30 days", async () => {
    const id = await newShipment(runtime);
    await applyInTurn(id, ["delivered"]);
    await arrived(id, 4);
    const key = webhookKeys(shipmentPartition(id)).verdicts(id);
    const days = (await runtime.redis.pTTL(key)) / 86_400_000;
    expect(days).toBeGreaterThan(29.9);
    expect(days).toBeLessThanOrEqual(30);
  });

  test("once, however often the entry is handed in, and it is not made again for another configuration", async () => {
    const { redis, live } = runtime;
    const id = await newShipment(runtime);
    await applyInTurn(id, ["heldInDepot"]);
    await arrived(id, 4);
    const change = changeOf("again");
    const entry: LogItem = {
      key: changeLogs()[shipmentPartition(id)] ?? "",
      id: "1-1",
      fields: { s: String(id), change: encodeChange(change) },
    };
    const handle = decideHandler({ redis, live });
    const count = async () => (await deliveriesOf(runtime, endpointOf(runtime, "off"))).length;
    const before = await count();
    expect(await handle([entry, entry])).toEqual([]);
    await setActive(redis, endpointOf(runtime, "off").id, true);
    expect(await handle([entry])).toEqual([]);
    await setActive(redis, endpointOf(runtime, "off").id, false);
    expect(await count()).toBe(before);
    const { own } = await arrived(id, 8);
    expect(own).toHaveLength(8);
    expect(await readDecisions(redis, id)).toHaveLength(2);
  });

  test("an entry that cannot be read fails alone", async () => {
    const { redis, live } = runtime;
    const handle = decideHandler({ redis, live });
    const broken: LogItem = { key: "{k1}:changes", id: "1-2", fields: { s: "17", change: "{" } };
    const [failure] = await handle([broken]);
    expect(failure?.entry).toBe(broken);
  });
});

test("the configuration of a new endpoint counts from the next change on", async () => {
  const { redis, live } = runtime;
  const id = await newShipment(runtime);
  await applyInTurn(id, ["inTransit"]);
  await arrived(id, 3);
  const template = endpointOf(runtime, "change");
  const url = `${receiver.url}/late`;
  await saveEntity(redis, "endpoint", "ep_late", {
    ...template,
    id: "ep_late",
    code: "late",
    url,
    createdAtMs: live.now(),
    statuses: [],
    include: [],
    fileEntry: "",
    fileSecretHash: "",
  });
  await bumpVersion(redis);
  await applyEvents(runtime, id, [{ status: STATUS.delivered, occurredAt: at(5) }]);
  const { own } = await arrived(id, 8);
  const late = own.filter(({ path }) => path === "/late");
  expect(late.map(({ body }) => body.data.event.statusCode)).toEqual(["DELIVERED"]);
});

test("a process that has not heard of a new configuration decides by it all the same", async () => {
  const { redis } = runtime;
  const { id: off } = endpointOf(runtime, "off");
  const behind = await createLive(redis, false);
  const handle = decideHandler({ redis, live: behind });
  const id = await newShipment(runtime);
  const verdictOf = async (entryId: string) => {
    const change = changeOf(`${id} ${entryId}`);
    const key = changeLogs()[shipmentPartition(id)] ?? "";
    const fields = { s: String(id), change: encodeChange(change) };
    expect(await handle([{ key, id: entryId, fields }])).toEqual([]);
    const decisions = await readDecisions(redis, id);
    const decided = decisions.find(({ eventId }) => eventId === eventIdOf(key, entryId));
    return new Map(decided?.verdicts).get(off);
  };
  expect(await verdictOf("2-1")).toBe("disabled");
  await setActive(redis, off, true);
  expect(behind.configuration().endpoints.get(off)?.active).toBe(false);
  expect(await verdictOf("2-2")).toBe("send");
  await setActive(redis, off, false);
  expect(await verdictOf("2-3")).toBe("disabled");
});
