/** The AsyncAPI 3 description of the webhooks that receivers get (document 3, "Receiver request"). */
import { WebhookPayload } from "#core/domain/webhooks/webhook-schema.ts";

const text = (description: string, example: string) => ({
  type: "string",
  description,
  examples: [example],
});

const SIGNATURE = `t=1795161600,v1=${"0123456789abcdef".repeat(4)}`;

const HEADERS = {
  "Content-Type": text("UTF-8", "application/json"),
  "User-Agent": text("the sender and its version", "Service-Webhooks/2"),
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

function message(name: string, summary: string) {
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
      allOf: [
        { $ref: "#/components/schemas/payload" },
        { type: "object", properties: { type: { const: name } } },
      ],
    },
    correlationId: { location: "$message.payload#/id" },
  };
}

export function webhookAsyncapi() {
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Waybill webhooks",
      version: "2",
      description:
        "One signed HTTPS POST per event to a receiver of the merchant. Any 2xx within 10 seconds is success; 408, 429, 5xx, timeouts and connection errors are tried again up to 8 times over about 22 hours; any other answer is final.",
    },
    defaultContentType: "application/json",
    channels: {
      receiver: {
        address: null,
        title: "The merchant's receiver",
        description: "The url of an endpoint of the channel",
        messages: {
          shipmentUpdated: { $ref: "#/components/messages/shipmentUpdated" },
          webhookTest: { $ref: "#/components/messages/webhookTest" },
        },
        bindings: { http: {} },
      },
    },
    operations: {
      deliver: {
        action: "send",
        channel: { $ref: "#/channels/receiver" },
        summary: "The service tells the merchant",
        messages: [
          { $ref: "#/channels/receiver/messages/shipmentUpdated" },
          { $ref: "#/channels/receiver/messages/webhookTest" },
        ],
        bindings: { http: { method: "POST", bindingVersion: "0.3.0" } },
      },
    },
    components: {
      messages: {
        shipmentUpdated: message("shipment.updated", "A shipment of the channel has changed"),
        webhookTest: message("webhook.test", "Sent on demand; no real update"),
      },
      schemas: { payload: WebhookPayload },
    },
  };
}
