import { describe, expect, test } from "bun:test";
import {
  eventText,
  SAMPLE_FACT,
  SAMPLE_SHIPMENT,
  shipmentText,
  webhookPayload,
  webhookText,
} from "#core/webhooks/rules/webhook-payload.ts";

const event = {
  id: "evt_1",
  type: "shipment.updated" as const,
  createdAtMs: Date.UTC(2026, 6, 1, 10, 0, 0),
  trigger: "every_event" as const,
  fact: { ...SAMPLE_FACT, status: "EXCEPTION" as const, detail: 4 },
};

describe("document 3, Delivery payload", () => {
  test("the envelope has the document's members and no other", () => {
    const payload = webhookPayload(event, SAMPLE_SHIPMENT, false);
    expect(Object.keys(payload)).toEqual(["id", "type", "createdAt", "apiVersion", "data"]);
    expect(Object.keys(payload.data)).toEqual(["trigger", "shipment", "event"]);
    expect(payload).toMatchObject({ id: "evt_1", type: "shipment.updated", apiVersion: "2" });
  });

  test("createdAt carries the offset of the day it is", () => {
    expect(webhookPayload(event, SAMPLE_SHIPMENT, false).createdAt).toBe(
      "2026-07-01T12:00:00.000+02:00",
    );
    const winter = { ...event, createdAtMs: Date.UTC(2026, 0, 1, 10) };
    expect(webhookPayload(winter, SAMPLE_SHIPMENT, false).createdAt).toBe(
      "2026-01-01T11:00:00.000+01:00",
    );
  });

  test("data.event is shaped like a history item, its descriptions null", () => {
    expect(webhookPayload(event, SAMPLE_SHIPMENT, false).data.event).toEqual({
      date: "2026-01-15 10:30:00",
      courierStatus: "In transito",
      place: "Milano",
      status: null,
      statusCode: "EXCEPTION",
      statusDetail: null,
      statusDetailId: 4,
    });
  });

  test("as text it is the same, whatever the courier's words contain", () => {
    const fact = { ...event.fact, courierStatus: 'In "transito" \\ \u2028 \ud800', place: null };
    for (const withConsignee of [false, true]) {
      const shipment = shipmentText(SAMPLE_SHIPMENT, withConsignee);
      const text = webhookText(event, shipment, eventText(fact));
      const payload = webhookPayload({ ...event, fact }, SAMPLE_SHIPMENT, withConsignee);
      expect(text).toBe(JSON.stringify(payload));
    }
  });

  test("consignee is present only when included, and its shape does not change", () => {
    const { consignee, ...rest } = SAMPLE_SHIPMENT;
    expect(webhookPayload(event, SAMPLE_SHIPMENT, false).data.shipment).toEqual(rest as never);
    expect(webhookPayload(event, SAMPLE_SHIPMENT, true).data.shipment).toEqual({
      ...rest,
      consignee,
    });
  });
});
