/**
 * A second reading of documents 2 and 3: what a shipment's raw facts make of its state, its statistics and its webhook verdicts.
 * It imports nothing, is written from the documents and the design alone, and takes the whole list of facts at once, so that an
 * error of the product's own rules is not repeated here. Speed does not matter.
 */

/** Document 2, "Event", as far as it decides anything. */
export interface RawEvent {
  readonly occurredAt: string;
  readonly status: { readonly code: string; readonly description: string };
  readonly location?: { readonly name?: string };
  readonly reason?: { readonly code?: string };
  readonly parcel?: { readonly trackingNumber?: string };
  readonly delivery?: {
    readonly estimatedDeliveryDate?: string;
    readonly estimatedDeliveryWindow?: { readonly from?: string; readonly to?: string };
    readonly deliveredTo?: string;
    readonly signedBy?: string;
    readonly podUrl?: string;
    readonly attemptNumber?: number;
  };
  readonly pickupPoint?: Readonly<Record<string, string>>;
  readonly trackingNumberChange?: { readonly newTrackingNumber?: string };
  readonly recipientActionUrl?: string;
  readonly isReturn?: boolean;
}

export interface RawMapping {
  readonly status: string;
  readonly detail: number;
  readonly terminal: boolean;
}

export interface RawFact {
  readonly key: string;
  readonly event: RawEvent;
  readonly occurredAtMs: number;
  readonly receivedAtMs: number;
  readonly messageIndex: number;
  readonly mapping: RawMapping | null;
  readonly parked?: boolean;
}

/** An entry of a courier's catalogue (document 2, "Status codes are the sender's own"). */
export interface RawEntry {
  readonly code: string;
  readonly terminal: boolean;
  readonly status?: string;
  readonly statusDetail?: number;
  readonly rules?: ReadonlyArray<{
    readonly reasonCode?: string;
    readonly isReturn?: boolean;
    readonly deliveredTo?: string;
    readonly status: string;
    readonly statusDetail?: number;
    readonly terminal?: boolean;
  }>;
}

/** What a code means: the first narrower rule that fits, else the entry; nothing where the catalogue says nothing. */
export function modelMapping(catalogue: readonly RawEntry[], event: RawEvent): RawMapping | null {
  const entry = catalogue.find(({ code }) => code === event.status.code);
  if (entry === undefined) return null;
  for (const rule of entry.rules ?? []) {
    const isReturn = event.isReturn === true;
    if (rule.reasonCode !== undefined && rule.reasonCode !== event.reason?.code) continue;
    if (rule.isReturn !== undefined && rule.isReturn !== isReturn) continue;
    if (rule.deliveredTo !== undefined && rule.deliveredTo !== event.delivery?.deliveredTo)
      continue;
    const terminal = rule.terminal === undefined ? entry.terminal : rule.terminal;
    return { status: rule.status, detail: rule.statusDetail ?? 0, terminal };
  }
  if (entry.status === undefined) return null;
  return { status: entry.status, detail: entry.statusDetail ?? 0, terminal: entry.terminal };
}

/** Nothing happened after it was received (design, "An event ahead of its time"). */
export function modelHappenedAt(fact: Pick<RawFact, "occurredAtMs" | "receivedAtMs">): number {
  return Math.min(fact.occurredAtMs, fact.receivedAtMs);
}

/**
 * Which fact is the later one: by when it happened, then by what it says itself, then a terminal status, then the later received,
 * then the later one of a message (design, "Equal occurredAt").
 */
function isLater(one: RawFact, other: RawFact): boolean {
  const [first, second] = [one, other].map((fact) => [
    modelHappenedAt(fact),
    fact.occurredAtMs,
    fact.mapping?.terminal === true ? 1 : 0,
    fact.receivedAtMs,
    fact.messageIndex,
  ]) as [number[], number[]];
  for (const [at, value] of first.entries()) {
    const against = second[at] as number;
    if (value !== against) return value > against;
  }
  return one.key > other.key;
}

function latest(facts: readonly RawFact[]): RawFact | null {
  let found: RawFact | null = null;
  for (const fact of facts) if (found === null || isLater(fact, found)) found = fact;
  return found;
}

/** Two spellings of one tracking number: without white space and format characters, in any ASCII case. */
export function modelNumber(text: string): string {
  const seen = text.replaceAll(/[\p{White_Space}\p{Cf}]/gu, "");
  return seen.replaceAll(/[a-z]/g, (letter) => letter.toUpperCase());
}

/** What a shipment is, as every answer, index and webhook shows it. */
export interface ModelState {
  readonly status: string;
  readonly detail: number;
  /** Document 1, `statusPlace` and `statusDate`. */
  readonly lastKey: string | null;
  readonly lastPlace: string | null;
  readonly lastOccurredAtMs: number | null;
  readonly mappedKey: string | null;
  readonly keys: readonly string[];
  readonly pairs: readonly string[];
  readonly estimate: Readonly<Record<string, string | null>> | null;
  readonly proof: Readonly<Record<string, string | null>> | null;
  readonly pickupPoint: Readonly<Record<string, string | null>> | null;
  readonly actionUrl: string | null;
  readonly aliases: readonly string[];
  readonly attemptNumber: number;
  readonly failedAttempts: number;
  readonly exceptions: number;
  readonly unmapped: number;
  readonly isReturn: boolean;
  readonly departedAtMs: number | null;
  readonly parcels: Readonly<Record<string, string>>;
}

/** Before a courier event is mapped a shipment waits: its references are being registered, or it is PENDING. */
const WAITING = ["WAITING_TO_COMPUTE", "PENDING"];
/** Every shipment has been in these. */
export const FIRST_PAIRS: readonly string[] = WAITING.map((name) => `${name}:0`);

/** @param waiting what it is as long as no fact is mapped */
export function modelState(facts: readonly RawFact[], waiting: string): ModelState {
  const mapped = facts.filter(({ mapping }) => mapping !== null);
  const current = latest(mapped);
  const last = latest(facts);
  const departures = mapped.filter(({ mapping }) => mapping?.status === "DEPARTED");
  return {
    status: current?.mapping?.status ?? (WAITING.includes(waiting) ? waiting : "PENDING"),
    detail: current?.mapping?.detail ?? 0,
    lastKey: last?.key ?? null,
    lastPlace: last?.event.location?.name ?? null,
    lastOccurredAtMs: last?.occurredAtMs ?? null,
    mappedKey: current?.key ?? null,
    keys: unique(facts.map(({ key }) => key)),
    pairs: unique(mapped.map(({ mapping }) => `${mapping?.status}:${mapping?.detail}`)),
    ...saidOf(facts),
    aliases: unique(
      facts.flatMap(({ event }) => event.trackingNumberChange?.newTrackingNumber ?? []),
    ),
    attemptNumber: Math.max(0, ...facts.map(({ event }) => event.delivery?.attemptNumber ?? 0)),
    failedAttempts: mapped.filter(({ mapping }) => mapping?.status === "FAILED_ATTEMPT").length,
    exceptions: mapped.filter(({ mapping }) => mapping?.status === "EXCEPTION").length,
    unmapped: facts.length - mapped.length,
    isReturn: facts.some(({ event }) => event.isReturn === true),
    departedAtMs: departures.length === 0 ? null : Math.min(...departures.map(modelHappenedAt)),
    parcels: parcelsOf(mapped),
  };
}

/** Document 2, data rule 3 and "optional fields": the latest event that carries a thing says what it is. */
function saidOf(
  facts: readonly RawFact[],
): Pick<ModelState, "estimate" | "proof" | "pickupPoint" | "actionUrl"> {
  const estimated = latest(facts.filter(({ event }) => event.delivery !== undefined))?.event
    .delivery;
  const isProof = ({ event }: RawFact) =>
    Boolean(event.delivery?.deliveredTo ?? event.delivery?.signedBy ?? event.delivery?.podUrl);
  const proven = latest(facts.filter(isProof))?.event.delivery;
  const point = latest(facts.filter(({ event }) => event.pickupPoint !== undefined))?.event;
  const action = latest(facts.filter(({ event }) => Boolean(event.recipientActionUrl)))?.event;
  const names = ["id", "name", "address", "postalCode", "countryCode", "availableUntil"];
  return {
    estimate:
      estimated === undefined
        ? null
        : {
            date: estimated.estimatedDeliveryDate ?? null,
            from: estimated.estimatedDeliveryWindow?.from ?? null,
            to: estimated.estimatedDeliveryWindow?.to ?? null,
          },
    proof:
      proven === undefined
        ? null
        : {
            deliveredTo: proven.deliveredTo ?? null,
            signedBy: proven.signedBy ?? null,
            podUrl: proven.podUrl ?? null,
          },
    pickupPoint:
      point === undefined
        ? null
        : Object.fromEntries(names.map((name) => [name, point.pickupPoint?.[name] ?? null])),
    actionUrl: action?.recipientActionUrl ?? null,
  };
}

/** Each parcel that an event names is in the status that the latest mapped event of it says. */
function parcelsOf(mapped: readonly RawFact[]): Readonly<Record<string, string>> {
  const groups = new Map<string, RawFact[]>();
  for (const fact of mapped) {
    const given = fact.event.parcel?.trackingNumber;
    if (given === undefined) continue;
    const number = modelNumber(given);
    groups.set(number, [...(groups.get(number) ?? []), fact]);
  }
  const rows = [...groups].map(([number, own]): [string, string] => {
    const mapping = latest(own)?.mapping;
    return [number, `${mapping?.status}:${mapping?.detail}`];
  });
  return Object.fromEntries(rows.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}

/** What a shipment's creation says of its lane (document 1, "Couriers"). */
export interface RawLane {
  readonly courier: string;
  readonly shipDate: string;
  readonly destCap: string | null;
  readonly originCap: string | null;
  readonly weightKg: number | null;
}

export interface ModelStatistics {
  readonly courier: string;
  readonly destCap: string;
  readonly originCap: string;
  readonly weightBand: string;
  readonly shipDate: string;
  readonly deliveredOn: string;
  readonly leadDays: number;
  readonly transitDays: number | null;
  readonly attempts: number;
  readonly exceptions: number;
  readonly isReturn: boolean;
}

/** @returns what the benchmarks know of the shipment; null = it is no delivery, or in no lane */
export function modelStatistics(facts: readonly RawFact[], lane: RawLane): ModelStatistics | null {
  const state = modelState(facts, "PENDING");
  const delivery = facts.find(({ key }) => key === state.mappedKey);
  if (delivery === undefined || state.status !== "DELIVERED" || lane.destCap === null) return null;
  const deliveredAtMs = modelHappenedAt(delivery);
  const deliveredOn = modelRomeDay(deliveredAtMs);
  const { departedAtMs } = state;
  const hasTransit = departedAtMs !== null && departedAtMs <= deliveredAtMs;
  return {
    courier: lane.courier,
    destCap: lane.destCap,
    originCap: lane.originCap ?? "",
    weightBand: lane.weightKg === null ? "" : modelWeightBand(lane.weightKg),
    shipDate: lane.shipDate,
    deliveredOn,
    leadDays: Math.max(0, daysFrom(lane.shipDate, deliveredOn)),
    transitDays: hasTransit ? daysFrom(modelRomeDay(departedAtMs), deliveredOn) : null,
    // The delivery is an attempt too, also where the courier numbers none.
    attempts: Math.max(state.attemptNumber, state.failedAttempts + 1),
    exceptions: state.exceptions,
    isReturn: state.isReturn,
  };
}

const ROME = new Intl.DateTimeFormat("sv-SE", {
  timeZone: "Europe/Rome",
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
});

/** The calendar day of an instant in Europe/Rome. */
export function modelRomeDay(ms: number): string {
  return ROME.format(ms);
}

function daysFrom(day: string, other: string): number {
  return Math.round((Date.parse(other) - Date.parse(day)) / 86_400_000);
}

/** Design, "Weight bands"; a weight on a bound belongs to the lower band. */
export function modelWeightBand(kg: number): string {
  let from = 0;
  for (const to of [1, 3, 5, 10, 20, 30, 50]) {
    if (kg <= to) return `${from}-${to}`;
    from = to;
  }
  return "50+";
}

/** What an event did when it was applied (document 3, "Trigger semantics"). */
export interface ModelChange {
  readonly key: string;
  /** Null = the code is not mapped. */
  readonly status: string | null;
  readonly changed: boolean;
  readonly firstOccurrence: boolean;
}

/** @param facts in the order they were applied */
export function modelChanges(facts: readonly RawFact[]): readonly ModelChange[] {
  const pairAfter = (count: number) => {
    const mapping = latest(facts.slice(0, count).filter((one) => one.mapping !== null))?.mapping;
    return mapping ? `${mapping.status}:${mapping.detail}` : "PENDING:0";
  };
  const beenIn = new Set(FIRST_PAIRS);
  return facts.map(({ key, mapping }, at) => {
    const [before, after] = [pairAfter(at), pairAfter(at + 1)];
    const changed = before !== after;
    const firstOccurrence = changed && !beenIn.has(after);
    beenIn.add(after);
    return { key, status: mapping?.status ?? null, changed, firstOccurrence };
  });
}

/** Document 3, "Trigger semantics": whether a change fires a trigger. */
export function modelFires(trigger: string, change: ModelChange): boolean {
  if (change.status === null) return false;
  if (trigger === "every_event") return true;
  if (trigger === "first_occurrence") return change.firstOccurrence;
  return change.changed;
}

/**
 * What a recorded verdict says that cannot be, whatever the endpoint's trigger and statuses were; null = it can.
 * @param trigger of the delivery that was made, where one was
 */
export function verdictFault(
  verdict: string,
  trigger: string | null,
  change: ModelChange,
): string | null {
  if (verdict === "disabled") return null;
  const isMapped = change.status !== null;
  if (!isMapped) return verdict === "unmapped" ? null : "unmapped";
  if (verdict === "unmapped") return "send, trigger_not_met or filtered";
  const firesAlways = change.changed && change.firstOccurrence;
  if (verdict === "trigger_not_met") return firesAlways ? "send or filtered" : null;
  if (trigger !== null && !modelFires(trigger, change)) return "trigger_not_met";
  return null;
}

export interface RawAttempt {
  readonly generation: number;
  readonly attempt: number;
  readonly error: string | null;
}

export interface RawDelivery {
  readonly state: string;
  readonly generation: number;
  readonly attempts: readonly RawAttempt[];
  readonly nextAttemptAtMs: number | null;
  readonly reason: string | null;
}

/** Document 3, "Limits". */
const ATTEMPTS = 8;

/** What is wrong with the record of a delivery (document 3, "Delivery"); null = nothing. */
export function deliveryFault(delivery: RawDelivery): string | null {
  const { state, generation, attempts, nextAttemptAtMs, reason } = delivery;
  const own = attempts.filter((one) => one.generation === generation);
  const last = own.at(-1);
  const isCounted = own.every(({ attempt }, at) => attempt === at + 1);
  if (!isCounted) return "attempts numbered from 1";
  if (own.length > ATTEMPTS) return `at most ${ATTEMPTS} attempts`;
  if (attempts.some((one) => one.generation > generation)) return "no attempt of a later replay";
  switch (state) {
    case "delivered":
      return last?.error === null ? null : "a last attempt that was answered 2xx";
    case "failed":
      return reason === null ? "the reason of the failure" : null;
    case "waiting":
      if (last === undefined || last.error === null) return "a last attempt that failed";
      return nextAttemptAtMs === null ? "the time of the next attempt" : null;
    case "queued":
      return own.length === 0 ? null : "no attempt yet";
    default:
      return "queued, waiting, delivered or failed";
  }
}
