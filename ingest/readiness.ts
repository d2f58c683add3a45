/** Whether this port can serve anybody, beyond what every role needs of the store. */

import type { Courier } from "#core/configuration/store/configuration.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { courierRateKey } from "#core/platform/redis/keys.ts";
import { probeWrites } from "#core/platform/redis/probe.ts";
import { describeFailure } from "#core/platform/redis/store-unavailable.ts";

/** Couriers whose rates are looked at: of so many, some are in every part of a cluster. */
const COURIERS_PROBED = 16;

/**
 * Each request counts against the rate of its courier. Where the part of a cluster is away that holds the rates of all of them,
 * nobody can be served; where one of them can be, the port is ready.
 * @param couriers those of test mode, which have no number, send nothing
 * @returns null = it can
 */
export async function reasonNotReady(
  redis: Redis,
  couriers: readonly Pick<Courier, "code" | "number">[],
): Promise<string | null> {
  const senders = couriers.filter(({ number }) => number > 0).slice(0, COURIERS_PROBED);
  if (senders.length === 0) return null;
  const probes = senders.map(({ code }) => probeWrites(redis, [courierRateKey(code)]));
  return Promise.any(probes).then(
    () => null,
    ({ errors }: AggregateError) => [...new Set(errors.map(describeFailure))].join("; "),
  );
}
