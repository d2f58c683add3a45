/** One round through everything that the store does with scripts, the webhooks' and the labels' excepted. */

import { writeAudit } from "#core/accounts/store/audit-log.ts";
import { markAuditTaken } from "#core/accounts/store/audit-taken.ts";
import {
  nextBatches,
  readArchiveSummary,
  returnBatches,
} from "#core/archive/store/archive-summary.ts";
import { markBatch } from "#core/archive/store/held-channels.ts";
import { numberRows, readLeaving, removeShipments } from "#core/archive/store/remove-shipments.ts";
import { restoreShipments } from "#core/archive/store/restore-shipments.ts";
import { forgetNumbers, noteRetiring, retireBatches } from "#core/archive/store/retirement.ts";
import {
  beginGeneration,
  type CompactReference,
  compactReferences,
  forgetReferences,
} from "#core/events/store/compact-references.ts";
import { forgetCourierCounts, readCourierCounts } from "#core/events/store/courier-counts.ts";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { eraseWaitingEvents } from "#core/events/store/erase-events.ts";
import { claimEvents, lookUpEvents } from "#core/events/store/event-log.ts";
import {
  dropParked,
  expireParked,
  PARKED_MS,
  type ParkedEvent,
  parkEvents,
} from "#core/events/store/parked.ts";
import {
  candidateOf,
  registerReferences,
  resolveReferences,
} from "#core/events/store/references.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { type EventTerms, takeEvent } from "#core/events/store/take-event.ts";
import { beginRequest, endRequest } from "#core/merchants/store/idempotency.ts";
import {
  acceptJob,
  finishChunk,
  finishJob,
  noteCallback,
  readJob,
} from "#core/merchants/store/jobs/import-jobs.ts";
import { renewWork, settleWork, takeWork } from "#core/merchants/store/jobs/work-queue.ts";
import { acceptMessages, type Message, recordMessage } from "#core/merchants/store/messages.ts";
import { putOrders } from "#core/merchants/store/orders.ts";
import { admitRequest } from "#core/merchants/store/rate-limit.ts";
import { changeSandbox } from "#core/merchants/store/sandbox.ts";
import {
  discardDeadLetter,
  listDeadLetters,
  redriveDeadLetter,
} from "#core/platform/log/dead-letters.ts";
import { logEntry } from "#core/platform/log/log-entry.ts";
import {
  acknowledge,
  MAX_TRIES,
  readDueRetries,
  settleRetries,
} from "#core/platform/log/retries.ts";
import { createRunningTime } from "#core/platform/log/running-time.ts";
import { LOGS, readLags, trimLog } from "#core/platform/log/streams.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  AUDIT_LOG,
  attemptLogs,
  changeLogs,
  companyKeys,
  companyPartition,
  deadLetterKey,
  eventLogs,
  externalReference,
  retriesKey,
  retryAgesKey,
  shipmentPartition,
  trackingReference,
} from "#core/platform/redis/keys.ts";
import { idStride } from "#core/platform/redis/partitions.ts";
import { searchShipments } from "#core/search/store/search.ts";
import { addFurtherTexts, findByPart, forgetLines } from "#core/search/store/search-lines.ts";
import { PENDING_CALLBACK } from "#core/shipments/rules/import-callback.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { correctShipment } from "#core/shipments/store/correct-shipment.ts";
import { createItems } from "#core/shipments/store/create-items.ts";
import { registerAgain } from "#core/shipments/store/register-shipments.ts";
import { readHistory, readShipments, takeNumbers } from "#core/shipments/store/shipments.ts";
import { forgetUnmapped } from "#core/statuses/store/unmapped.ts";
import { markTaken } from "#core/webhooks/store/attempt-log.ts";
import { event } from "#test/support/clients/courier.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { channelOf } from "#test/support/data/setup.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";

const COURIER = "GLS_ITA";
const LOG = eventLogs()[0] ?? "";

/** @param redis the client whose calls are looked at */
export async function tourOfTheStore(runtime: TestRuntime, redis: Redis): Promise<void> {
  const own = { ...runtime, redis };
  const [first = 0, second = 0] = await shipmentTour(own);
  await eventTour(own);
  await retryTour(own);
  await runningTour(own);
  await queueTour(own, first);
  await merchantTour(own);
  await archiveTour(own, [first, second]);
  await readShipments(redis, [first, second]);
  await readHistory(redis, first);
  await readLags(redis);
  await trimLog(redis, "change", changeLogs()[shipmentPartition(first)] ?? "");
}

function item(trackingNumber: string): ShipmentInput {
  const custom = { customAttributes: { custom1: "one", custom2: trackingNumber } };
  return {
    courier: COURIER,
    trackingNumber,
    shipDate: "2026-11-09",
    orderReference: "ORDER",
    language: "it",
    destination: { postcode: "00118", country: "IT" },
    ...custom,
  } as unknown as ShipmentInput;
}

async function shipmentTour(runtime: TestRuntime): Promise<number[]> {
  const { redis, log, live } = runtime;
  const deps = { redis, log, configuration: live.configuration() };
  const { companyId, id: channelId } = channelOf(runtime);
  const ids: number[] = [];
  // The second call finds everything in place.
  for (const numbers of [
    ["T1", "T2"],
    ["T3", "T1"],
  ]) {
    const outcomes = await createItems(deps, channelOf(runtime), numbers.map(item), live.now());
    ids.push(...outcomes.flatMap((one) => (one.kind === "created" ? [one.id] : [])));
  }
  const search = () =>
    searchShipments(redis, {
      companyId,
      channelIds: [channelId],
      order: { by: "id", descending: false } as const,
      offset: 0,
      limit: 10,
      exact: { orderReference: "ORDER" },
      trackingNumber: null,
      shipFrom: null,
      shipTo: null,
      updatedFrom: null,
      statuses: ["IN_TRANSIT"],
    });
  const columns = () =>
    searchShipments(redis, {
      companyId,
      channelIds: [channelId],
      order: { by: "id", descending: false } as const,
      offset: 0,
      limit: 10,
      exact: {},
      trackingNumber: null,
      shipFrom: null,
      shipTo: null,
      updatedFrom: null,
      statuses: ["IN_TRANSIT"],
    });
  await columns();
  // From the second commit on everything stands that a commit looks at.
  await redis.set(companyKeys(companyPartition(companyId)).mappingFloor, "0");
  for (const code of ["XYZ", "TRN", "OUT", "NEW", "HLD", "NEW", "DLV"]) {
    await applyEvents(
      runtime,
      ids.slice(0, 2).map((shipmentId) => ({ shipmentId, code })),
    );
    await columns();
  }
  await search();
  await findByPart(redis, companyId, [channelId], { text: "T1", courier: "" });
  await addFurtherTexts(
    redis,
    ids.map((shipmentId) => ({
      companyId,
      channelId,
      shipmentId,
      courier: COURIER,
      text: `${shipmentId}-NEW`,
    })),
  );
  await forgetLines(redis, companyId, channelId, new Set(ids.slice(0, 1)));
  return ids;
}

/** To the archive and back; one of the references is shared. */
async function archiveTour(runtime: TestRuntime, ids: readonly number[]): Promise<void> {
  const { redis, live, config } = runtime;
  const { companyId, id: channelId } = channelOf(runtime);
  await beginGeneration(redis, live.now(), config.eventsPerDay);
  await numberRows(redis, companyId, channelId);
  const leaving = await readLeaving(redis, ids);
  const returned = await nextBatches(redis, companyId, 1);
  await returnBatches(redis, companyId, returned, returned);
  const batch = await nextBatches(redis, companyId, 2);
  const archived = { endedAtMs: live.now(), ownsNumber: true, orderHash: null };
  const references = leaving.flatMap(({ whole: { id }, facts: { meta } }): CompactReference[] => [
    {
      reference: trackingReference(COURIER, meta.trackingNumber),
      isNumber: true,
      candidate: { ...candidateOf(id, meta), archived },
    },
    {
      reference: externalReference(COURIER, "ACC-1", "ORDER"),
      isNumber: false,
      candidate: { ...candidateOf(id, meta), archived },
    },
  ]);
  await compactReferences(redis, references);
  await compactReferences(redis, references);
  await resolveReferences(
    redis,
    references.map(({ reference }) => reference),
  );
  // The first of the two batches never counts.
  await removeShipments(redis, companyId, batch + 1, leaving);
  await readArchiveSummary(redis, companyId);
  await registerReferences(
    redis,
    references.map(({ reference, candidate }) => ({
      ...candidate,
      shipmentId: candidate.shipmentId + idStride(),
      reference,
    })),
  );
  await restoreShipments(
    redis,
    leaving.map(({ whole, facts }) => ({ companyId, batch: batch + 1, whole, facts })),
  );
  await takeNumbers(
    redis,
    leaving.map(({ whole: { id }, facts: { meta } }) => {
      return { ...meta, shipmentId: id, trackingNumber: `${meta.trackingNumber}-NEW` };
    }),
  );
  const correction = { orderReference: "tour", customAttributes: { custom1: "tour" } };
  const by = { atMs: 0, apiKey: "main" };
  await correctShipment(redis, leaving[0]?.whole.id ?? 0, correction, by);
  await retirementTour(runtime, references);
}

async function retirementTour(
  { redis, live }: TestRuntime,
  references: readonly CompactReference[],
): Promise<void> {
  const items = references.map(({ reference, candidate: { shipmentId, companyId, channelId } }) => {
    return { reference, shipmentId, companyId, channelId };
  });
  await forgetReferences(redis, items);
  await forgetNumbers(
    redis,
    items.map((one) => ({ ...one, courier: COURIER, number: "NOBODY" })),
  );
  const [{ companyId, channelId } = { companyId: 0, channelId: 0 }] = items;
  const { floor = 0, batch = 0, moves = 0 } = (await readArchiveSummary(redis, companyId)) ?? {};
  await noteRetiring(redis, companyId, batch + 1, "2026-01-01");
  const counts = [{ channel: channelId, status: 0, shipments: 1 }];
  const removal = { atMs: 0, archivedBefore: "2026-01-01", shipments: 1 };
  const terms = { from: floor, to: batch + 1, moves };
  await retireBatches(redis, companyId, terms, counts, removal);
  await registerAgain(
    redis,
    live.configuration(),
    items.map(({ shipmentId }) => shipmentId),
  );
  await forgetUnmapped(redis, items[0]?.shipmentId ?? 0, COURIER, ["NOBODY"]);
  await markBatch(redis, companyId, batch + 1, [items[0]?.shipmentId ?? 0]);
}

async function eventTour({ redis, live, config }: TestRuntime): Promise<void> {
  const nowMs = live.now();
  const layout = await seenLayout(redis, nowMs, config.eventsPerDay);
  const terms = { layout, highWater: 1_000, courier: COURIER, nowMs };
  const events = Array.from({ length: 6 }, (_, at) => seenBucket(COURIER, `tour-${at}`)).filter(
    ({ partition }, _, all) => partition === all[0]?.partition,
  );
  const claims = events.map((seen, at) => ({ seen, entry: `{"n":${at}}` }));
  await claimEvents(redis, terms, claims.slice(0, 1));
  await claimEvents(redis, terms, claims);
  await lookUpEvents(redis, layout, events);
  const reference = trackingReference(COURIER, "UNKNOWN");
  const parked = (factKey: string, receivedAtMs: number) =>
    ({
      factKey,
      receivedAtMs,
      messageIndex: 0,
      event: { eventId: factKey },
    }) as unknown as ParkedEvent;
  const [old, fresh, third] = [
    parked("old", nowMs - 8 * 86_400_000),
    parked("fresh", nowMs),
    parked("third", nowMs),
  ];
  for (const one of [old, fresh, third]) {
    await parkEvents(redis, [{ reference, fingerprint: "", parked: one }], one.receivedAtMs);
  }
  await dropParked(redis, [{ references: [reference], factKey: third.factKey }]);
  await expireParked(redis, nowMs + PARKED_MS);
  await forgetCourierCounts(redis, await readCourierCounts(redis), nowMs + 86_400_000);
  await takeCourierRate(redis, COURIER, { perSecond: 5, burst: 10 }, nowMs);
  await takeCourierRate(redis, COURIER, { perSecond: 5, burst: 10 }, nowMs);
  await takenEventTour(redis, { version: live.configuration().version, layout, nowMs });
}

async function takenEventTour(redis: Redis, terms: Omit<EventTerms, "rate">): Promise<void> {
  const reference = trackingReference(COURIER, "TOUR-TAKEN");
  const owner = { companyId: 1, channelId: 1, isPlaceholder: false, orderReference: null };
  const shipmentId = idStride();
  await registerReferences(redis, [{ ...owner, shipmentId, shipDay: 20_000, reference }]);
  const rate = { subject: COURIER, limit: { perSecond: 5, burst: 10 } };
  const logged = { courier: COURIER, factKey: "tour", receivedAtMs: terms.nowMs, messageIndex: 0 };
  const sent = event({ trackingNumber: "TOUR-TAKEN" });
  const seen = seenBucket(COURIER, sent.eventId);
  await takeEvent(redis, { ...terms, rate }, { ...logged, event: sent, seen, reference }, 1_000);
}

/** Runs, is gone, and runs again. */
async function runningTour({ redis, live }: TestRuntime): Promise<void> {
  const running = createRunningTime(redis);
  await running.note(live.now());
  await running.end(live.now());
  await running.note(live.now() + 86_400_000);
}

/** Fails until it is a dead letter, and drives it again. */
async function retryTour({ redis, live }: TestRuntime): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    await redis.xAdd(LOG, "*", { e: `{"round":${round}}\n` });
    const read = await redis.xReadGroup("track", "tour", { key: LOG, id: ">" }, { COUNT: 10 });
    const messages = (read as unknown as { messages: { id: string; message: object }[] }[])[0];
    const entries = (messages?.messages ?? []).map(({ id, message }) =>
      logEntry(LOG, id, message as Record<string, string>, LOGS.event.split),
    );
    const failures = entries.flatMap(({ items }) =>
      items.map((entry) => ({ entry, reason: "no" })),
    );
    await acknowledge(redis, "track", LOG, entries, failures);
  }
  await trimLog(redis, "event", LOG);
  for (let tries = 1; tries < MAX_TRIES; tries += 1) {
    const due = await retriesOf(redis);
    await settleRetries(
      redis,
      "track",
      due.map((retry) => ({ retry: { ...retry, tries }, reason: "no" })),
    );
  }
  const { letters } = await listDeadLetters(redis, null, 10);
  for (const { id } of letters) await redriveDeadLetter(redis, id, live.now());
  await eraseTour(redis);
  const fields = { log: LOG, group: "track", id: "1-1", reason: "no", entry: "{}" };
  await redis.xAdd(deadLetterKey(LOG), "*", fields);
  const [unwanted] = (await listDeadLetters(redis, null, 1)).letters;
  await discardDeadLetter(redis, unwanted?.id ?? "");
  for (const retry of await retriesOf(redis)) {
    await settleRetries(redis, "track", [{ retry, reason: null }]);
  }
}

/** A retry and a dead letter that name a recipient. */
async function eraseTour(redis: Redis): Promise<void> {
  const event = { reason: { code: "R", description: "Anna" } };
  const entry = JSON.stringify({ e: JSON.stringify([77, COURIER, "key", 0, 0, event]) });
  const retry = JSON.stringify({ id: "1-2", entry, tries: 1 });
  const keys = [retriesKey(LOG, "track"), retryAgesKey(LOG, "track")];
  for (const key of keys) await redis.zAdd(key, { score: Date.now() + 3_600_000, value: retry });
  const letter = { log: LOG, group: "track", id: "1-2", reason: "no", entry };
  await redis.xAdd(deadLetterKey(LOG), "*", letter);
  await eraseWaitingEvents(redis, 77);
  // All keys stay, as if they had never been here.
  for (const key of keys) await redis.zRemRangeByRank(key, -1, -1);
  const [left] = (await listDeadLetters(redis, null, 1)).letters;
  await redis.xDel(deadLetterKey(LOG), left?.id.replace("e0-", "") ?? "");
}

/** Due or not. */
async function retriesOf(redis: Redis) {
  await readDueRetries(redis, [LOG], "track", 10);
  const texts = await redis.zRange(`${LOG}:retries:track`, 0, -1);
  return texts.map((text) => {
    const { id, entry, tries = 1 } = JSON.parse(text);
    return { key: LOG, id, fields: JSON.parse(entry), tries, text };
  });
}

async function queueTour(runtime: TestRuntime, shipmentId: number): Promise<void> {
  const { redis, live } = runtime;
  const nowMs = live.now();
  const { companyId, id: channelId } = channelOf(runtime);
  const partition = companyPartition(companyId);
  for (let n = 0; n < 3; n += 1) {
    const chunks = [{ from: 0, text: "[{}]" }];
    const job = { companyId, channelId, chunks, total: 1, webhookUrl: "https://a.test/" };
    if ((await acceptJob(redis, job, nowMs)) === null) throw new Error("not accepted");
  }
  // The first lease has ended when the others are taken.
  await takeWork(redis, "imports", { wanted: 1, leaseMs: 0, nowMs });
  const { taken } = await takeWork(redis, "imports", { wanted: 3, leaseMs: 60_000, nowMs });
  for (const [at, one] of taken.entries()) {
    await renewWork(redis, "imports", one, 60_000);
    await finishChunk(redis, partition, one.id, 0, { successes: [], errors: [] });
    const job = await readJob(redis, partition, one.id, nowMs);
    if (job) await finishJob(redis, partition, job, null, nowMs);
    await noteCallback(redis, partition, { jobId: one.id, channelId }, PENDING_CALLBACK);
    await settleWork(redis, "imports", one, at === 0 ? nowMs : null);
  }
  const last = await takeWork(redis, "imports", { wanted: 1, leaseMs: 60_000, nowMs });
  for (const one of last.taken) {
    await settleWork(redis, "imports", one, null);
  }
  const begun = await beginRequest(redis, { companyId, channelId }, "key", "print", nowMs);
  if (begun.kind !== "begun") throw new Error("not begun");
  await endRequest(redis, { companyId, channelId }, "key", begun.owner, "answer");
  const message = (messageId: string): Message => ({
    messageId,
    type: "email",
    shipmentId,
    to: "a@b.it",
    from: null,
    subject: "",
    text: "",
    html: null,
  });
  for (const messageId of ["m1", "m2"]) {
    const one = { message: message(messageId), topic: messageId, oncePerMs: 1_000 };
    await acceptMessages(redis, [one, one], nowMs);
    await recordMessage(redis, one.message, { messageId } as never);
  }
}

async function merchantTour(runtime: TestRuntime): Promise<void> {
  const { redis, live } = runtime;
  const channel = channelOf(runtime);
  const owner = { companyId: channel.companyId, channelId: channel.id };
  const order = (reference: string, deleted: boolean, parcels: number) =>
    ({
      source: "shop",
      reference,
      orderDate: "2026-11-09T10:00:00Z",
      deleted,
      items: [],
      parcels: Array.from({ length: parcels }, (_, n) => ({ number: n + 1 })),
    }) as never;
  for (const [deleted, parcels] of [
    [false, 2],
    [false, 1],
    [true, 1],
  ] as const) {
    await putOrders(
      redis,
      owner,
      [order("A", deleted, parcels), order("B", deleted, 1)],
      live.now(),
    );
  }
  const apiKey = { id: 1 } as never;
  for (let n = 0; n < 4; n += 1) {
    await admitRequest(redis, { ...channel, bucketSize: 2, refillRate: 1 }, apiKey, live.now());
  }
  const [key = ""] = attemptLogs();
  for (const n of ["3", "5"]) await markTaken(redis, [{ key, id: "1-1", fields: { n } }]);
  const change = { actor: "x", action: "POST /x", target: "/x", before: null, after: null };
  await writeAudit(redis, { tenant: "operators", atMs: live.now(), ...change });
  await markAuditTaken(redis, [
    { key: AUDIT_LOG, id: "1-1", fields: { tenant: "operators", n: "1" } },
  ]);
  const sandbox = companyKeys(companyPartition(channel.companyId)).sandbox(channel.id);
  await redis.hSet(sandbox, "1", JSON.stringify({ createdAtMs: 1, row: { id: 1 } }));
  await changeSandbox(redis, channel, 1, { intValue: 2 }, live.now());
}
