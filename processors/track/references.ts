/**
 * Repeats the registration of created shipments, so that a crash cannot leave one that no courier event finds; then releases
 * what was parked under a reference of theirs after an event had come by another one.
 */

import type { Failure, Handler } from "#core/platform/log/consumer.ts";
import { decodeChangeEntry, isChange } from "#core/shipments/store/change-log.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { releaseParked, type TrackDeps } from "./track.ts";

/** For the group `references` of the change log. */
export function referencesHandler(deps: TrackDeps): Handler {
  const { redis, live } = deps;
  return async (entries) => {
    const failures: Failure[] = [];
    const created: number[] = [];
    for (const entry of entries) {
      try {
        if (isChange(entry.fields)) continue;
        created.push(decodeChangeEntry(entry.fields).shipmentId);
      } catch (error) {
        failures.push({ entry, reason: (error as Error).message });
      }
    }
    if (created.length === 0) return failures;
    const early = await registerShipments(redis, await live.refresh(), created);
    await releaseParked(deps, early);
    return failures;
  };
}
