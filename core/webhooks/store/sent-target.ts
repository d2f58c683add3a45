/** Where a request went: the delivery log keeps only a key of its target (document 3, "Delivery"). */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import {
  type SentRequest,
  targetKey,
  type WebhookTarget,
} from "#core/webhooks/rules/webhook-request.ts";
import { v1ChannelId } from "#core/webhooks/rules/webhook-v1.ts";

/** Where requests of an endpoint, or of a channel's webhook v1, go now and went before; the present one first. */
export function targetsOf(
  endpointId: string,
  { endpoints, channels }: Configuration,
): readonly WebhookTarget[] {
  const v1Channel = v1ChannelId(endpointId);
  if (v1Channel !== null) {
    const v1 = channels.get(v1Channel)?.webhookV1;
    return v1 ? [{ url: v1.url, standardWebhooks: false }] : [];
  }
  const endpoint = endpoints.get(endpointId);
  return endpoint ? [endpoint, ...endpoint.earlierTargets] : [];
}

/** Null when the target is no longer known. */
export function targetOf(
  endpointId: string,
  request: SentRequest,
  configuration: Configuration,
): WebhookTarget | null {
  const targets = targetsOf(endpointId, configuration);
  return targets.find((one) => targetKey(one) === request.target) ?? null;
}
