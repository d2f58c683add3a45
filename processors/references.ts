/** Repeats the registration of created shipments, so that a crash cannot leave one that no carrier event finds. */
import { decodeChangeEntry, isChange } from "#core/redis/change-log.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Failure, Handler } from "#core/redis/consumer.ts";
import type { Live } from "#core/redis/live.ts";
import { registerShipments } from "#core/redis/register-shipments.ts";

export interface ReferencesDeps {
  readonly redis: Redis;
  readonly live: Live;
}

/** For the group `references` of the change log. */
export function referencesHandler({ redis, live }: ReferencesDeps): Handler {
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
    if (created.length > 0) await registerShipments(redis, await live.refresh(), created);
    return failures;
  };
}
