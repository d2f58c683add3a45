/** A webhook in the JSON format of CloudEvents 1.0 (structured mode): the same data with the attributes of that specification. */
import type { WebhookPayload } from "./webhook-payload.ts";

interface CloudEvent {
  readonly specversion: "1.0";
  readonly id: string;
  /** With the id it identifies the event. */
  readonly source: string;
  readonly type: string;
  readonly subject: string;
  readonly time: string;
  readonly datacontenttype: "application/json";
  /** An extension, as `apiVersion` of the payload. */
  readonly apiversion: string;
  readonly data: WebhookPayload["data"];
}

/** A URI reference that names the channel. */
export function cloudEventSource(channelCode: string): string {
  return `/channels/${encodeURIComponent(channelCode)}`;
}

export function cloudEvent(
  { id, type, createdAt, apiVersion, data }: WebhookPayload,
  source: string,
): CloudEvent {
  return {
    specversion: "1.0",
    id,
    source,
    type,
    subject: `shipments/${data.shipment.id}`,
    time: createdAt,
    datacontenttype: "application/json",
    apiversion: apiVersion,
    data,
  };
}
