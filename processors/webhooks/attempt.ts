/** One attempt of a leased delivery: what is to be sent to whom, if anything, and what came of it. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Log } from "#core/platform/process/log.ts";
import { internalErrors } from "#core/platform/process/metrics.ts";
import { loadSignOf } from "#core/webhooks/rules/concurrency.ts";
import { V2_TOOK_OVER, v1ChannelId } from "#core/webhooks/rules/webhook-v1.ts";
import type { Finished } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";
import { DELETED_REASON, DISABLED_REASON } from "#core/webhooks/store/endpoints.ts";
import type { LatencyWatch } from "./latency-watch.ts";
import { postponed, type SendDeps, sendDelivery, sendV1Delivery, unsent } from "./send.ts";

export interface AttemptDeps extends SendDeps {
  readonly log: Log;
  readonly latency: LatencyWatch;
}

/** An internal error postpones the delivery; it never throws. */
export async function attempt(deps: AttemptDeps, leased: Leased): Promise<Finished> {
  try {
    const result = await handle(deps, leased, deps.live.configuration());
    if (result.attempt === null || result.attempt.httpStatus === null) return result;
    const { durationMs } = result.attempt;
    const isSlower = deps.latency.answered(leased.endpointId, durationMs, performance.now());
    return isSlower ? { ...result, sign: loadSignOf(result.attempt, true) } : result;
  } catch (error) {
    internalErrors.inc({ part: "webhooks" });
    const about = { err: error, delivery: leased.deliveryId, event: leased.eventId };
    deps.log.error(about, "a delivery could not be sent; it will be retried");
    return postponed(deps, leased);
  }
}

function handle(
  deps: AttemptDeps,
  leased: Leased,
  configuration: Configuration,
): Finished | Promise<Finished> {
  if (v1ChannelId(leased.endpointId) !== null) return handleV1(deps, leased, configuration);
  const endpoint = configuration.endpoints.get(leased.endpointId);
  if (!endpoint) return unsent(leased, DELETED_REASON);
  if (!endpoint.active) return unsent(leased, DISABLED_REASON);
  const shipment = leased.shipment();
  if (!shipment) return unsent(leased, "shipment gone");
  return sendDelivery(deps, leased, endpoint, shipment);
}

/** An endpoint of v2 that was made after the decision ends v1 at once (document 3, "Versioning"). */
function handleV1(
  deps: AttemptDeps,
  leased: Leased,
  { channels }: Configuration,
): Finished | Promise<Finished> {
  const { endpoints = [], webhookV1 = null } = channels.get(leased.channelId) ?? {};
  if (endpoints.length > 0) return unsent(leased, V2_TOOK_OVER);
  if (!webhookV1) return unsent(leased, "webhook v1 not configured");
  const shipment = leased.shipment();
  if (!shipment) return unsent(leased, "shipment gone");
  return sendV1Delivery(deps, leased, webhookV1, shipment);
}
