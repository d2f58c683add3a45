/**
 * Prepares a message for its classification and stores nothing: its references are looked up while its events are checked. A
 * large message is cut into parts: the first one is checked here, and each other one while the store works on the one before.
 */

import type { Courier } from "#core/configuration/store/configuration.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import {
  type Candidates,
  listed,
  type OwnReferences,
  ownReferences,
} from "#core/events/store/references.ts";
import { type SeenBucket, seenBucket } from "#core/events/store/seen.ts";
import { nextTurn, turns } from "#core/platform/process/next-turn.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import type { Intake } from "./intake.ts";

/** The events of a message, and the rule that finds the faults of one. */
export interface Message {
  readonly events: readonly unknown[];
  readonly check: (event: unknown) => readonly Fault[];
}

/** A valid event that is not classified yet. */
export interface Candidacy extends OwnReferences {
  readonly messageIndex: number;
  readonly event: CourierEvent;
  readonly seen: SeenBucket;
}

export interface Invalid {
  readonly messageIndex: number;
  readonly event: unknown;
  readonly errors: readonly Fault[];
}

export interface Checked {
  readonly open: readonly Candidacy[];
  readonly invalid: readonly Invalid[];
}

export interface Prepared {
  readonly size: number;
  /** As they were sent. */
  readonly events: readonly unknown[];
  /** The first part, checked. */
  readonly first: Checked;
  /** Each checks one of the other parts. Events of one id are in one part, in send order. */
  readonly others: readonly (() => Promise<Checked>)[];
  /** Asks for them, once. */
  readonly candidates: () => Promise<Candidates>;
}

/** An event that has not been checked. */
interface Draft extends OwnReferences {
  readonly messageIndex: number;
  readonly event: unknown;
  /** Null for what cannot be valid. */
  readonly seen: SeenBucket | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** UTF-16 units of the longest ids and references: `eventId` and `externalId` have 128 code points (document 2, "Limits"). */
const ID_LENGTH = 2 * 128;
/** Events of a message that goes in parts, and into how many. */
const LARGE = 100;
const PARTS = 4;

/**
 * References are looked up before their event is judged; those of an invalid one are not used.
 * @param isAskedLater whether they are looked up only when somebody asks for them
 */
export async function prepare(
  { intake }: { readonly intake: Intake },
  courier: Courier,
  { events, check }: Message,
  isAskedLater = false,
): Promise<Prepared> {
  const references = events.map((event) => referencesIn(courier.code, event));
  const candidates = askedOnce(() => intake.resolve(references.flatMap(listed)));
  // Whoever classifies the message gets the error; a message that is refused until then asks nobody.
  if (!isAskedLater) candidates().catch(() => {});
  const isLarge = events.length >= LARGE;
  if (isLarge) await nextTurn();
  const drafts = draftsOf(courier.code, events, references);
  // A number that an event announces counts for all of them: their matches are found together.
  const [first = [], ...others] = isLarge && !events.some(announces) ? partsOf(drafts) : [drafts];
  return {
    size: events.length,
    events,
    first: await checkDrafts(first, check),
    others: others.map((part) => () => checkDrafts(part, check)),
    candidates,
  };
}

function askedOnce<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= ask();
    return asked;
  };
}

/** All events at once, without a look at what they refer to. */
export function checkMessage({ code }: Courier, { events, check }: Message): Promise<Checked> {
  return checkDrafts(draftsOf(code, events, []), check);
}

export function announces(event: unknown): boolean {
  return ((event ?? {}) as Fields)["trackingNumberChange"] !== undefined;
}

const UNREFERRED: OwnReferences = { byNumber: null, byExternal: null };

function draftsOf(
  courier: string,
  events: readonly unknown[],
  references: readonly OwnReferences[],
) {
  return events.map((event, messageIndex): Draft => {
    const { eventId } = (event ?? {}) as Fields;
    const seen = isPlausible(eventId) ? seenBucket(courier, eventId) : null;
    const { byNumber, byExternal } = references[messageIndex] ?? UNREFERRED;
    return { messageIndex, event, seen, byNumber, byExternal };
  });
}

/** By the partitions of their ids, so that all parts together cost no more calls than the whole. */
function partsOf(drafts: readonly Draft[]): Draft[][] {
  return [...Map.groupBy(drafts, ({ seen }) => (seen?.partition ?? 0) % PARTS).values()];
}

/** In turns: an event may have thousands of members that we do not know. */
async function checkDrafts(drafts: readonly Draft[], check: Message["check"]): Promise<Checked> {
  const open: Candidacy[] = [];
  const invalid: Invalid[] = [];
  const turn = turns();
  for (const { messageIndex, event, seen, byNumber, byExternal } of drafts) {
    if (turn.due()) await turn.take();
    const errors = check(event);
    if (seen !== null && errors.length === 0) {
      open.push({ messageIndex, event: event as CourierEvent, seen, byNumber, byExternal });
    } else invalid.push({ messageIndex, event, errors });
  }
  return { open, invalid };
}

/** Of an event that has not been checked. */
function referencesIn(courier: string, event: unknown): OwnReferences {
  const { trackingNumber, externalId, senderAccount } = (event ?? {}) as Fields;
  return ownReferences(courier, {
    ...(isPlausible(trackingNumber) && { trackingNumber }),
    ...(isPlausible(externalId) && { externalId }),
    ...(isPlausible(senderAccount) && { senderAccount }),
  });
}

function isPlausible(text: unknown): text is string {
  return typeof text === "string" && text.length <= ID_LENGTH;
}
