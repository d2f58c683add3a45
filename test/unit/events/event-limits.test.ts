/** Document 2, "Event": each bound of an event at its limit and one past it, and what is required of it. */
import { describe, expect, test } from "bun:test";
import {
  BODY_LIMIT_BYTES,
  checkEnvelope,
  checkEscapedEnvelope,
  checkEscapedEvent,
  checkEvent,
  unsupportedVersion,
} from "#core/events/rules/event.ts";

const EVENT = {
  eventId: "e-1",
  trackingNumber: "T",
  occurredAt: "2026-11-20T10:00:00Z",
  status: { code: "DLV", description: "Consegnato" },
};
const long = (length: number) => "x".repeat(length);
const url = (length: number) => `https://pod.test/${long(length - 17)}`;
const pairs = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, "v"]));

/** Members by the path of a bounded value: the greatest one that is accepted, and one more. */
const BOUNDS: ReadonlyArray<
  readonly [path: string, limit: number, members: (size: number) => object]
> = [
  ["eventId", 128, (size) => ({ eventId: long(size) })],
  ["trackingNumber", 64, (size) => ({ trackingNumber: long(size) })],
  ["externalId", 128, (size) => ({ externalId: long(size) })],
  ["senderAccount", 64, (size) => ({ senderAccount: long(size) })],
  ["status.code", 64, (size) => ({ status: { code: long(size), description: "d" } })],
  ["status.description", 500, (size) => ({ status: { code: "c", description: long(size) } })],
  ["location.name", 200, (size) => ({ location: { name: long(size) } })],
  ["location.postalCode", 16, (size) => ({ location: { postalCode: long(size) } })],
  ["parcel.trackingNumber", 64, (size) => ({ parcel: { trackingNumber: long(size) } })],
  ["parcel.index", 999, (index) => ({ parcel: { index } })],
  ["parcel.total", 999, (total) => ({ parcel: { total } })],
  ["reason.code", 64, (size) => ({ reason: { code: long(size) } })],
  ["reason.description", 500, (size) => ({ reason: { description: long(size) } })],
  ["delivery.signedBy", 200, (size) => ({ delivery: { signedBy: long(size) } })],
  ["delivery.podUrl", 2_048, (size) => ({ delivery: { podUrl: url(size) } })],
  ["delivery.attemptNumber", 999, (attemptNumber) => ({ delivery: { attemptNumber } })],
  ["pickupPoint.id", 64, (size) => ({ pickupPoint: { id: long(size) } })],
  ["pickupPoint.name", 200, (size) => ({ pickupPoint: { name: long(size) } })],
  ["pickupPoint.address", 500, (size) => ({ pickupPoint: { address: long(size) } })],
  ["pickupPoint.postalCode", 16, (size) => ({ pickupPoint: { postalCode: long(size) } })],
  [
    "trackingNumberChange.newTrackingNumber",
    64,
    (size) => ({ trackingNumberChange: { newTrackingNumber: long(size) } }),
  ],
  [
    "trackingNumberChange.reason",
    500,
    (size) => ({ trackingNumberChange: { newTrackingNumber: "N", reason: long(size) } }),
  ],
  ["recipientActionUrl", 2_048, (size) => ({ recipientActionUrl: url(size) })],
  ["attributes", 20, (count) => ({ attributes: pairs(count) })],
  ["attributes.key", 500, (size) => ({ attributes: { key: long(size) } })],
];

const pathsOf = (value: unknown) => checkEvent(value).map(({ path }) => path);

test.each(BOUNDS)("%s may be %d, and not one more", (path, limit, members) => {
  expect(pathsOf({ ...EVENT, ...members(limit) })).toEqual([]);
  expect(pathsOf({ ...EVENT, ...members(limit + 1) })).toEqual([path]);
});

test.each(BOUNDS.filter(([path]) => !/^attributes|url$/i.test(path)))(
  "%s is neither empty nor zero",
  (path, _, members) => {
    expect(pathsOf({ ...EVENT, ...members(0) })).toEqual([path]);
  },
);

describe("attributes", () => {
  test("have keys of 64 characters at most, and a value may be empty", () => {
    expect(checkEvent({ ...EVENT, attributes: { [long(64)]: "" } })).toEqual([]);
    expect(checkEvent({ ...EVENT, attributes: { [long(65)]: "v" } })).toHaveLength(1);
  });
});

test("counts of parcels and attempts begin at 1, and a message has 5 MiB at most", () => {
  const first = { parcel: { index: 1, total: 1 }, delivery: { attemptNumber: 1 } };
  expect(pathsOf({ ...EVENT, ...first })).toEqual([]);
  expect(BODY_LIMIT_BYTES).toBe(5_242_880);
});

test("an event has no member that the document does not name, on any level", () => {
  const nested = ["status", "location", "parcel", "reason", "delivery", "pickupPoint"];
  for (const member of [...nested, "trackingNumberChange"]) {
    const known = member === "status" ? EVENT.status : { newTrackingNumber: "N" };
    const own = /status|Change/.test(member) ? known : {};
    expect(checkEvent({ ...EVENT, [member]: own })).toEqual([]);
    expect(pathsOf({ ...EVENT, [member]: { ...own, surplus: 1 } })).toEqual([`${member}.surplus`]);
  }
  const window = { delivery: { estimatedDeliveryWindow: { surplus: 1 } } };
  expect(pathsOf({ ...EVENT, ...window })).toEqual(["delivery.estimatedDeliveryWindow.surplus"]);
  expect(pathsOf({ ...EVENT, surplus: 1 })).toEqual(["surplus"]);
});

test("an event names its parcel by number, or by order and account", () => {
  const { trackingNumber: _, ...rest } = EVENT;
  expect(pathsOf(rest)).toEqual(["trackingNumber"]);
  expect(pathsOf({ ...rest, senderAccount: "A" })).toEqual(["trackingNumber"]);
  expect(pathsOf({ ...rest, externalId: "O" })).toEqual(["senderAccount"]);
  expect(pathsOf({ ...rest, externalId: "O", senderAccount: "A" })).toEqual([]);
  expect(checkEscapedEvent(rest)).toEqual(checkEvent(rest));
});

describe("an envelope", () => {
  const envelope = (members: object = {}) => ({
    schemaVersion: "1.0",
    messageId: "m-1",
    sentAt: EVENT.occurredAt,
    courier: "GLS_ITA",
    events: [EVENT],
    ...members,
  });
  const faulty = (members: object) => checkEnvelope(envelope(members)).map(({ path }) => path);

  test("has one to 500 events and names of 128 and 64 characters at most", () => {
    expect(faulty({ events: Array(500).fill({}) })).toEqual([]);
    expect(faulty({ events: Array(501).fill({}) })).toEqual(["events"]);
    expect(faulty({ events: [] })).toEqual(["events"]);
    expect(faulty({ messageId: long(128), courier: long(64) })).toEqual([]);
    expect(faulty({ messageId: long(129) })).toEqual(["messageId"]);
    expect(faulty({ courier: long(65) })).toEqual(["courier"]);
    expect(faulty({ surplus: 1 })).toEqual([]);
  });

  test("is of the first major version, with any minor one", () => {
    const told = (schemaVersion: string) =>
      unsupportedVersion(envelope({ schemaVersion }) as Parameters<typeof unsupportedVersion>[0]);
    expect([told("1.0"), told("1.9999")]).toEqual([null, null]);
    expect([told("2.0"), told("11.0")].map((text) => text?.includes("supported: 1.0"))).toEqual([
      ...[true, true],
    ]);
  });

  test("holds no half of a surrogate pair in its names; its events are judged by themselves", () => {
    expect(checkEscapedEnvelope(envelope({ messageId: "\ud800" }))).toHaveLength(1);
    expect(checkEscapedEnvelope(envelope({ courier: "\ud800" }))).toHaveLength(1);
    expect(checkEscapedEnvelope(envelope({ events: ["\ud800"] }))).toEqual([]);
    expect(checkEscapedEnvelope(envelope({ events: [] }))).toHaveLength(1);
    expect(checkEscapedEvent({ ...EVENT, eventId: "\ud800" })).toHaveLength(1);
    expect(checkEscapedEvent(EVENT)).toEqual([]);
  });
});
