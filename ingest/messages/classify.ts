/**
 * Classifies the events of a message in send order: schema (INVALID), known id (DUPLICATE), reference (UNKNOWN_TRACKING),
 * else ACCEPTED. Two round trips whatever the number of events: one resolves every reference, one claims the ids and
 * appends to the event log; messages that come together share them. Further ones only where events are parked, where a
 * number has been used again, and where a number changes.
 */

import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import { minimalEvent, withoutPersonalData } from "#core/events/rules/fact.ts";
import { areOfOneCompany, type Candidate, type Match } from "#core/events/rules/match-reference.ts";
import {
  type ClaimOutcome,
  encodeLoggedEvent,
  lookUpEvents,
} from "#core/events/store/event-log.ts";
import { dropParked, type ParkOutcome, parkEvents } from "#core/events/store/parked.ts";
import {
  type Candidates,
  fingerprintOf,
  hasCapacity,
  listed,
  registerReferences,
} from "#core/events/store/references.ts";
import type { SeenLayout } from "#core/events/store/seen.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { nextTurn, turns } from "#core/platform/process/next-turn.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { type Reference, trackingReference } from "#core/platform/redis/keys.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { matchEvents, type ReadEnds } from "#core/shipments/store/match-events.ts";
import type { Intake } from "./intake.ts";
import {
  announces,
  type Candidacy,
  type Checked,
  checkMessage,
  type Invalid,
  type Message,
  type Prepared,
} from "./prepare.ts";

export type Outcome = "ACCEPTED" | "DUPLICATE" | "UNKNOWN_TRACKING" | "INVALID";

export interface Classified {
  readonly eventId: string | null;
  readonly outcome: Outcome;
  /** Of an INVALID event. */
  readonly errors?: readonly Fault[];
}

/** Why a valid event is UNKNOWN_TRACKING. */
export type UnmatchedKind = Exclude<Match["kind"], "found">;

export interface ClassifyDeps {
  readonly redis: Redis;
  readonly intake: Intake;
  readonly configuration: Configuration;
  readonly layout: SeenLayout;
  readonly messageId: string;
  /** Of the request's sampled trace, which its events carry on. */
  readonly traceparent?: string | undefined;
  /** Called with the reason why the event at an index of the message has no shipment. */
  readonly onUnmatched: (messageIndex: number, why: UnmatchedKind) => void;
  /** Counts UNKNOWN_TRACKING that is a mismatch, or an externalId of several shipments. */
  readonly onAmbiguous: (count: number) => void;
  /** Counts UNKNOWN_TRACKING that a limit of the store of parked events kept out, or that displaced an older event. */
  readonly onNotParked: (count: number) => void;
}

const RETRY_AFTER_SECONDS = "5";
/** Times that events are classified whose references go on changing while they are being parked. */
export const PASSES = limit(
  5,
  "times that events are classified while their references keep changing",
  "503 with `Retry-After`",
);

/** An event that matches no shipment. */
interface Unmatched {
  readonly candidacy: Candidacy;
  /** What each of its references held when it was looked up (`fingerprintOf`). */
  readonly fingerprints: readonly string[];
}

/**
 * @returns one result per event, in send order
 * @throws {Problem} 503 when the event log is over its mark, or references change faster than events can be parked; what
 *   was claimed until then is a DUPLICATE on retry
 */
export async function classify(
  deps: ClassifyDeps,
  courier: Courier,
  { size, first, others, candidates }: Prepared,
  receivedAtMs: number,
): Promise<Classified[]> {
  const results: Classified[] = new Array(size);
  const known = await candidates();
  const parts = [classifyPart(deps, courier, first, known, receivedAtMs, results)];
  for (const check of others) {
    await nextTurn();
    parts.push(classifyPart(deps, courier, await check(), known, receivedAtMs, results));
  }
  let unmatched = (await Promise.all(parts))
    .flat()
    .sort((one, other) => one.candidacy.messageIndex - other.candidacy.messageIndex);
  for (let pass = 1; unmatched.length > 0; pass += 1) {
    const open = await park(deps, unmatched, receivedAtMs);
    if (open.length === 0) break;
    if (pass === PASSES) throw referencesBusy();
    const found = await deps.intake.resolve(open.flatMap(listed));
    unmatched = await classifyValid(deps, courier, open, found, receivedAtMs, results);
    await takeBack(deps.redis, open, unmatched);
  }
  return results;
}

/** @returns events to be parked; its error is for `classify` to throw, with those of the other parts */
function classifyPart(
  deps: ClassifyDeps,
  courier: Courier,
  { open, invalid }: Checked,
  candidates: Candidates,
  receivedAtMs: number,
  results: Classified[],
): Promise<Unmatched[]> {
  reportInvalid(results, invalid);
  const unmatched = classifyValid(deps, courier, open, candidates, receivedAtMs, results);
  unmatched.catch(() => {});
  return unmatched;
}

/**
 * Classifies valid events.
 * @returns those to be parked
 */
async function classifyValid(
  deps: ClassifyDeps,
  courier: Courier,
  open: readonly Candidacy[],
  candidates: Candidates,
  receivedAtMs: number,
  results: Classified[],
): Promise<Unmatched[]> {
  if (open.length === 0) return [];
  const matches = open.some(({ event }) => announces(event))
    ? await matchAnnounced(deps, courier, open, candidates)
    : await matchEvents(deps, courier.code, open, candidates);
  const outcomes = await claim(deps, courier, open, matches, receivedAtMs);
  await registerAnnounced(deps.redis, courier, open, matches, outcomes, candidates);
  deps.onAmbiguous(
    matches.filter(({ kind }) => kind === "ambiguous" || kind === "mismatch").length,
  );
  return open.flatMap((candidacy, at): Unmatched[] => {
    results[candidacy.messageIndex] = classified(candidacy, outcomes[at]);
    const kind = matches[at]?.kind;
    if (outcomes[at] === "not_known" && kind && kind !== "found") {
      deps.onUnmatched(candidacy.messageIndex, kind);
    }
    if (outcomes[at] !== "not_known" || kind === "found" || kind === "ambiguous") return [];
    const fingerprints = listed(candidacy).map(({ key }) => fingerprintOf(candidates.get(key)));
    return [{ candidacy, fingerprints }];
  });
}

/**
 * The classification of `POST /v1/events/validate`: stores nothing and needs no known parcels, so the outcomes are ACCEPTED,
 * DUPLICATE and INVALID.
 */
export async function validate(
  { redis, layout }: Pick<ClassifyDeps, "redis" | "layout">,
  courier: Courier,
  message: Message,
): Promise<Classified[]> {
  const results: Classified[] = new Array(message.events.length);
  const { open, invalid } = await checkMessage(courier, message);
  reportInvalid(results, invalid);
  const buckets = open.map(({ seen }) => seen);
  const outcomes = await lookUpEvents(redis, layout, buckets);
  const taken = new Set<string>();
  open.forEach(({ messageIndex, event: { eventId } }, at) => {
    const isKnown = outcomes[at] === "known" || taken.has(eventId);
    taken.add(eventId);
    results[messageIndex] = { eventId, outcome: isKnown ? "DUPLICATE" : "ACCEPTED" };
  });
  return results;
}

function reportInvalid(results: Classified[], invalid: readonly Invalid[]): void {
  for (const { messageIndex, event, errors } of invalid) {
    results[messageIndex] = { eventId: eventIdOf(event), outcome: "INVALID", errors };
  }
}

export function classified(
  { event: { eventId } }: Candidacy,
  outcome: ClaimOutcome | undefined,
): Classified {
  switch (outcome) {
    case "claimed":
      return { eventId, outcome: "ACCEPTED" };
    case "known":
      return { eventId, outcome: "DUPLICATE" };
    case "not_known":
      return { eventId, outcome: "UNKNOWN_TRACKING" };
    default:
      throw logFull();
  }
}

/** A log is at its high-water mark: 503 until its readers have caught up. */
export function logFull(): Problem {
  return new Problem(503, "LOG_FULL", "The event log is full; retry later.", {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}

/** Each time it was looked at, a reference had been registered since it was read. */
function referencesBusy(): Problem {
  const detail = "Shipments of this message are being registered; retry later.";
  return new Problem(503, "REFERENCES_BUSY", detail, {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}

function eventIdOf(event: unknown): string | null {
  const id = (event as { eventId?: unknown } | null)?.eventId;
  return typeof id === "string" ? id : null;
}

/**
 * Matches events some of which announce a new tracking number. It counts for the other events of the message too (data
 * rule 1), which may announce another one; what a DUPLICATE announces does not count. A number finds no more shipments within
 * the message than in the store: 500 numbers that announce each other would be 250,000 facts.
 */
async function matchAnnounced(
  deps: ClassifyDeps,
  courier: Courier,
  open: readonly Candidacy[],
  resolved: Candidates,
): Promise<Match[]> {
  const candidates = new Map(resolved);
  const ends: ReadEnds = new Map();
  const announcing = await newAnnouncements(deps, open);
  const turn = turns();
  let pending = announcing;
  while (pending.length > 0) {
    if (turn.due()) await turn.take();
    const matches = await matchEvents(deps, courier.code, pending, candidates, ends);
    const changed = new Set<string>();
    pending.forEach((one, at) => {
      for (const { key, candidate } of announcedBy(courier, one, matches[at], candidates)) {
        const known = candidates.get(key) ?? [];
        if (!hasCapacity(known, candidate)) continue;
        candidates.set(key, [...known, candidate]);
        changed.add(key);
      }
    });
    pending = announcing.filter((one) => listed(one).some(({ key }) => changed.has(key)));
  }
  return matchEvents(deps, courier.code, open, candidates, ends);
}

/** Those whose eventId neither the store nor an earlier event of the message has. */
async function newAnnouncements(
  { redis, layout }: ClassifyDeps,
  open: readonly Candidacy[],
): Promise<Candidacy[]> {
  const ids = new Set<string>();
  const announcing = open.filter(({ event }) => {
    const isFirst = !ids.has(event.eventId);
    ids.add(event.eventId);
    return isFirst && announces(event);
  });
  const buckets = announcing.map(({ seen }) => seen);
  const outcomes = await lookUpEvents(redis, layout, buckets);
  return announcing.filter((_, at) => outcomes[at] === "not_known");
}

interface Announced extends Reference {
  readonly candidate: Candidate;
}

/** The shipments that are to be found by the number that an event announces, and are not yet. */
function announcedBy(
  { code }: Courier,
  { event }: Candidacy,
  match: Match | undefined,
  known: Candidates,
): Announced[] {
  const number = event.trackingNumberChange?.newTrackingNumber;
  if (number === undefined || match?.kind !== "found") return [];
  const reference = trackingReference(code, number);
  const ids = new Set(known.get(reference.key)?.map(({ shipmentId }) => shipmentId));
  return match.candidates
    .filter(({ shipmentId }) => !ids.has(shipmentId))
    .map((candidate) => ({ ...reference, candidate }));
}

/**
 * From the next message on the new numbers find the shipments: registered after the claim, since a DUPLICATE registers
 * nothing, and before the answer. Where a crash comes between, track registers them from the log.
 */
async function registerAnnounced(
  redis: Redis,
  courier: Courier,
  open: readonly Candidacy[],
  matches: readonly Match[],
  outcomes: readonly ClaimOutcome[],
  known: Candidates,
): Promise<void> {
  const registrations = open.flatMap((one, at) => {
    if (outcomes[at] !== "claimed") return [];
    return announcedBy(courier, one, matches[at], known).map(({ candidate, ...reference }) => ({
      ...candidate,
      reference,
    }));
  });
  if (registrations.length > 0) await registerReferences(redis, registrations);
}

/** Claims the ids of matched events and appends them; of the others it only asks whether the id is known. */
function claim(
  { intake, layout, messageId, traceparent }: ClassifyDeps,
  courier: Courier,
  open: readonly Candidacy[],
  matches: readonly Match[],
  receivedAtMs: number,
): Promise<ClaimOutcome[]> {
  const claims = open.map(({ event, messageIndex, seen }, at) => {
    const found = matches[at];
    if (found?.kind !== "found") return { seen, entry: null };
    const { candidates } = found;
    const [first] = candidates;
    const isAlone = first !== undefined && candidates.length === 1;
    const entry = encodeLoggedEvent({
      shipmentId: isAlone ? first.shipmentId : candidates.map(({ shipmentId }) => shipmentId),
      courier: courier.code,
      factKey: seen.factKey,
      receivedAtMs,
      messageIndex,
      event: areOfOneCompany(candidates) ? event : withoutPersonalData(event),
      messageId,
      ...(traceparent !== undefined && { traceparent }),
    });
    return { seen, entry, shipments: candidates.length };
  });
  return intake.claim({ courier: courier.code, layout, nowMs: receivedAtMs, claims });
}

/** @returns the events one of whose references has changed meanwhile: they are classified again. */
async function park(
  { redis, onNotParked }: ClassifyDeps,
  unmatched: readonly Unmatched[],
  receivedAtMs: number,
): Promise<Candidacy[]> {
  const items = unmatched.flatMap(({ candidacy, fingerprints }) =>
    listed(candidacy).map((reference, at) => {
      const { event, seen, messageIndex } = candidacy;
      const parked = { factKey: seen.factKey, event: minimalEvent(event), messageIndex };
      return { candidacy, reference, fingerprint: fingerprints[at] ?? "", parked };
    }),
  );
  const outcomes = await parkEvents(redis, items, receivedAtMs);
  const outcomesOf = Map.groupBy(outcomes.keys(), (at) => items[at]?.candidacy);
  const any = (one: Unmatched, ...wanted: ParkOutcome[]) =>
    (outcomesOf.get(one.candidacy) ?? []).some((at) => wanted.includes(outcomes[at] ?? "parked"));
  onNotParked(unmatched.filter((one) => any(one, "full", "displaced")).length);
  return unmatched.filter((one) => any(one, "known_now")).map(({ candidacy }) => candidacy);
}

/** What was parked under one reference, while another one had changed, and is not to be parked any more. */
async function takeBack(
  redis: Redis,
  classified: readonly Candidacy[],
  unmatched: readonly Unmatched[],
): Promise<void> {
  const still = new Set(unmatched.map(({ candidacy }) => candidacy));
  const others = classified.filter((one) => !still.has(one) && listed(one).length > 1);
  await dropParked(
    redis,
    others.map((one) => ({ factKey: one.seen.factKey, references: listed(one) })),
  );
}
