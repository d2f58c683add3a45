/**
 * Leases: which process sends which delivery. A lease assigns a delivery to one process for a limited time; if that process
 * dies, the lease expires and the delivery is sent again.
 *
 * A round has three steps. Each declares all of its keys, so that none can stop halfway while a slot is being migrated:
 * `look.lua` finds the endpoints that have something to send, `lease.lua` leases deliveries of these endpoints, and their
 * content and shipments are read afterwards. Processes that look at the same time name the same endpoints; each call sees
 * what the previous one has left. Endpoints of deliveries that this process has just queued are named without a look, and those
 * deliveries and their shipments are read at once.
 */
import { chunks } from "#core/platform/process/chunks.ts";
import {
  binary,
  perPartition,
  type Redis,
  readTogether,
  run,
  script,
} from "#core/platform/redis/client.ts";
import {
  companyKeys,
  FAILING_FROM,
  shipmentPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { readFields } from "#core/platform/redis/read-fields.ts";
import { runTogether } from "#core/platform/redis/run-together.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import type { ChangeFact } from "#core/shipments/store/change-log.ts";
import { type StoredShipment, storedShipment } from "#core/shipments/store/shipments.ts";
import {
  CONCURRENCY_LIFE_MS,
  rateBucket,
  START_CONCURRENCY,
} from "#core/webhooks/rules/concurrency.ts";
import endpointCapacity from "#core/webhooks/store/parts/endpoint-capacity.lua" with {
  type: "text",
};
import { type FrozenDelivery, ITEMS_PER_CALL, readWords } from "./deliveries.ts";
import type { Fresh } from "./fresh-deliveries.ts";
import leaseSource from "./lease.lua" with { type: "text" };
import lookSource from "./look.lua" with { type: "text" };
import readDeliveriesSource from "./read-deliveries.lua" with { type: "text" };
import reclaimSource from "./reclaim.lua" with { type: "text" };
import renewSource from "./renew.lua" with { type: "text" };
import resumeSource from "./resume.lua" with { type: "text" };

const leaseScript = scriptOfParts(leaseSource, { "endpoint-capacity": endpointCapacity });
const lookScript = script(lookSource);
const readDeliveriesScript = script(readDeliveriesSource);
const reclaimScript = script(reclaimSource);
const renewScript = script(renewSource);
const resumeScript = script(resumeSource);

/** Redis time: for a look, and for one delivery. */
const LOOK_US = 15;
const LEASE_US = 6;

/** A leased delivery. */
export interface Slot {
  readonly partition: number;
  readonly endpointId: string;
  readonly deliveryId: string;
  readonly lease: string;
  /** The endpoint has not succeeded since its first failure. */
  readonly failing: boolean;
  /** The request takes no slot: the endpoint was known to be silent. */
  readonly silent: boolean;
  /** The endpoint's company. */
  readonly companyId: number;
  /** The endpoint's highest concurrency. */
  readonly most: number;
}

/** A leased delivery with the data for its next attempt. */
export interface Leased extends Slot, Omit<FrozenDelivery, "fact"> {
  readonly generation: number;
  readonly attemptsMade: number;
  /** JSON, as stored: parsed only if it grows too long. */
  readonly attemptsText: string;
  /** Read once for all deliveries of its event that were leased together. */
  readonly fact: () => ChangeFact;
  /**
   * Read at one point in time after the lease, and unpacked once for all deliveries that share it; null = it no longer
   * exists.
   */
  readonly shipment: () => StoredShipment | null;
}

/** What the configuration says of an endpoint. */
export interface EndpointTerms {
  readonly companyId: number;
  /** Its highest concurrency. */
  readonly most: number;
  /** The same for its requests in and outside of slots together; null = there is no such limit. */
  readonly mostInAll: number | null;
  readonly maxPerSecond: number | null;
}

export interface LeaseTerms {
  readonly leaseMs: number;
  /** Concurrency that an endpoint begins with; default 4. */
  readonly startConcurrency?: number;
  readonly perFailingEndpoint: number;
  /** Under way at an endpoint that is silent. */
  readonly perSilentEndpoint: number;
  /** Endpoints that keep requests waiting and answer none. */
  readonly silent: Pick<ReadonlySet<string>, "has">;
  readonly endpoint: (endpointId: string) => EndpointTerms;
  /** How many more slots this process has for a company. */
  readonly capacityOfCompany: (companyId: number) => number;
  /** Before first attempts, after those of healthy endpoints, or not at all. */
  readonly retries: "first" | "last" | "none";
}

/** How many deliveries a partition may lease, and how many of them for failing endpoints. */
export interface Share {
  readonly partition: number;
  readonly wanted: number;
  readonly wantedFailing: number;
  /** For silent endpoints, not among `wanted`. */
  readonly wantedSilent: number;
}

export interface Handout {
  readonly slots: readonly Slot[];
  /** Partitions whose healthy endpoints have more first attempts waiting. */
  readonly more: ReadonlySet<number>;
  /** Partitions with more endpoints than one call may name, or with some whose pause has just ended. */
  readonly cut: ReadonlySet<number>;
  /** When the next pause of an endpoint ends, service clock, milliseconds; null = none is paused. */
  readonly nextPauseEndMs: number | null;
  /** Partitions that could not be reached, and why; they do not delay the others. */
  readonly failures: ReadonlyMap<number, Error>;
}

/**
 * Leases deliveries of every partition according to its share. If the answer of a partition is lost, its deliveries are
 * sent once their leases have expired.
 * @param fresh endpoints that are named without a look, by partition; the next round looks there
 */
export async function takeLeases(
  redis: Redis,
  shares: readonly Share[],
  terms: LeaseTerms,
  nowMs: number,
  fresh: Fresh["endpoints"] = NO_ENDPOINTS,
): Promise<Handout> {
  const [more, cut] = [new Set<number>(), new Set<number>()];
  const failures = new Map<number, Error>();
  const pauseEnds: number[] = [];
  const perShare = await Promise.all(
    shares.map(async (share) => {
      const { partition } = share;
      try {
        const named = fresh.get(partition);
        const seen = named ? seenOf(named) : await look(redis, share, terms, nowMs);
        if (seen.ended.length > 0) await reclaim(redis, partition, seen.ended, nowMs);
        if (seen.pausedUntilNow.length > 0) {
          await resume(redis, partition, seen.pausedUntilNow, nowMs);
        }
        if (seen.isCut || seen.pausedUntilNow.length > 0) cut.add(partition);
        const taken = await takeShare(redis, share, seen, terms, nowMs);
        if (taken.hasMore) more.add(partition);
        pauseEnds.push(...[seen.pauseEnd, taken.pauseEnd].filter((end) => end !== "").map(Number));
        return taken.slots;
      } catch (error) {
        failures.set(partition, error as Error);
        return [];
      }
    }),
  );
  const nextPauseEndMs = pauseEnds.length === 0 ? null : Math.min(...pauseEnds);
  return { slots: perShare.flat(), more, cut, nextPauseEndMs, failures };
}

const NO_ENDPOINTS: Fresh["endpoints"] = new Map();

interface Seen {
  readonly firsts: readonly string[];
  readonly retries: readonly string[];
  /** Expired leases. */
  readonly ended: readonly string[];
  /** Whether there may be more endpoints. */
  readonly isCut: boolean;
  /** Endpoints whose pause is over. */
  readonly pausedUntilNow: readonly string[];
  /** When the first pause ends, service clock, milliseconds; '' = none is paused. */
  readonly pauseEnd: string;
}

function seenOf(named: ReadonlySet<string>): Seen {
  const firsts = [...named].slice(0, ITEMS_PER_CALL);
  return { firsts, retries: [], ended: [], isCut: true, pausedUntilNow: [], pauseEnd: "" };
}

async function look(
  redis: Redis,
  { partition, wanted, wantedFailing, wantedSilent }: Share,
  { retries }: LeaseTerms,
  nowMs: number,
): Promise<Seen> {
  const { firstRing, retryRing, leases, pauses } = webhookKeys(partition);
  const most = Math.min(wanted, ITEMS_PER_CALL);
  // Silent endpoints are failing ones.
  const mostFailing = Math.min(Math.max(wantedFailing, wantedSilent), ITEMS_PER_CALL);
  const limits = [most, mostFailing, FAILING_FROM];
  const [firsts, retriesDue, ended, pausedUntilNow, pauseEnd] = await runTogether<LookReply>(
    redis,
    lookScript,
    [firstRing, retryRing, leases, pauses],
    [...[nowMs, ...limits].map(String), retries === "none" ? "0" : "1", String(ITEMS_PER_CALL)],
    LOOK_US,
  );
  const isCut = most > 0 && Math.max(firsts.length, retriesDue.length, ended.length) >= most;
  return { firsts, retries: retriesDue, ended, isCut, pausedUntilNow, pauseEnd };
}

type LookReply = [
  firsts: string[],
  retries: string[],
  ended: string[],
  pausedUntilNow: string[],
  pauseEnd: string,
];

/** Endpoints return to the rings: the next round leases of them. */
async function resume(
  redis: Redis,
  partition: number,
  endpointIds: readonly string[],
  nowMs: number,
): Promise<void> {
  const keys = webhookKeys(partition);
  const { firstRing, retryRing, pauses, failing, turns } = keys;
  await run(
    redis,
    resumeScript,
    [
      ...[firstRing, retryRing, pauses, failing, turns],
      ...endpointIds.flatMap((id) => [keys.queue(id), keys.retries(id)]),
    ],
    [String(nowMs), String(FAILING_FROM), ...endpointIds],
  );
}

/** Puts back deliveries whose lease expired. */
async function reclaim(
  redis: Redis,
  partition: number,
  ended: readonly string[],
  nowMs: number,
): Promise<void> {
  const keys = webhookKeys(partition);
  const { firstRing, retryRing, leases, inFlight, turns, failing, ledger } = keys;
  const perLease = ended.flatMap((member) => {
    const [endpointId = "", deliveryId = ""] = member.split(" ");
    return [keys.delivery(deliveryId), keys.queue(endpointId), keys.retries(endpointId)];
  });
  await run(
    redis,
    reclaimScript,
    [firstRing, retryRing, leases, inFlight, turns, failing, ledger, ...perLease],
    [String(nowMs), String(FAILING_FROM), ...ended],
  );
}

const SLOT_LINES = 4;
/** What the lease of a request without a slot begins with. */
const SILENT_LEASE = "w";

interface Taken {
  readonly slots: readonly Slot[];
  readonly hasMore: boolean;
  readonly pauseEnd: string;
}

async function takeShare(
  redis: Redis,
  { partition, wanted, wantedFailing, wantedSilent }: Share,
  { firsts, retries }: Seen,
  terms: LeaseTerms,
  nowMs: number,
): Promise<Taken> {
  if (firsts.length + retries.length === 0) return { slots: [], hasMore: false, pauseEnd: "" };
  const keys = webhookKeys(partition);
  const { firstRing, retryRing, leases, inFlight, turns, failing, concurrencies, rates, pauses } =
    keys;
  const { leaseMs, perFailingEndpoint, perSilentEndpoint } = terms;
  const { startConcurrency = START_CONCURRENCY } = terms;
  const limits = [perFailingEndpoint, perSilentEndpoint, startConcurrency, CONCURRENCY_LIFE_MS];
  const order = [FAILING_FROM, terms.retries === "first" ? 1 : 0, firsts.length];
  const numbers = [nowMs, leaseMs, wanted, wantedFailing, wantedSilent, ...limits, ...order];
  const endpointIds = [...firsts, ...retries];
  const known = new Map(endpointIds.map((id) => [id, terms.endpoint(id)]));
  const [hasMore, text, pauseEnd] = await runTogether<[string, string, string]>(
    redis,
    leaseScript,
    [
      ...[firstRing, retryRing, leases, inFlight, turns, failing, concurrencies, rates, pauses],
      ...firsts.map(keys.queue),
      ...retries.map(keys.retries),
    ],
    [...numbers.map(String), ...endpointIds, ...termTexts(endpointIds, known, terms, wanted)],
    (wanted + wantedSilent) * LEASE_US,
  );
  const lines = text === "" ? [] : text.split("\n");
  const slots: Slot[] = [];
  for (let at = 0; at < lines.length; at += SLOT_LINES) {
    const [endpointId = "", deliveryId = "", lease = ""] = [
      lines[at],
      lines[at + 1],
      lines[at + 2],
    ];
    const { companyId = 0, most = 1 } = known.get(endpointId) ?? {};
    const [failing, silent] = [lines[at + 3] === "1", lease.startsWith(SILENT_LEASE)];
    slots.push({ partition, endpointId, deliveryId, lease, failing, silent, companyId, most });
  }
  return { slots, hasMore: hasMore === "1", pauseEnd };
}

/** For each endpoint the six numbers that `lease.lua` asks for. What a company may lease is dealt out to its endpoints. */
function termTexts(
  endpointIds: readonly string[],
  known: ReadonlyMap<string, EndpointTerms>,
  { silent, capacityOfCompany }: LeaseTerms,
  wanted: number,
): string[] {
  const byCompany = Map.groupBy(known, ([, { companyId }]) => companyId);
  const shares = new Map<string, number>();
  for (const [companyId, endpoints] of byCompany) {
    const capacity = capacityOfCompany(companyId);
    const each = Math.floor(capacity / endpoints.length);
    const odd = capacity - each * endpoints.length;
    endpoints.forEach(([id], at) => {
      shares.set(
        id,
        capacity >= wanted || silent.has(id) ? MOST_LEASED : each + (at < odd ? 1 : 0),
      );
    });
  }
  return endpointIds.map((id) => {
    const { most = 0, mostInAll = null, maxPerSecond = null } = known.get(id) ?? {};
    const { burst, perSecond } =
      maxPerSecond === null ? { burst: 0, perSecond: 0 } : rateBucket(maxPerSecond);
    const isSilent = silent.has(id) ? 1 : 0;
    return [isSilent, most, mostInAll ?? 0, burst, perSecond, shares.get(id) ?? 0].join(" ");
  });
}

/** Of one call: as many as `lease.lua` hands out. */
const MOST_LEASED = 1_000;

export interface Read {
  readonly leased: readonly Leased[];
  /** Deliveries that expired after 30 days. */
  readonly gone: readonly Slot[];
  /** Why some could not be read; they are sent once their leases have expired. */
  readonly failure: Error | null;
}

/**
 * The content to send for leases: first the deliveries, then their shipments, each read at one point in time.
 * @param known shipments by delivery: asked for right behind the deliveries, on the same connection
 */
export async function readLeased(
  redis: Redis,
  slots: readonly Slot[],
  known: Fresh["shipments"] = NO_SHIPMENTS,
): Promise<Read> {
  const rows = new Map<Slot, DeliveryRow | null>();
  const facts = new Map<string, Leased["fact"]>();
  const bySlot = Map.groupBy(slots, ({ partition }) => partition);
  const shipments: Shipments = new Map();
  const readingDeliveries = readSome(
    redis,
    bySlot,
    ({ partition, deliveryId }) => webhookKeys(partition).delivery(deliveryId),
    async (keys, part) => {
      const text = await run<string>(redis, readDeliveriesScript, keys, []);
      readRows(text, part, rows, facts);
    },
  );
  const early = new Set(slots.flatMap(({ deliveryId }) => known.get(deliveryId) ?? []));
  const [deliveries] = await Promise.all([
    readingDeliveries,
    readShipments(redis, early, shipments),
  ]);
  const ids = [...rows.values()].flatMap((row) => row?.words.shipmentId ?? []);
  const unread = new Set(ids.filter((id) => !shipments.has(id)));
  const read = await readShipments(redis, unread, shipments);
  const leased: Leased[] = [];
  const gone: Slot[] = [];
  for (const [slot, row] of rows) {
    const shipment = row === null ? undefined : shipments.get(row.words.shipmentId);
    if (row === null) gone.push(slot);
    else if (shipment) leased.push(leasedOf(slot, row, shipment));
  }
  return { leased, gone, failure: deliveries ?? read };
}

const NO_SHIPMENTS: Fresh["shipments"] = new Map();

type Shipments = Map<number, Leased["shipment"]>;

/** @returns why some could not be read */
function readShipments(
  redis: Redis,
  ids: ReadonlySet<number>,
  into: Shipments,
): Promise<Error | null> {
  return readSome(
    redis,
    Map.groupBy(ids, shipmentPartition),
    (id) => companyKeys(shipmentPartition(id)).shipment(id),
    async (keys, part) => {
      const found = await readFields<(Buffer | null)[]>(
        redis,
        keys,
        SHIPMENT_FIELDS,
        binary(redis),
      );
      for (const [at, id] of part.entries()) {
        const row = found[at] ?? [];
        into.set(
          id,
          once(() => storedShipment(id, row)),
        );
      }
    },
  );
}

/** Member by member: copies of objects cost more than all else that is done here for a delivery. */
function leasedOf(slot: Slot, row: DeliveryRow, shipment: Leased["shipment"]): Leased {
  const { words } = row;
  return {
    partition: slot.partition,
    endpointId: slot.endpointId,
    deliveryId: slot.deliveryId,
    lease: slot.lease,
    failing: slot.failing,
    silent: slot.silent,
    companyId: slot.companyId,
    most: slot.most,
    eventId: words.eventId,
    shipmentId: words.shipmentId,
    channelId: words.channelId,
    trigger: words.trigger,
    createdAtMs: words.createdAtMs,
    generation: row.generation,
    attemptsMade: row.attemptsMade,
    attemptsText: row.attemptsText,
    fact: row.fact,
    shipment,
  };
}

const SHIPMENT_FIELDS = ["c", "st", "v"];

/**
 * One command per server (and per 100 keys).
 * @returns why some could not be read
 */
async function readSome<T>(
  redis: Redis,
  groups: ReadonlyMap<number, readonly T[]>,
  keyOf: (item: T) => string,
  read: (keys: string[], items: readonly T[]) => Promise<void>,
): Promise<Error | null> {
  const calls = readTogether(redis, groups).flatMap((items) => chunks(items, ITEMS_PER_CALL));
  const results = await Promise.allSettled(calls.map((items) => read(items.map(keyOf), items)));
  const failed = results.find(({ status }) => status === "rejected");
  return failed?.status === "rejected" ? (failed.reason as Error) : null;
}

interface DeliveryRow
  extends Pick<Leased, "generation" | "attemptsMade" | "attemptsText" | "fact"> {
  readonly words: Omit<FrozenDelivery, "fact">;
}

const DELIVERY_LINES = 5;

/**
 * Parses the reply of `read-deliveries.lua`.
 * @param rows is given a row for each slot, null if the delivery no longer exists
 */
function readRows(
  text: string,
  slots: readonly Slot[],
  rows: Map<Slot, DeliveryRow | null>,
  facts: Map<string, Leased["fact"]>,
): void {
  const lines = text.split("\n");
  slots.forEach((slot, at) => {
    const first = DELIVERY_LINES * at;
    const [frozen = "", factText = ""] = [lines[first + 2], lines[first + 3]];
    if (frozen === "") {
      rows.set(slot, null);
      return;
    }
    const words = readWords(frozen);
    if (factText !== "")
      facts.set(
        words.eventId,
        once((): ChangeFact => JSON.parse(factText)),
      );
    const fact = facts.get(words.eventId) ?? missingFact;
    rows.set(slot, {
      words,
      fact,
      generation: Number(lines[first]),
      attemptsMade: Number(lines[first + 1]),
      attemptsText: lines[first + 4] ?? "[]",
    });
  });
}

/** Thrown only when it is used: one such delivery does not stop the others. */
function missingFact(): never {
  throw new Error("a delivery is leased without its fact");
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Lengthens leases whose answer came late. @returns whether all of them were still there: nobody else has been given one meanwhile */
export async function keepLeases(
  redis: Redis,
  slots: readonly Slot[],
  leaseMs: number,
): Promise<boolean> {
  const groups = Map.groupBy(slots, ({ partition }) => partition);
  const kept = await perPartition(groups, (partition, group) =>
    renewIn(redis, partition, group, leaseMs),
  );
  return kept.reduce((sum, count) => sum + count, 0) === slots.length;
}

/**
 * Lengthens the leases of what is still under way: one script call a partition (and 100 deliveries).
 * @returns why those of a partition could not be lengthened
 */
export async function renewLeases(
  redis: Redis,
  underWay: Iterable<Slot>,
  leaseMs: number,
): Promise<ReadonlyMap<number, Error>> {
  const failures = new Map<number, Error>();
  const groups = Map.groupBy(underWay, ({ partition }) => partition);
  await perPartition(groups, async (partition, group) => {
    try {
      await renewIn(redis, partition, group, leaseMs);
    } catch (error) {
      failures.set(partition, error as Error);
    }
  });
  return failures;
}

/** @returns how many leases were lengthened: one that has ended stays ended */
async function renewIn(
  redis: Redis,
  partition: number,
  slots: readonly Slot[],
  leaseMs: number,
): Promise<number> {
  const { leases } = webhookKeys(partition);
  let count = 0;
  for (const part of chunks(slots, ITEMS_PER_CALL)) {
    const members = part.map((one) => `${one.endpointId} ${one.deliveryId} ${one.lease}`);
    count += await run<number>(redis, renewScript, [leases], [String(leaseMs), ...members]);
  }
  return count;
}
