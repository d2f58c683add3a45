/** What the configuration says of an endpoint that deliveries are leased for. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { DEFAULT_MAX_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import { v1ChannelId } from "#core/webhooks/rules/webhook-v1.ts";
import type { EndpointTerms } from "#core/webhooks/store/deliveries/leases.ts";

/** Endpoints that are gone have the default: their deliveries are leased to fail. */
const NO_COMPANY = 0;

export function endpointTerms(
  { endpoints, channels }: Configuration,
  endpointId: string,
): EndpointTerms {
  const endpoint = endpoints.get(endpointId);
  const channelId = endpoint?.channelId ?? v1ChannelId(endpointId) ?? 0;
  const { maxConcurrency = DEFAULT_MAX_CONCURRENCY, maxPerSecond = null } = endpoint ?? {};
  return {
    companyId: channels.get(channelId)?.companyId ?? NO_COMPANY,
    most: maxConcurrency,
    // A limit that a merchant has set holds for an endpoint that answers nothing, too.
    mostInAll: maxConcurrency < DEFAULT_MAX_CONCURRENCY ? maxConcurrency : null,
    maxPerSecond,
  };
}
