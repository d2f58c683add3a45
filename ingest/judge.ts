/**
 * Judges the events of a message in send order: schema (INVALID), known id (DUPLICATE), reference (UNKNOWN_TRACKING),
 * else ACCEPTED. Two round trips whatever the number of events: one resolves every reference, one claims the ids and
 * appends to the event log; messages that come together share them. A third only where events are set aside.
 */
import type { CourierEvent } from "#core/domain/event.ts";
import { minimalEvent } from "#core/domain/fact.ts";
import type { Fault } from "#core/domain/fault.ts";
import { type Candidate, type Match, matchReference } from "#core/domain/match-reference.ts";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Configuration, Courier } from "#core/redis/configuration.ts";
import { type ClaimOutcome, encodeLoggedEvent, lookUpEvents } from "#core/redis/event-log.ts";
import { externalReference, type Reference, trackingReference } from "#core/redis/keys.ts";
import { parkEvents } from "#core/redis/parked.ts";
import { registerReferences } from "#core/redis/references.ts";
import { type SeenLayout, type SeenPlace, seenPlace } from "#core/redis/seen.ts";
import type { Intake } from "#ingest/intake.ts";

export type Outcome = "ACCEPTED" | "DUPLICATE" | "UNKNOWN_TRACKING" | "INVALID";

export interface Judgement {
  readonly eventId: string | null;
  readonly outcome: Outcome;
  /** Of an INVALID event. */
  readonly errors?: readonly Fault[];
}

export interface JudgeDeps {
  readonly redis: Redis;
  readonly intake: Intake;
  readonly configuration: Configuration;
  readonly layout: SeenLayout;
  /** Counts UNKNOWN_TRACKING that is a mismatch or a choice between shipments. */
  readonly onAmbiguous: (count: number) => void;
  /** Counts UNKNOWN_TRACKING that a limit of the set-aside store kept out. */
  readonly onNotSetAside: (count: number) => void;
}

/** The events of a message, and the rule that finds the faults of one. */
export interface Message {
  readonly events: readonly unknown[];
  readonly check: (event: unknown) => readonly Fault[];
}

/** A valid event on its way to a judgement. */
interface Candidacy {
  readonly place: number;
  readonly event: CourierEvent;
  readonly seen: SeenPlace;
  readonly byNumber: Reference | null;
  readonly byExternal: Reference | null;
}

type Candidates = Map<string, Candidate[]>;

const RETRY_AFTER_SECONDS = "5";
/** Passes over events whose shipment was registered while they were being set aside. */
const PASSES = 3;

/**
 * @returns one judgement per event, in send order
 * @throws {Problem} 503 when the event log is over its mark; what was claimed until then is a DUPLICATE on retry
 */
export async function judge(
  deps: JudgeDeps,
  courier: Courier,
  message: Message,
  receivedAtMs: number,
): Promise<Judgement[]> {
  const { judgements, open: valid } = checkAll(courier, message);
  let open = valid;
  for (let pass = 1; open.length > 0; pass += 1) {
    const matches = await match(deps, courier, open);
    const outcomes = await claim(deps, courier, open, matches, receivedAtMs);
    const strangers = open.filter((one, at) => {
      judgements[one.place] = judgement(one, outcomes[at]);
      return outcomes[at] === "not_known" && matches[at]?.kind === "none";
    });
    deps.onAmbiguous(matches.filter(({ kind }) => kind === "ambiguous").length);
    open = pass < PASSES ? await setAside(deps, strangers, receivedAtMs) : [];
  }
  return judgements;
}

/**
 * The judgement of `POST /v1/events/validate`: stores nothing and needs no known parcels, so the outcomes are ACCEPTED,
 * DUPLICATE and INVALID.
 */
export async function validate(
  { redis, layout }: Pick<JudgeDeps, "redis" | "layout">,
  courier: Courier,
  message: Message,
): Promise<Judgement[]> {
  const { judgements, open } = checkAll(courier, message);
  const places = open.map(({ seen }) => seen);
  const outcomes = await lookUpEvents(redis, layout, places);
  const taken = new Set<string>();
  open.forEach(({ place, event: { eventId } }, at) => {
    const isKnown = outcomes[at] === "known" || taken.has(eventId);
    taken.add(eventId);
    judgements[place] = { eventId, outcome: isKnown ? "DUPLICATE" : "ACCEPTED" };
  });
  return judgements;
}

function checkAll(
  courier: Courier,
  { events, check }: Message,
): { judgements: Judgement[]; open: Candidacy[] } {
  const judgements: Judgement[] = new Array(events.length);
  const open: Candidacy[] = [];
  events.forEach((event, place) => {
    const errors = check(event);
    if (errors.length === 0) open.push(candidacy(courier.code, event as CourierEvent, place));
    else judgements[place] = { eventId: eventIdOf(event), outcome: "INVALID", errors };
  });
  return { judgements, open };
}

function judgement(
  { event: { eventId } }: Candidacy,
  outcome: ClaimOutcome | undefined,
): Judgement {
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

function eventIdOf(event: unknown): string | null {
  const id = (event as { eventId?: unknown } | null)?.eventId;
  return typeof id === "string" ? id : null;
}

function candidacy(courier: string, event: CourierEvent, place: number): Candidacy {
  const { trackingNumber, externalId, senderAccount } = event;
  return {
    ...{ place, event, seen: seenPlace(courier, event.eventId) },
    byNumber: trackingNumber === undefined ? null : trackingReference(courier, trackingNumber),
    byExternal:
      externalId === undefined || senderAccount === undefined
        ? null
        : externalReference(courier, senderAccount, externalId),
  };
}

function referencesOf({ byNumber, byExternal }: Candidacy): Reference[] {
  return [byNumber, byExternal].filter((reference) => reference !== null);
}

/** Resolves every reference of the message in one round trip. */
async function match(
  { redis, intake, configuration }: JudgeDeps,
  courier: Courier,
  open: readonly Candidacy[],
): Promise<Match[]> {
  const candidates = await intake.resolve(open.flatMap(referencesOf));
  const accountsOf = (channelId: number) =>
    configuration.channels.get(channelId)?.couriers.get(courier.code)?.senderAccounts ?? [];
  const matchAll = (known: Candidates) =>
    open.map((one) =>
      matchReference(
        one.event,
        known.get(one.byNumber?.key ?? "") ?? [],
        known.get(one.byExternal?.key ?? "") ?? [],
        accountsOf,
      ),
    );
  const announces = ({ event }: Candidacy) => event.trackingNumberChange !== undefined;
  if (!open.some(announces)) return matchAll(candidates);
  return followChanges(redis, courier, open, candidates, matchAll);
}

/**
 * A tracking number change counts at once: the new number is registered before the message is answered and is known to the
 * other events of the message (data rule 1), which may announce another one.
 */
async function followChanges(
  redis: Redis,
  courier: Courier,
  open: readonly Candidacy[],
  resolved: Candidates,
  matchAll: (known: Candidates) => Match[],
): Promise<Match[]> {
  const candidates = new Map(resolved);
  const aliases = new Map<string, { reference: Reference; candidate: Candidate }>();
  let matches: Match[];
  let known: number;
  do {
    known = aliases.size;
    matches = matchAll(candidates);
    open.forEach(({ event }, at) => {
      const found = matches[at];
      const number = event.trackingNumberChange?.newTrackingNumber;
      if (number === undefined || found?.kind !== "found") return;
      const reference = trackingReference(courier.code, number);
      const { candidate } = found;
      const others = candidates.get(reference.key) ?? [];
      if (others.some(({ shipmentId }) => shipmentId === candidate.shipmentId)) return;
      candidates.set(reference.key, [...others, candidate]);
      aliases.set(`${candidate.shipmentId} ${reference.key}`, { reference, candidate });
    });
  } while (aliases.size > known);
  const registrations = [...aliases.values()];
  await registerReferences(
    redis,
    registrations.map(({ reference, candidate }) => ({ reference, ...candidate })),
  );
  return matches;
}

/** Claims the ids of matched events and appends them; of the others it only asks whether the id is known. */
function claim(
  { intake, layout }: JudgeDeps,
  courier: Courier,
  open: readonly Candidacy[],
  matches: readonly Match[],
  receivedAtMs: number,
): Promise<ClaimOutcome[]> {
  const claims = open.map(({ event, place, seen }, at) => {
    const found = matches[at];
    if (found?.kind !== "found") return { seen, entry: null };
    const { shipmentId } = found.candidate;
    const { factKey } = seen;
    const logged = { shipmentId, courier: courier.code, factKey, receivedAtMs, place, event };
    return { seen, entry: encodeLoggedEvent(logged) };
  });
  return intake.claim({ courier: courier.code, layout, nowMs: receivedAtMs, claims });
}

/** @returns the events whose reference has been registered meanwhile: they are judged again. */
async function setAside(
  { redis, onNotSetAside }: JudgeDeps,
  strangers: readonly Candidacy[],
  receivedAtMs: number,
): Promise<Candidacy[]> {
  const items = strangers.flatMap((stranger) => {
    const [reference] = referencesOf(stranger);
    if (!reference) return [];
    const { event, seen, place } = stranger;
    const parked = { factKey: seen.factKey, event: minimalEvent(event), receivedAtMs, place };
    return [{ reference, parked }];
  });
  const outcomes = await parkEvents(redis, items, receivedAtMs);
  onNotSetAside(outcomes.filter((outcome) => outcome === "full").length);
  return strangers.filter((_, at) => outcomes[at] === "known_now");
}
