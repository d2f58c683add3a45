import { describe, expect, test } from "bun:test";
import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import { webhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { SAMPLE_FACT } from "#core/webhooks/rules/webhook-sample.ts";

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

  test("the bytes that are signed stay the same from version to version", () => {
    const fact = { ...event.fact, courierStatus: 'In "transito" \\ \u2028 \ud800', place: null };
    const head = `{"id":"evt_1","type":"shipment.updated","createdAt":"2026-07-01T12:00:00.000+02:00","apiVersion":"2"`;
    const shipment = `"id":1,"channelId":1,"trackingNumber":"TEST0000000001","trackingUrl":null,"courier":"SAMPLE","courierName":"Sample courier","status":"IN_TRANSIT","statusDescription":"In transit","statusDetail":0,"statusDetailDescription":null,"statusDate":"2026-01-15 10:30:00","statusUpdatedAt":"2026-01-15 10:30:05","statusPlace":"Milano","shipDate":"2026-01-14","orderReference":"TEST-1001","platformOrderId":null,"orderDate":"2026-01-13","tag":null,"note":null,"origin":"test","isReturn":false,"monetary":{"totalValue":49.9,"codAmount":null,"shippingCost":5,"currency":"EUR"},"customAttributes":{"custom1":null,"custom2":null,"custom3":null}`;
    const consignee = `,"consignee":{"name":"Maria Bianchi","street":"Via Roma 1","city":"Milano","postcode":"20121","state":"MI","country":"IT","email":"maria.bianchi@example.com","phone":"+390200000000"}`;
    const item = `{"date":"2026-01-15 10:30:00","courierStatus":"In \\"transito\\" \\\\ \u2028 \\ud800","place":null,"status":null,"statusCode":"EXCEPTION","statusDetail":null,"statusDetailId":4}`;
    for (const included of [consignee, ""]) {
      const payload = webhookPayload({ ...event, fact }, SAMPLE_SHIPMENT, included !== "");
      expect(JSON.stringify(payload)).toBe(
        `${head},"data":{"trigger":"every_event","shipment":{${shipment}${included}},"event":${item}}}`,
      );
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
