/**
 * Design, "Part of the store away is part of the service away": a master and its replica are killed under the whole product. Everything
 * that does not need their shard is served and processed meanwhile, and once they are back nothing was lost or doubled.
 */
import { expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { companyTag, trackingReference } from "#core/platform/redis/keys.ts";
import { event, type PushResult, push } from "#test/support/clients/courier.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { type Merchant, signIn } from "#test/support/clients/merchant.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { untilServed } from "#test/support/clients/until-served.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { openClusterProduct } from "#test/support/product/cluster-product.ts";
import { areReady } from "#test/support/product/product.ts";

const SHIPMENTS = 40;
const SENDERS = 2;
const EVENTS_BETWEEN = 50;
/** Of the company in another shard, one by one while the shard is unavailable. */
const EVENTS_MEANWHILE = 30;
const COURIER = "GLS_ITA";
/** The first company of the setup has its partition there; the second one, the courier's rate and the configuration do not. */
const LOST = companyTag(1);

const own = forAll(() => openClusterProduct());

/** Events of numbers, each with its reference and its eventId in other shards. */
async function eventsElsewhere(numbers: readonly string[], count: number): Promise<CourierEvent[]> {
  const { cluster } = own;
  const lost = await cluster.shardOf(LOST);
  const isThere = async (tag: string) => (await cluster.shardOf(tag)) !== lost;
  const found: CourierEvent[] = [];
  for (let n = 0; found.length < count; n += 1) {
    const trackingNumber = numbers[n % numbers.length] ?? "";
    const occurredAt = new Date(Date.parse("2026-11-02T00:00:00Z") + n * 1_000).toISOString();
    const made = event({ trackingNumber, occurredAt });
    const one = { ...made, status: { code: "TRN", description: made.eventId } };
    const tags = [
      `{t${trackingReference(COURIER, trackingNumber).partition}}`,
      `{e${seenBucket(COURIER, one.eventId).partition}}`,
    ];
    if ((await Promise.all(tags.map(isThere))).every(Boolean)) found.push(one);
  }
  return found;
}

/** The eventIds in the histories of shipments, as their merchant is shown them. */
async function historiesOf(merchant: Merchant, ids: readonly number[]): Promise<string[]> {
  const found: string[] = [];
  for (const id of ids) {
    const { history } = await untilServed(() => merchant.call("GET", `/v2/shipments/${id}`));
    found.push(...history.map((one: { courierStatus: string }) => one.courierStatus));
  }
  return found.toSorted();
}

/** Applied, sent and analysed while the shard is unavailable, by ports that are ready and a panel that can be read. */
async function expectServedMeanwhile(
  beta: Merchant,
  otherIds: readonly number[],
  meanwhile: readonly CourierEvent[],
): Promise<void> {
  const due = meanwhile.map(({ eventId }) => eventId).toSorted();
  const { product, receiver } = own;
  await eventually(
    async () => Bun.deepEquals(await historiesOf(beta, otherIds), due),
    "events of the other shards are applied",
  );
  const told = new Set(meanwhile.map(({ trackingNumber }) => trackingNumber));
  const webhooks = () =>
    receiver.requests.filter(({ body }) => told.has(body.data.shipment.trackingNumber)).length;
  await eventually(
    () => webhooks() === due.length,
    () => `${due.length} webhooks, ${webhooks()}`,
  );
  const overview = await eventually(async () => {
    const { missing, lag } = await readPanel(product, "/overview");
    const left = lag.find(({ group }: { group: string }) => group === "analytics");
    return left.entries === 0 && { missing };
  }, "the analytics have written what the other shards hold");
  expect(overview.missing).toContain(LOST);
  expect(await areReady([product.ingest, product.api, product.panel])).toBe(true);
}

test("a lost shard takes nothing with it that does not need it, and everything catches up when it is back", async () => {
  const { cluster, product, receiver } = own;
  const ids = await createShipments(product, "AWAY", SHIPMENTS);
  const otherIds = await createShipments(product, "THERE", SHIPMENTS, "key_beta_main");
  const [acme, beta] = [
    await signIn(product.api, "key_acme_main"),
    await signIn(product.api, "key_beta_main"),
  ];
  const numbers = otherIds.map((_, at) => `THERE-${at}`);
  const meanwhile = await eventsElsewhere(numbers, EVENTS_MEANWHILE);
  const refused: PushResult[] = [];
  const onAnswer = (answer: PushResult) => {
    if (answer.status !== 200) refused.push(answer);
  };
  const streaming = { senders: SENDERS, onAnswer };
  const stream = startEventStream(product, "AWAY", SHIPMENTS, streaming);
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  const measuring = startMeasuring(
    "Hurt everything",
    "an unavailable shard of the cluster, master and replica, under the whole product",
  );
  const lostAtMs = performance.now();
  const bringBack = await cluster.loseShard(LOST);
  await eventually(
    () => refused.some(({ headers }) => Number(headers.get("retry-after")) > 0),
    "couriers of the lost shard are asked to send again",
  );
  const turnedAway = await acme.call("GET", `/v2/shipments/${ids[0]}`);
  expect([turnedAway.status, turnedAway.body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
  expect(Number(turnedAway.headers.get("retry-after"))).toBeGreaterThan(0);

  for (const one of meanwhile) {
    const { outcome } = (await untilAnswered(() => push(product.ingest, [one]))).results[0];
    expect(["ACCEPTED", "DUPLICATE"]).toContain(outcome);
  }
  const due = meanwhile.map(({ eventId }) => eventId).toSorted();
  await expectServedMeanwhile(beta, otherIds, meanwhile);
  const unavailableSeconds = Math.round((performance.now() - lostAtMs) / 100) / 10;

  const backAtMs = performance.now();
  await bringBack();
  await stream.grows("one is accepted again");
  measuring.recovered(backAtMs);
  await stream.grows("events go on being accepted", EVENTS_BETWEEN);
  await stream.stop();
  expect(stream.unanswered).toEqual([]);
  expect(new Set(refused.map(({ status, body }) => `${status} ${body.code}`))).toEqual(
    new Set(["503 STORE_UNAVAILABLE"]),
  );
  const accepted = new Map(stream.accepted);
  for (const one of meanwhile) accepted.set(one.eventId, one);
  const counted = await expectExactlyOnce(product, "AWAY", ids, accepted);
  expect(await historiesOf(beta, otherIds)).toEqual(due);
  expect(product.output()).not.toContain("dead letter");
  await own.delivered(accepted.size);
  const analysed = await own.analysed();
  expect(analysed).toBe(accepted.size);
  const further = {
    "seconds unavailable": unavailableSeconds,
    "answers of 503": refused.length,
    "events of other shards, applied and sent meanwhile": due.length,
    "webhooks received": receiver.requests.length,
    "events in ClickHouse": analysed,
  };
  const inputs = counted.inputs + due.length;
  await measuring.done({ faults: 1, ...counted, inputs, further });
}, 400_000);

/** While nodes notice what has gone, a request may be refused that does not need it. */
async function untilAnswered(send: () => Promise<PushResult>): Promise<PushResult["body"]> {
  const { status, body } = await eventually(async () => {
    const answer = await send();
    return answer.status !== 503 && answer;
  }, "the event is taken");
  expect(status).toBe(200);
  return body;
}
