/** Matches events with the shipments they mean: one rule for fresh events and for those that were parked. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { happenedAtMs } from "#core/events/rules/fact.ts";
import {
  type Candidate,
  type Match,
  matchReference,
  mayHaveEnded,
  withoutEnded,
} from "#core/events/rules/match-reference.ts";
import type { Candidates, OwnReferences } from "#core/events/store/references.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Reference } from "#core/platform/redis/keys.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { readHotShipments } from "./shipments.ts";

export interface MatchDeps {
  readonly redis: Redis;
  readonly configuration: Configuration;
}

/** An event and the references that it names. */
export interface Referring extends OwnReferences {
  readonly event: CourierEvent;
}

/** Shipments whose states are unpacked in one go, about 5 ms; almost always all of a message. */
const READ_AT_ONCE = 200;

/** When shipments ended, as far as they have been read; filled on the way. */
export type ReadEnds = Map<number, number | null>;

/**
 * Matches in the order of the events. Shipments are read only where one that was shipped more than 90 days before the event
 * shares its number with another.
 * @param candidates of all references of the events
 * @param ends kept where the same events are matched again
 */
export async function matchEvents(
  { redis, configuration }: MatchDeps,
  courier: string,
  events: readonly Referring[],
  candidates: Candidates,
  ends: ReadEnds = new Map(),
): Promise<Match[]> {
  const accountsOf = (channelId: number) =>
    configuration.channels.get(channelId)?.couriers.get(courier)?.senderAccounts ?? [];
  const { channels } = configuration;
  const matches = events.map(({ event, byNumber, byExternal }) =>
    matchReference(
      event,
      withCompany(candidatesOf(candidates, byNumber), channels),
      candidatesOf(candidates, byExternal),
      accountsOf,
    ),
  );
  const old = events.flatMap(({ event }, at) => oldCandidates(event, matches[at]));
  if (old.length === 0) return matches;
  await readEnds(redis, old, ends);
  return events.map(({ event }, at): Match => {
    const match = matches[at] ?? { kind: "none" };
    if (match.kind !== "found") return match;
    const left = withoutEnded(match.candidates, instantOf(event.occurredAt), ends);
    return { kind: "found", candidates: left };
  });
}

const NOBODY: readonly Candidate[] = [];

function candidatesOf(candidates: Candidates, reference: Reference | null): readonly Candidate[] {
  return (reference && candidates.get(reference.key)) ?? NOBODY;
}

/** The reference of an archived shipment names its channel alone. */
function withCompany(
  candidates: readonly Candidate[],
  channels: Configuration["channels"],
): readonly Candidate[] {
  if (!candidates.some(({ archived }) => archived)) return candidates;
  return candidates.map((candidate) => {
    const companyId = channels.get(candidate.channelId)?.companyId;
    return candidate.archived && companyId !== undefined ? { ...candidate, companyId } : candidate;
  });
}

function oldCandidates(event: CourierEvent, match: Match | undefined): readonly Candidate[] {
  if (match?.kind !== "found" || match.candidates.length < 2) return NOBODY;
  return mayHaveEnded(match.candidates, instantOf(event.occurredAt));
}

/**
 * A shipment ended when its current status is terminal: when the fact that says so happened. Of one that Redis does not have,
 * its reference tells.
 */
async function readEnds(redis: Redis, old: readonly Candidate[], ends: ReadEnds): Promise<void> {
  const ids = new Set(old.map(({ shipmentId }) => shipmentId));
  const archived = new Map(old.map(({ shipmentId, archived }) => [shipmentId, archived]));
  const unread = [...ids].filter((id) => !ends.has(id));
  for (const part of chunks(unread, READ_AT_ONCE)) {
    const shipments = await readHotShipments(redis, part);
    for (const id of part) {
      const hot = shipments.get(id);
      const by = hot?.state.mapped?.by;
      const archivedEnd = archived.get(id)?.endedAtMs ?? null;
      ends.set(id, hot ? (by?.terminal ? happenedAtMs(by) : null) : archivedEnd);
    }
  }
}
