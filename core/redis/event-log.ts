/** The event log: courier events that were answered ACCEPTED, until track has applied them. */
import type { CourierEvent } from "#core/domain/event.ts";
import { perPartition, type Redis, run, script } from "./client.ts";
import { eventKeys, PARTITIONS } from "./keys.ts";
import claimSource from "./scripts/claim.lua" with { type: "text" };
import rememberSource from "./scripts/remember.lua" with { type: "text" };
import { bucketKeys, SEEN_TTL_SECONDS, type SeenLayout, type SeenPlace } from "./seen.ts";

const claimScript = script(claimSource);
const rememberScript = script(rememberSource);

/** A script call of 500 events would hold Redis for 3 to 9 ms; 100 hold it for less than 2. */
const CLAIMS_PER_CALL = 100;

/** An accepted event on its way to its shipment. */
export interface LoggedEvent {
  readonly shipmentId: number;
  readonly courier: string;
  readonly factKey: string;
  readonly receivedAtMs: number;
  /** Position in its message. */
  readonly place: number;
  readonly event: CourierEvent;
}

export function encodeLoggedEvent(logged: LoggedEvent): string {
  const { shipmentId, courier, factKey, receivedAtMs, place, event } = logged;
  return JSON.stringify([shipmentId, courier, factKey, receivedAtMs, place, event]);
}

/** @throws SyntaxError when the entry is not one of ours. */
export function decodeLoggedEvent(text: string): LoggedEvent {
  const [shipmentId, courier, factKey, receivedAtMs, place, event] = JSON.parse(text);
  return { shipmentId, courier, factKey, receivedAtMs, place, event };
}

export interface Claim {
  readonly seen: SeenPlace;
  /** Null only asks whether the eventId is known. */
  readonly entry: string | null;
}

export type ClaimOutcome = "claimed" | "known" | "not_known" | "log_full";
const OUTCOMES: readonly ClaimOutcome[] = ["known", "claimed", "not_known"];

/**
 * Claims eventIds and appends their entries, one script call a touched partition (and 100 events); outcomes in the
 * order given. Claims of one id are judged in that order too.
 */
export function claimEvents(
  redis: Redis,
  layout: SeenLayout,
  highWater: number,
  claims: readonly Claim[],
  courier: string,
): Promise<ClaimOutcome[]> {
  const perLog = Math.ceil(highWater / PARTITIONS);
  return callClaim(redis, layout, claims, [String(perLog), courier]);
}

/** Which eventIds are known: "known" or "not_known" each, in the order given. */
export function lookUpEvents(
  redis: Redis,
  layout: SeenLayout,
  places: readonly SeenPlace[],
): Promise<ClaimOutcome[]> {
  const looks = places.map((seen) => ({ seen, entry: null }));
  return callClaim(redis, layout, looks, [String(Number.MAX_SAFE_INTEGER), ""]);
}

async function callClaim(
  redis: Redis,
  layout: SeenLayout,
  claims: readonly Claim[],
  [highWater, counted]: readonly [string, string],
): Promise<ClaimOutcome[]> {
  const outcomes: ClaimOutcome[] = new Array(claims.length);
  const indexed = claims.map((claim, at) => ({ ...claim, at }));
  const groups = Map.groupBy(indexed, ({ seen }) => seen.partition);
  const generations = String(layout.generations.length);
  const head = [highWater, String(SEEN_TTL_SECONDS), generations, counted];
  await perPartition(groups, async (partition, group) => {
    const { log, ledger } = eventKeys(partition);
    for (let from = 0; from < group.length; from += CLAIMS_PER_CALL) {
      const part = group.slice(from, from + CLAIMS_PER_CALL);
      const keys = [log, ledger, ...part.flatMap(({ seen }) => bucketKeys(layout, seen))];
      const args = part.flatMap(({ seen, entry }) => [seen.member, entry ?? ""]);
      const reply = await run<number[]>(redis, claimScript, keys, [...head, ...args]);
      part.forEach(({ at }, position) => {
        const code = reply[position];
        outcomes[at] = code === undefined ? "log_full" : (OUTCOMES[code] ?? "known");
      });
    }
  });
  return outcomes;
}

/** Takes the eventIds of set-aside events once they are applied, so that a resend is a DUPLICATE. */
export async function rememberEvents(
  redis: Redis,
  layout: SeenLayout,
  places: readonly SeenPlace[],
): Promise<void> {
  await perPartition(
    Map.groupBy(places, ({ partition }) => partition),
    (_, group) => {
      const keys = group.flatMap((place) => bucketKeys(layout, place).slice(0, 1));
      const members = group.map(({ member }) => member);
      return run(redis, rememberScript, keys, [String(SEEN_TTL_SECONDS), ...members]);
    },
  );
}
