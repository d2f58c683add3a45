/**
 * Stock releases of test mode: no courier is called, and the parcel lives on as the merchant has asked. Notes that begin with
 * `TEST_REFUSED`, `TEST_ERROR`, `TEST_UNREACHABLE` or `TEST_UNREADABLE` are answered so.
 */

import { beginReleasedLife } from "#core/merchants/store/test-parcels.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { DEFERRED_TEST_COURIER } from "#core/shipments/rules/test-parcel.ts";
import type { ReleaseAnswer, ReleaseCarrier } from "./release-carrier.ts";

const MOODS: ReadonlyArray<readonly [start: string, answer: ReleaseAnswer]> = [
  ["TEST_REFUSED", { kind: "refused", message: "The test courier refuses this release." }],
  ["TEST_ERROR", { kind: "accepted", outcome: "error", message: "The parcel is not here." }],
  ["TEST_UNREACHABLE", { kind: "unreachable" }],
  ["TEST_UNREADABLE", { kind: "unreadable" }],
];

export function testReleaseCarrier(
  redis: Redis,
  { id, courier }: { readonly id: number; readonly courier: string },
  askedAtMs: number,
): NonNullable<ReleaseCarrier> {
  return async ({ releaseId, action, notes }) => {
    const mood = MOODS.find(([start]) => notes?.startsWith(start))?.[1];
    if (mood) return mood;
    await beginReleasedLife(redis, id, { releaseId, action, beganMs: askedAtMs });
    const outcome = courier === DEFERRED_TEST_COURIER ? "pending" : "ok";
    return { kind: "accepted", outcome, message: null };
  };
}
