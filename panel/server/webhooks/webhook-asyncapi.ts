/** The AsyncAPI 3 description of the webhooks that receivers get (document 3, "Receiver request"). */
import { type Static, Type } from "@sinclair/typebox";
import { publishedSchema } from "#core/platform/schema/published-schema.ts";
import { ImportResult } from "#core/shipments/rules/import-result.ts";
import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import {
  type WebhookEvent,
  WebhookPayload,
  webhookPayload,
} from "#core/webhooks/rules/webhook-payload.ts";
import { SAMPLE_FACT } from "#core/webhooks/rules/webhook-sample.ts";

const text = (description: string, example: string) => ({
  type: "string",
  description,
  examples: [example],
});

export const EXAMPLE_SECRET = `whsec_${"0123456789abcdef".repeat(4)}`;
const EXAMPLE_AT_MS = 1_795_161_600_000;
const SIGNATURE = sign([EXAMPLE_SECRET], "{}", EXAMPLE_AT_MS);

export const SIGNATURE_SCHEME =
  "`X-Service-Signature` is `t=<unix seconds>,v1=<hex>`. `v1` is the HMAC-SHA256, in lowercase hex, of the text `<t>.<raw body>`, keyed with the endpoint's secret exactly as it was shown, `whsec_` included. For 24 hours after a rotation there are two `v1` values, one per secret: it is enough if one matches. Reject a `t` that differs from your clock by more than 5 minutes, and compare in constant time.";

const HEADERS = {
  "Content-Type": text("UTF-8", "application/json"),
  "User-Agent": text("the sender and its version", "Service-Webhooks/2"),
  "Accept-Encoding": text("an answer is read as it is", "identity"),
  "X-Service-Event-Id": text("equals id in the body", "evt_0123456789abcdef0123456789abcdef"),
  "X-Service-Event-Type": text("equals type in the body", "shipment.updated"),
  "X-Service-Delivery-Attempt": text("from 1; from 1 again after a replay", "1"),
  "X-Service-Signature": text("one v1 a secret, two during a rotation", SIGNATURE),
};

const STANDARD_HEADERS = {
  "webhook-id": text("Standard Webhooks, where the endpoint asks for it", "evt_0123"),
  "webhook-timestamp": text("Standard Webhooks: Unix seconds", "1795161600"),
  "webhook-signature": text(
    "Standard Webhooks: one value a secret",
    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN=",
  ),
};

function eventPayload(type: WebhookEvent["type"], id: string) {
  const event: WebhookEvent = {
    id,
    type,
    createdAtMs: EXAMPLE_AT_MS,
    trigger: "every_event",
    fact: SAMPLE_FACT,
  };
  return webhookPayload(event, SAMPLE_SHIPMENT, true);
}

/** The signature is that of the payload as compact JSON. */
function example(type: string, id: string, payload: object) {
  return {
    name: type,
    summary: `Signed with the secret ${EXAMPLE_SECRET} over the payload as compact JSON`,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": "Service-Webhooks/2",
      "Accept-Encoding": "identity",
      "X-Service-Event-Id": id,
      "X-Service-Event-Type": type,
      "X-Service-Delivery-Attempt": "1",
      "X-Service-Signature": sign([EXAMPLE_SECRET], JSON.stringify(payload), EXAMPLE_AT_MS),
    },
    payload,
  };
}

function message(name: string, summary: string, id: string, schema: string, payload: object) {
  return {
    name,
    title: name,
    summary,
    contentType: "application/json",
    headers: {
      type: "object",
      properties: { ...HEADERS, ...STANDARD_HEADERS },
      required: Object.keys(HEADERS),
    },
    payload: {
      $ref: `#/components/schemas/${schema}`,
    },
    correlationId: { location: "$message.header#/X-Service-Event-Id" },
    examples: [example(name, id, payload)],
  };
}

function eventMessage(type: WebhookEvent["type"], summary: string, id: string) {
  return message(type, summary, id, "payload", eventPayload(type, id));
}

const ImportCallback = Type.Object({
  jobId: Type.String(),
  status: Type.Union([Type.Literal("completed"), Type.Literal("failed")]),
  result: Type.Union([ImportResult, Type.Null()], { description: "as the job has it" }),
});

const IMPORT_CALLBACK: Static<typeof ImportCallback> = {
  jobId: "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
  status: "completed",
  result: {
    summary: { totalRequested: 1, totalSuccess: 1, totalFailed: 0 },
    successes: [{ index: 0, id: 4096, trackingNumber: "TN0001", trackingUrl: null }],
    errors: [],
  },
};

export function webhookAsyncapi() {
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Waybill webhooks",
      version: "2",
      description: `One signed HTTPS POST per event to a receiver of the merchant. Any 2xx within 10 seconds is success; 408, 429, 5xx, timeouts and connection errors are tried again up to 8 times over about 22 hours; any other answer is final. ${SIGNATURE_SCHEME}`,
    },
    defaultContentType: "application/json",
    channels: {
      receiver: {
        title: "The merchant's receiver",
        description: "The url of an endpoint of the channel",
        messages: {
          shipmentUpdated: { $ref: "#/components/messages/shipmentUpdated" },
          webhookTest: { $ref: "#/components/messages/webhookTest" },
        },
        bindings: { http: {} },
      },
      importCallback: {
        title: "The merchant's receiver of import callbacks",
        description: "The webhookUrl of POST /v2/shipments/import",
        messages: { importFinished: { $ref: "#/components/messages/importFinished" } },
        bindings: { http: {} },
      },
    },
    operations: {
      deliver: {
        action: "send",
        security: [{ $ref: "#/components/securitySchemes/signature" }],
        channel: { $ref: "#/channels/receiver" },
        summary: "The service tells the merchant",
        messages: [
          { $ref: "#/channels/receiver/messages/shipmentUpdated" },
          { $ref: "#/channels/receiver/messages/webhookTest" },
        ],
        bindings: { http: { method: "POST", bindingVersion: "0.3.0" } },
      },
      callBack: {
        action: "send",
        security: [{ $ref: "#/components/securitySchemes/signature" }],
        channel: { $ref: "#/channels/importCallback" },
        summary: "The service says that an import has ended; sent once, and not retried",
        messages: [{ $ref: "#/channels/importCallback/messages/importFinished" }],
        bindings: { http: { method: "POST", bindingVersion: "0.3.0" } },
      },
    },
    components: {
      securitySchemes: {
        signature: {
          type: "httpApiKey",
          in: "header",
          name: "X-Service-Signature",
          description: SIGNATURE_SCHEME,
        },
      },
      messages: {
        shipmentUpdated: eventMessage(
          "shipment.updated",
          "A shipment of the channel has changed",
          "evt_0123456789abcdef0123456789abcdef",
        ),
        webhookTest: eventMessage(
          "webhook.test",
          "Sent on demand; no real update",
          "evt_test_0123456789abcdef0123456789abcdef",
        ),
        importFinished: message(
          "import.finished",
          "An import with a webhookUrl has ended",
          IMPORT_CALLBACK.jobId,
          "importCallback",
          IMPORT_CALLBACK,
        ),
      },
      schemas: {
        payload: publishedSchema(WebhookPayload),
        importCallback: publishedSchema(ImportCallback),
      },
    },
  };
}
