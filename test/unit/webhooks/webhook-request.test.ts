/** Document 3: what an endpoint may be given, what its requests consist of, and what answers of version 1 mean. */
import { describe, expect, test } from "bun:test";
import { faultsOfEndpoint, faultsOfPatch } from "#core/webhooks/rules/webhook-endpoint.ts";
import { targetKey, webhookHeaders } from "#core/webhooks/rules/webhook-request.ts";
import { v1MeaningOf } from "#core/webhooks/rules/webhook-v1.ts";

describe("an endpoint", () => {
  const faultsOf = (members: object) => {
    const whole = { url: "https://m.example/", alertEmail: "o@m.test", ...members };
    // Lists that are too long are cut.
    const faults = faultsOfEndpoint(structuredClone(whole));
    expect(faultsOfPatch(structuredClone(members))).toEqual(faults);
    return faults.map(({ path, code }) => `${path} ${code}`);
  };
  const times = <T>(count: number, item: T) => Array.from({ length: count }, () => item);

  test("has one kind of event", () => {
    expect(faultsOf({ events: ["shipment.updated"] })).toEqual([]);
    expect(faultsOf({ events: times(2, "shipment.updated") })).toEqual(["events TOO_MANY"]);
    expect(faultsOf({ events: [] })).toEqual(["events TOO_FEW"]);
  });

  test("names 100 statuses and includes 10 parts, no more", () => {
    expect(faultsOf({ statuses: times(100, "DELAY"), include: times(10, "consignee") })).toEqual(
      [],
    );
    expect(faultsOf({ statuses: times(101, "DELAY") })).toEqual(["statuses TOO_MANY"]);
    expect(faultsOf({ include: times(11, "consignee") })).toEqual(["include TOO_MANY"]);
  });
});

describe("a request", () => {
  const url = "https://m.example/hook";

  test("is found in the log by the key that earlier releases gave its target", () => {
    expect(targetKey({ url, standardWebhooks: false })).toBe("4JlhMS");
    expect(targetKey({ url, standardWebhooks: true })).toBe("LFJ-6p");
    expect(targetKey({ url, standardWebhooks: false, bodyFormat: "waybill" })).toBe("4JlhMS");
    const other = targetKey({ url, standardWebhooks: false, bodyFormat: "cloudevents" });
    expect(other).not.toBe("4JlhMS");
  });

  test("has the headers of Standard Webhooks where they are wanted, with whole seconds", () => {
    const facts = { eventId: "e", type: "t", attempt: 2, sentAtMs: 1_700_000_000_999 };
    const own = {
      "Content-Type": "application/json",
      "User-Agent": "Service-Webhooks/2",
      "Accept-Encoding": "identity",
      "X-Service-Event-Id": "e",
      "X-Service-Event-Type": "t",
      "X-Service-Delivery-Attempt": "2",
    };
    expect(webhookHeaders(facts, { standardWebhooks: false })).toEqual(own);
    const standard = { "webhook-id": "e", "webhook-timestamp": "1700000000" };
    expect(webhookHeaders(facts, { standardWebhooks: true })).toEqual({ ...own, ...standard });
  });
});

describe("an answer to version 1", () => {
  const meaning = (httpStatus: number, body: string | null) =>
    v1MeaningOf({ kind: "answered", httpStatus }, body, '{"result": "OK"}');

  test("is a delivery with 2xx and the acknowledgement, else it is tried again", () => {
    const acknowledged = [199, 200, 299, 300].map((status) => meaning(status, '{"result":"OK"}'));
    expect(acknowledged).toEqual(["retry", "delivered", "delivered", "retry"]);
    expect([meaning(200, "no"), meaning(200, null)]).toEqual(["retry", "retry"]);
  });

  test("that never came is tried again, but not where the address is not public", () => {
    expect(v1MeaningOf({ kind: "refused", error: "x" }, null, "")).toBe("failed");
    expect(v1MeaningOf({ kind: "unreachable", error: "x" }, null, "")).toBe("retry");
  });
});
