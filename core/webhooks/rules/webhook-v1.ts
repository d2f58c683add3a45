/**
 * Webhooks v1, kept as they were (document 3, "Versioning"): one POST on a status change, unsigned, acknowledged by a fixed
 * body. A channel with any v2 endpoint, a disabled one included, sends none.
 *
 * | answer                                          | meaning                                                  |
 * |-------------------------------------------------|----------------------------------------------------------|
 * | 2xx with the configured acknowledgement         | delivered                                                |
 * | non-public address                              | failed                                                   |
 * | anything else, another body and 4xx included    | retry: the schedule and the 8 attempts are those of v2   |
 */

import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Answer, Meaning } from "./delivery-outcome.ts";
import type { FrozenFact } from "./webhook-payload.ts";

const PREFIX = "v1_";
/** Why a delivery of v1 fails that was still waiting when the channel got its first endpoint of v2. */
export const V2_TOOK_OVER = "webhooks v2 took over";

/** What stands for the v1 webhook of a channel where deliveries name their endpoint. */
export function v1EndpointId(channelId: number): string {
  return `${PREFIX}${channelId}`;
}

/** Null when the id is that of a v2 endpoint. */
export function v1ChannelId(endpointId: string): number | null {
  return endpointId.startsWith(PREFIX) ? Number(endpointId.slice(PREFIX.length)) : null;
}

export interface V1Shipment {
  readonly trackingNumber: string;
  readonly courier: string;
  readonly orderReference?: string | undefined;
}

/** The fact that changed the status, frozen like that of v2. */
export function v1Payload(shipment: V1Shipment, fact: FrozenFact) {
  return {
    trackingNumber: shipment.trackingNumber,
    courier: shipment.courier,
    reference: shipment.orderReference ?? null,
    status: fact.status,
    statusDetail: fact.detail,
    date: romeDateTime(fact.occurredAtMs),
    place: fact.place,
  };
}

/** @param body what the receiver answered with */
export function v1MeaningOf(answer: Answer, body: string | null, acknowledgement: string): Meaning {
  if (answer.kind === "refused") return "failed";
  if (answer.kind === "unreachable") return "retry";
  const isSuccess = answer.httpStatus >= 200 && answer.httpStatus <= 299;
  return isSuccess && isSameText(body ?? "", acknowledgement) ? "delivered" : "retry";
}

/** The same text, or the same JSON: white space between its members does not count. */
function isSameText(one: string, other: string): boolean {
  return normalized(one) === normalized(other);
}

function normalized(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text.trim();
  }
}
