/** References: which shipments a courier's tracking number or externalId may mean. */
import { createHash } from "node:crypto";
import type { CourierEvent } from "#core/events/rules/event.ts";
import type { Candidate } from "#core/events/rules/match-reference.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { referencesLeftOut } from "#core/platform/process/metrics.ts";
import { perPart, type Redis, readTogether, run, script } from "#core/platform/redis/client.ts";
import {
  externalReference,
  type Reference,
  trackingReference,
  withAsGiven,
} from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type ShipmentMeta, shipDay } from "#core/shipments/rules/shipment.ts";
import { compactBuckets, decodeCompact, resolveCompact } from "./compact-references.ts";
import registerSource from "./register.lua" with { type: "text" };

const registerScript = script(registerSource);

/**
 * Shipments of one company that a reference finds: the latest ones. Whoever registers a number again and again displaces its
 * own shipments and nobody else's.
 */
export const SHIPMENTS_PER_COMPANY = limit(
  10,
  "shipments of one company that a reference finds",
  "the oldest is left out, counted in a metric. Within the message that announces a number the first to announce it stay",
);
/** Shipments of all companies that a reference finds: the latest of each company come first. */
export const SHIPMENTS_PER_REFERENCE = limit(
  100,
  "shipments that a reference finds in all",
  "the latest of each company come first; counted in a metric",
);
/**
 * References that one call registers, about 4 ms where each is at its limit of a company: 100 shipments of 100 parcels, or 500
 * events that change numbers, would hold Redis for 15 to 20.
 */
export const REGISTRATIONS_PER_CALL = limit(
  50,
  "references registered by one call",
  "the next call",
);
/** Of a reference that is not registered; never changed. */
const NOBODY: Candidate[] = [];
/** What stood in the store, by the list that was made of it. */
const texts = new WeakMap<readonly Candidate[], string>();

export interface Registration extends Candidate {
  readonly reference: Reference;
}

/** By reference key. */
export type Candidates = ReadonlyMap<string, readonly Candidate[]>;

/** The references that an event names itself. */
export interface OwnReferences {
  readonly byNumber: Reference | null;
  readonly byExternal: Reference | null;
}

export function ownReferences(
  courier: string,
  {
    trackingNumber,
    externalId,
    senderAccount,
  }: Partial<Pick<CourierEvent, "trackingNumber" | "externalId" | "senderAccount">>,
): OwnReferences {
  return {
    byNumber: trackingNumber === undefined ? null : trackingReference(courier, trackingNumber),
    byExternal:
      externalId === undefined || senderAccount === undefined
        ? null
        : externalReference(courier, senderAccount, externalId),
  };
}

export function listed({ byNumber, byExternal }: OwnReferences): Reference[] {
  return [byNumber, byExternal].filter((reference) => reference !== null);
}

/** The references under which courier events may find a shipment. */
export function referencesOf(
  courier: string,
  trackingNumbers: readonly string[],
  senderAccounts: readonly string[],
  orderReferences: readonly string[],
): Reference[] {
  return [
    ...trackingNumbers.map((number) => trackingReference(courier, number)),
    ...orderReferences.flatMap((order) =>
      senderAccounts.map((account) => externalReference(courier, account, order)),
    ),
  ];
}

/**
 * The shipment as a candidate of its references. One whose order reference was corrected agrees with any: the courier may know the
 * earlier one or the present one.
 */
export function candidateOf(shipmentId: number, meta: ShipmentMeta): Candidate {
  const { companyId, channelId, isPlaceholder, shipDate, formerReferences } = meta;
  const orderReference = formerReferences ? null : meta.orderReference;
  return {
    shipmentId,
    companyId,
    channelId,
    isPlaceholder,
    orderReference,
    shipDay: shipDay(shipDate),
  };
}

/** Whether a reference may find one more shipment before others have to go. */
export function hasCapacity(known: readonly Candidate[], { companyId }: Candidate): boolean {
  if (known.length >= SHIPMENTS_PER_REFERENCE) return false;
  return known.filter((one) => one.companyId === companyId).length < SHIPMENTS_PER_COMPANY;
}

/** Makes shipments findable; repeating it changes nothing. */
export async function registerReferences(
  redis: Redis,
  registrations: readonly Registration[],
): Promise<void> {
  const groups = Map.groupBy(registrations, ({ reference }) => reference.partition);
  const limits = [String(SHIPMENTS_PER_COMPANY), String(SHIPMENTS_PER_REFERENCE)];
  const cut = (group: readonly Registration[]) => chunks(group, REGISTRATIONS_PER_CALL);
  await perPart(groups, cut, async (_, part) => {
    const buckets = await compactBuckets(
      redis,
      part.map(({ reference }) => reference),
    );
    const keys = part.flatMap(({ reference }, at) => [reference.key, ...(buckets[at]?.keys ?? [])]);
    const lines = part.flatMap((one) => {
      const start = `[${one.shipmentId},`;
      return [start, lineOf(one).slice(start.length)];
    });
    const names = buckets.map(({ name }) => name);
    const generations = String(buckets[0]?.keys.length ?? 0);
    const args = [...limits, generations, ...lines, ...names];
    const leftOut = await run<number>(redis, registerScript, keys, args);
    if (leftOut > 0) referencesLeftOut.inc(leftOut);
  });
}

/**
 * Candidates of every reference, by its key: one call, on a cluster one a partition, whatever the number; another one for those
 * that have none, once anything was archived.
 */
export async function resolveReferences(
  redis: Redis,
  references: readonly Reference[],
): Promise<Map<string, Candidate[]>> {
  const found = await resolveEach(redis, withAsGiven(references));
  for (const { key, asGiven } of references) {
    const older = (asGiven && found.get(asGiven.key)) ?? NOBODY;
    if (older.length > 0) found.set(key, joined(found.get(key) ?? NOBODY, older));
  }
  return found;
}

/** What stands under the text as it was given counts too; what is registered meanwhile is told by the text of the first list. */
function joined(candidates: Candidate[], older: readonly Candidate[]): Candidate[] {
  const known = new Set(candidates.map(({ shipmentId }) => shipmentId));
  const all = [...candidates, ...older.filter(({ shipmentId }) => !known.has(shipmentId))];
  const text = texts.get(candidates);
  if (text !== undefined) texts.set(all, text);
  return all;
}

async function resolveEach(
  redis: Redis,
  references: readonly Reference[],
): Promise<Map<string, Candidate[]>> {
  const found = new Map<string, Candidate[]>();
  const keys = new Map<number, string[]>();
  for (const { key, partition } of references) {
    if (found.has(key)) continue;
    found.set(key, NOBODY);
    const known = keys.get(partition);
    if (known) known.push(key);
    else keys.set(partition, [key]);
  }
  const missing = new Set<string>();
  const reads = readTogether(redis, keys).map(async (together) => {
    const values = await redis.mGet([...together]);
    together.forEach((key, at) => {
      const lines = values[at];
      if (!lines) {
        missing.add(key);
        return;
      }
      found.set(key, candidatesOfLines(lines));
    });
  });
  await Promise.all(reads);
  if (missing.size === 0) return found;
  const unfound = references.filter(({ key }) => missing.delete(key));
  for (const [key, one] of await resolveCompact(redis, unfound)) {
    found.set(key, one.kind === "lines" ? candidatesOfLines(one.lines) : [one.candidate]);
  }
  return found;
}

function candidatesOfLines(lines: string): Candidate[] {
  const candidates = lines.split("\n").map(candidateOfLine);
  texts.set(candidates, lines);
  return candidates;
}

/**
 * Tells whether anything has been registered under a reference since its candidates were read.
 * @param candidates as they were read; undefined or empty = there were none
 * @returns SHA-1 in hexadecimal, as scripts compute it; empty for none
 */
export function fingerprintOf(candidates: readonly Candidate[] | undefined): string {
  const text = candidates && texts.get(candidates);
  return text === undefined ? "" : createHash("sha1").update(text).digest("hex");
}

/** As it stands in the store: `register.lua` reads the id at its start and the company near its end. */
function lineOf(candidate: Candidate): string {
  const { shipmentId, channelId, isPlaceholder, orderReference, companyId, shipDay } = candidate;
  const placeholder = Number(isPlaceholder);
  return JSON.stringify([shipmentId, channelId, placeholder, orderReference, companyId, shipDay]);
}

function candidateOfLine(line: string): Candidate {
  const row = JSON.parse(line);
  // What the reference tells of an archived shipment stands before the company.
  if (typeof row[4] === "string") return candidateThatWasArchived(row);
  const [shipmentId, channelId, placeholder, orderReference, companyId, shipDay] = row;
  return {
    shipmentId,
    // A line of 0.1.0 does not name the company: it counts as one of its own.
    companyId: companyId ?? -shipmentId,
    channelId,
    isPlaceholder: placeholder === 1,
    orderReference,
    shipDay: shipDay ?? 0,
  };
}

type ArchivedRow = readonly [number, number, number, string | null, string, number?, number?];

function candidateThatWasArchived(row: ArchivedRow): Candidate {
  const [shipmentId, channelId, placeholder, orderReference, hex, companyId, shipDay] = row;
  const compact = decodeCompact(Buffer.from(hex, "hex"));
  return {
    shipmentId,
    companyId: companyId ?? -shipmentId,
    // A line that register.lua made of a compact one has it only there.
    channelId: channelId || compact.channelId,
    isPlaceholder: placeholder === 1,
    orderReference,
    shipDay: shipDay || compact.shipDay,
    ...(compact.archived && { archived: compact.archived }),
  };
}
