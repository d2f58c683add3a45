/**
 * The event log: courier events that were answered ACCEPTED, until track has applied them. An entry holds what one call of
 * `claim.lua` accepted, a line for each event (`e`).
 */

import type { CourierEvent } from "#core/events/rules/event.ts";
import type { Fields } from "#core/platform/log/log-entry.ts";
import { chunks, chunksBySize } from "#core/platform/process/chunks.ts";
import { perPart, type Redis, run, script } from "#core/platform/redis/client.ts";
import { eventKeys, logCountsKey, retriesKey } from "#core/platform/redis/keys.ts";
import { shareOf } from "#core/platform/redis/partitions.ts";
import { runTogether } from "#core/platform/redis/run-together.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import claimSource from "./claim.lua" with { type: "text" };
import rememberSource from "./remember.lua" with { type: "text" };
import {
  bucketKeys,
  bucketKeysOf,
  SEEN_TTL_SECONDS,
  type SeenBucket,
  type SeenLayout,
} from "./seen.ts";

const claimScript = script(claimSource);
const rememberScript = script(rememberSource);

/**
 * Events, each counted once for every shipment it goes to. A script call of 500 events would hold Redis for 3 to 9 ms; 100
 * hold it for less than 2.
 */
const CLAIMS_PER_CALL = limit(
  100,
  "events in an entry of the event log, each once for every shipment",
  "the next entry; those of one event stay together",
);
/** EventIds that one call remembers, about 3 ms: 100 shipments may be given 1,000 parked events each by one commit. */
export const REMEMBERED_PER_CALL = limit(200, "eventIds remembered by one call", "the next call");
/** Of Redis, for one event. */
const CLAIM_US = 6;

/** An accepted event on its way to its shipment. */
export interface LoggedEvent {
  readonly shipmentId: number;
  readonly courier: string;
  readonly factKey: string;
  readonly receivedAtMs: number;
  /** Position in its message. */
  readonly messageIndex: number;
  readonly event: CourierEvent;
  /** Of the message that brought it, as its sender named it. */
  readonly messageId?: string;
  /** Of its sampled trace; absent = it is not traced. */
  readonly traceparent?: string;
}

/** A line of the log. An event that goes to several shipments stands there once, with the list of their ids. */
export function encodeLoggedEvent(
  logged: Omit<LoggedEvent, "shipmentId"> & { readonly shipmentId: number | readonly number[] },
): string {
  const { shipmentId, courier, factKey, receivedAtMs, messageIndex, event, messageId } = logged;
  const line = [shipmentId, courier, factKey, receivedAtMs, messageIndex, event];
  const { traceparent } = logged;
  if (traceparent !== undefined) return JSON.stringify([...line, messageId ?? null, traceparent]);
  return JSON.stringify(messageId === undefined ? line : [...line, messageId]);
}

/** @throws SyntaxError when the entry is not one of ours. */
export function decodeLoggedEvent(text: string): LoggedEvent {
  const [shipmentId, courier, factKey, receivedAtMs, messageIndex, event, messageId, traceparent] =
    JSON.parse(text);
  const logged = { shipmentId, courier, factKey, receivedAtMs, messageIndex, event };
  const named = messageId == null ? logged : { ...logged, messageId };
  return traceparent === undefined ? named : { ...named, traceparent };
}

/** What names an event in the program's log: nothing where the entry cannot be read. */
export function loggedIds(fields: Fields): Readonly<Record<string, string | number | undefined>> {
  try {
    const { shipmentId, courier, event, messageId } = decodeLoggedEvent(fields["e"] ?? "");
    return { courier, messageId, eventId: event.eventId, shipment: shipmentId };
  } catch {
    return {};
  }
}

/** An event for one shipment, as a handler is given it and a dead letter keeps it. */
export function splitEvents(fields: Fields): readonly Fields[] {
  const lines = (fields["e"] ?? "").split("\n");
  // Each line ends with its break; what is no line at all fails in its handler.
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines.flatMap((line) => (line.startsWith("[[") ? splitShipments(line) : [{ e: line }]));
}

/** One line for each shipment of a line that begins with their list. */
function splitShipments(line: string): readonly Fields[] {
  const end = line.indexOf("]");
  const rest = line.slice(end + 1);
  return line
    .slice(2, end)
    .split(",")
    .map((id) => ({ e: `[${id}${rest}` }));
}

export interface Claim {
  readonly seen: SeenBucket;
  /** Null only asks whether the eventId is known. */
  readonly entry: string | null;
  /** Shipments that the entry names; default 1. */
  readonly shipments?: number;
}

export type ClaimOutcome = "claimed" | "known" | "not_known" | "log_full";
/** By the digit of the script's reply. */
const OUTCOMES: readonly ClaimOutcome[] = ["known", "claimed", "not_known"];

export interface ClaimTerms {
  readonly layout: SeenLayout;
  /** Events that may wait in the whole log. */
  readonly highWater: number;
  readonly courier: string;
  readonly nowMs: number;
}

/**
 * Claims eventIds and appends their entries, one script call a touched partition (and 100 events); outcomes in the
 * order given. Claims of one id are judged in that order too.
 */
export async function claimEvents(
  redis: Redis,
  terms: ClaimTerms,
  claims: readonly Claim[],
): Promise<ClaimOutcome[]> {
  return (await claimEach(redis, terms, claims)).map(outcomeOf);
}

/** The same, where each that cannot be claimed now tells so by itself. */
export function claimEach(
  redis: Redis,
  { layout, highWater, courier, nowMs }: ClaimTerms,
  claims: readonly Claim[],
): Promise<(ClaimOutcome | ClaimUnavailable)[]> {
  const highWaterPerLog = shareOf("e", highWater);
  const hour = hourOf(nowMs);
  return callClaim(redis, layout, claims, { highWaterPerLog, courier, hour });
}

/** Which eventIds are known: "known" or "not_known" each, in the order given. */
export async function lookUpEvents(
  redis: Redis,
  layout: SeenLayout,
  buckets: readonly SeenBucket[],
): Promise<ClaimOutcome[]> {
  const looks = buckets.map((seen) => ({ seen, entry: null }));
  const highWaterPerLog = Number.MAX_SAFE_INTEGER;
  const terms = { highWaterPerLog, courier: "", hour: 0 };
  return (await callClaim(redis, layout, looks, terms)).map(outcomeOf);
}

/** The partition of an eventId is unavailable; others have theirs. */
export interface ClaimUnavailable {
  readonly error: unknown;
}

function outcomeOf(outcome: ClaimOutcome | ClaimUnavailable): ClaimOutcome {
  if (typeof outcome !== "string") throw outcome.error;
  return outcome;
}

interface CallTerms {
  readonly highWaterPerLog: number;
  /** Empty for a question that is not counted. */
  readonly courier: string;
  readonly hour: number;
}

async function callClaim(
  redis: Redis,
  layout: SeenLayout,
  claims: readonly Claim[],
  { highWaterPerLog, courier, hour }: CallTerms,
): Promise<(ClaimOutcome | ClaimUnavailable)[]> {
  const outcomes: (ClaimOutcome | ClaimUnavailable)[] = new Array(claims.length);
  const groups = Map.groupBy(claims.keys(), (at) => claims[at]?.seen.partition ?? 0);
  const head = [String(highWaterPerLog), String(SEEN_TTL_SECONDS), courier, String(hour)];
  head.push(String(layout.generations.length));
  const sizeOf = (at: number) => claims[at]?.shipments ?? 1;
  const cut = (group: readonly number[]) => chunksBySize(group, CLAIMS_PER_CALL, sizeOf);
  await perPart(groups, cut, async (partition, part) => {
    const { log, ledger, counts, countedHours } = eventKeys(partition);
    const common = [log, ledger, counts(hour), countedHours, logCountsKey(log)];
    common.push(retriesKey(log, "track"));
    const own = part.flatMap((at) => claims[at] ?? []);
    const buckets = own.map(({ seen }) => seen);
    const keys = [...common, ...bucketKeysOf(layout, partition, buckets)];
    const args = [...head, own.map(idLine).join(""), eventLines(own)];
    const costUs = part.length * CLAIM_US;
    const calling = runTogether<string>(redis, claimScript, keys, args, costUs);
    const digits = await calling.catch((error) => {
      for (const at of part) outcomes[at] = { error };
    });
    if (digits === undefined) return;
    part.forEach((at, position) => {
      const digit = digits.charCodeAt(position) - CODE_OF_ZERO;
      outcomes[at] = digits === "" ? "log_full" : (OUTCOMES[digit] ?? "known");
    });
  });
  if (outcomes.includes("claimed")) announce(redis, "event");
  return outcomes;
}

const CODE_OF_ZERO = 0x30;

/** As `claim.lua` reads it. */
function idLine({ seen, entry, shipments = 1 }: Claim): string {
  const bytes = entry === null ? 0 : Buffer.byteLength(entry) + 1;
  return `${seen.member} ${bytes} ${shipments}\n`;
}

/** No line of JSON holds a line break. */
function eventLines(claims: readonly Claim[]): Buffer {
  const lines = claims.flatMap(({ entry }) => entry ?? []);
  return Buffer.from(lines.length === 0 ? "" : `${lines.join("\n")}\n`);
}

/** Takes the eventIds of parked events once they are applied, so that a resend is a DUPLICATE. */
export async function rememberEvents(
  redis: Redis,
  layout: SeenLayout,
  buckets: readonly SeenBucket[],
): Promise<void> {
  const groups = Map.groupBy(buckets, ({ partition }) => partition);
  const cut = (group: readonly SeenBucket[]) => chunks(group, REMEMBERED_PER_CALL);
  await perPart(groups, cut, (_, part) => {
    const keys = part.flatMap((bucket) => bucketKeys(layout, bucket).slice(0, 1));
    const members = part.map(({ member }) => member);
    return run(redis, rememberScript, keys, [String(SEEN_TTL_SECONDS), ...members]);
  });
}
