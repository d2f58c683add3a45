/**
 * Judges the events of a message in send order: schema (INVALID), known id (DUPLICATE), reference (UNKNOWN_TRACKING),
 * else ACCEPTED. Two round trips whatever the number of events: one resolves every reference, one claims the ids and
 * appends to the event log; messages that come together share them. A third only where events are set aside.
 */
import { minimalEvent } from "#core/domain/fact.ts";
import type { Fault } from "#core/domain/fault.ts";
import { type Candidate, type Match, matchReference } from "#core/domain/match-reference.ts";
import { nextTurn } from "#core/next-turn.ts";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Configuration, Courier } from "#core/redis/configuration.ts";
import { type ClaimOutcome, encodeLoggedEvent, lookUpEvents } from "#core/redis/event-log.ts";
import { type Reference, trackingReference } from "#core/redis/keys.ts";
import { parkEvents } from "#core/redis/parked.ts";
import { registerReferences } from "#core/redis/references.ts";
import type { SeenLayout } from "#core/redis/seen.ts";
import type { Intake } from "#ingest/intake.ts";
import {
  announces,
  type Candidacy,
  type Candidates,
  checkMessage,
  type Invalid,
  listed,
  type Message,
  type Prepared,
} from "#ingest/prepare.ts";

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
  { size, parts, candidates }: Prepared,
  receivedAtMs: number,
): Promise<Judgement[]> {
  const judgements: Judgement[] = new Array(size);
  const known = await candidates;
  const judging: Promise<Candidacy[]>[] = [];
  for (const part of parts) {
    if (judging.length > 0) await nextTurn();
    const { open, invalid } = part();
    tellInvalid(judgements, invalid);
    const strangers = judgeOpen(deps, courier, open, known, receivedAtMs, judgements);
    // Heard below, with those of the other parts.
    strangers.catch(() => {});
    judging.push(strangers);
  }
  let strangers = (await Promise.all(judging)).flat().sort((one, other) => one.place - other.place);
  for (let pass = 2; pass <= PASSES && strangers.length > 0; pass += 1) {
    const open = await setAside(deps, strangers, receivedAtMs);
    if (open.length === 0) break;
    const found = await deps.intake.resolve(open.flatMap(listed));
    strangers = await judgeOpen(deps, courier, open, found, receivedAtMs, judgements);
  }
  return judgements;
}

/**
 * Judges valid events.
 * @returns those to be set aside
 */
async function judgeOpen(
  deps: JudgeDeps,
  courier: Courier,
  open: readonly Candidacy[],
  candidates: Candidates,
  receivedAtMs: number,
  judgements: Judgement[],
): Promise<Candidacy[]> {
  if (open.length === 0) return [];
  const matchAll = matcher(deps, courier, open);
  const matches = open.some(({ event }) => announces(event))
    ? await followChanges(deps.redis, courier, open, candidates, matchAll)
    : matchAll(candidates);
  const outcomes = await claim(deps, courier, open, matches, receivedAtMs);
  deps.onAmbiguous(matches.filter(({ kind }) => kind === "ambiguous").length);
  return open.filter((one, at) => {
    judgements[one.place] = judgement(one, outcomes[at]);
    return outcomes[at] === "not_known" && matches[at]?.kind === "none";
  });
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
  const judgements: Judgement[] = new Array(message.events.length);
  const { open, invalid } = checkMessage(courier, message);
  tellInvalid(judgements, invalid);
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

function tellInvalid(judgements: Judgement[], invalid: readonly Invalid[]): void {
  for (const { place, event, errors } of invalid) {
    judgements[place] = { eventId: eventIdOf(event), outcome: "INVALID", errors };
  }
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

/** The rule that matches events with what their references mean. */
function matcher(
  { configuration }: JudgeDeps,
  courier: Courier,
  open: readonly Candidacy[],
): (known: Candidates) => Match[] {
  const accountsOf = (channelId: number) =>
    configuration.channels.get(channelId)?.couriers.get(courier.code)?.senderAccounts ?? [];
  return (known) =>
    open.map(({ event, byNumber, byExternal }) =>
      matchReference(
        event,
        (byNumber && known.get(byNumber.key)) ?? [],
        (byExternal && known.get(byExternal.key)) ?? [],
        accountsOf,
      ),
    );
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
    const [reference] = listed(stranger);
    if (!reference) return [];
    const { event, seen, place } = stranger;
    const parked = { factKey: seen.factKey, event: minimalEvent(event), receivedAtMs, place };
    return [{ reference, parked }];
  });
  const outcomes = await parkEvents(redis, items, receivedAtMs);
  onNotSetAside(outcomes.filter((outcome) => outcome === "full").length);
  return strangers.filter((_, at) => outcomes[at] === "known_now");
}
