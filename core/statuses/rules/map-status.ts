/** Maps a courier's own status code by its catalogue. No default and no guessing: an unknown code is unmapped. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import type { Mapping } from "#core/events/rules/fact.ts";
import type { Status, StatusPair } from "./status.ts";

type DeliveredTo = NonNullable<NonNullable<CourierEvent["delivery"]>["deliveredTo"]>;

/** A narrower mapping of a code, for events that meet all of its conditions. */
export interface MappingRule {
  readonly reasonCode?: string;
  /** Document 2: an event that does not say so is no return. */
  readonly isReturn?: boolean;
  readonly deliveredTo?: DeliveredTo;
  readonly status: Status;
  readonly statusDetail?: number;
  /** Absent = as the entry says. */
  readonly terminal?: boolean;
}

export interface CatalogueEntry {
  readonly code: string;
  readonly description: string;
  readonly terminal: boolean;
  /** Absent while the code is not mapped. */
  readonly status?: Status;
  readonly statusDetail?: number;
  /** The first one whose conditions are met wins, else the entry's own mapping. */
  readonly rules?: readonly MappingRule[];
}

export type Catalogue = ReadonlyMap<string, CatalogueEntry>;

/** What a mapping looks at; a parked event has kept the code alone. */
export type MappedEvent = Pick<CourierEvent, "status" | "reason" | "isReturn" | "delivery">;

export function mapStatus(catalogue: Catalogue, event: MappedEvent): Mapping | null {
  const entry = catalogue.get(event.status.code);
  if (!entry) return null;
  const rule = entry.rules?.find((one) => meets(event, one));
  const { status, statusDetail = 0 } = rule ?? entry;
  if (status === undefined) return null;
  return { status, detail: statusDetail, terminal: rule?.terminal ?? entry.terminal };
}

function meets(event: MappedEvent, { reasonCode, isReturn, deliveredTo }: MappingRule): boolean {
  return (
    (reasonCode === undefined || event.reason?.code === reasonCode) &&
    (isReturn === undefined || (event.isReturn ?? false) === isReturn) &&
    (deliveredTo === undefined || event.delivery?.deliveredTo === deliveredTo)
  );
}

/** Every pair that an entry may map to; none = the code is not mapped. */
export function pairsOf(entry: CatalogueEntry | null | undefined): StatusPair[] {
  return [...(entry?.rules ?? []), ...(entry ? [entry] : [])].flatMap(
    ({ status, statusDetail = 0 }) =>
      status === undefined ? [] : [{ status, detail: statusDetail }],
  );
}

/** Whether two entries map every event alike; their descriptions do not count. */
export function sameMapping(
  one: CatalogueEntry | null | undefined,
  other: CatalogueEntry | null | undefined,
): boolean {
  return mappingText(one) === mappingText(other);
}

function mappingText(entry: CatalogueEntry | null | undefined): string {
  if (pairsOf(entry).length === 0) return "";
  const { status, statusDetail = 0, terminal, rules = [] } = entry as CatalogueEntry;
  const ruleTexts = rules.map((rule) => [
    rule.reasonCode ?? null,
    rule.isReturn ?? null,
    rule.deliveredTo ?? null,
    rule.status,
    rule.statusDetail ?? 0,
    rule.terminal ?? terminal,
  ]);
  // A terminal flag counts only where a status stands beside it.
  return JSON.stringify([status ?? null, status && [statusDetail, terminal], ruleTexts]);
}
