/**
 * A cluster that is resharded under load: every slot of ours moves to another master and back while couriers send and a
 * merchant receives. Redis refuses what it cannot do while a slot lies between two masters; nothing is done by half.
 */
import { expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { webhookSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { startProduct } from "#test/support/product/product.ts";
import { attemptsOf, startReceiver, WEBHOOK_ENV } from "#test/support/servers/receiver.ts";

const SHIPMENTS = 60;
/** A third of the machine is enough: what counts is that calls meet slots half moved. */
const SENDERS = 2;
const EVENTS_BETWEEN = 100;
/** The 48 partitions at least. */
const SLOTS = 48;
const SETTLE_LIMIT_MS = 120_000;

const receiver = forAll(startReceiver);
const product = forAll(() =>
  startProduct(
    webhookSetup({ url: receiver.url, trigger: "every_event" }),
    WEBHOOK_ENV,
    "a six-node Redis Cluster",
  ),
);

async function readLedger(): Promise<{ difference: Record<string, number>; delivered: number }> {
  return (await readPanel(product, "/overview")).ledger;
}

test("slots that move away and back lose no event and no webhook, and double none", async () => {
  const ids = await createShipments(product, "SLOT", SHIPMENTS);
  const stream = startEventStream(product, "SLOT", SHIPMENTS, { senders: SENDERS });
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  const measuring = startMeasuring("Hurt everything", "slots moved away and back, with webhooks");
  let moved = 0;
  for (const way of ["away", "back"] as const) {
    const slots = await product.moveSlots(way);
    expect(slots).toBeGreaterThanOrEqual(SLOTS);
    moved += slots;
    await stream.grows(`events go on being accepted, moved ${way}`, EVENTS_BETWEEN);
  }
  await stream.stop();
  const counted = await expectExactlyOnce(product, "SLOT", ids, stream.accepted);

  const reported = () => new Set(receiver.requests.map(({ body }) => body.id));
  await eventually(
    () => reported().size === stream.accepted.size,
    () => `${stream.accepted.size} webhooks arrive; ${reported().size} have`,
    SETTLE_LIMIT_MS,
  );
  const attempts = attemptsOf(receiver.requests);
  expect(new Set(attempts).size).toBe(attempts.length);
  await eventually(
    async () => (await readLedger()).delivered === stream.accepted.size,
    "every delivery is recorded",
    SETTLE_LIMIT_MS,
  );
  expect(product.output()).not.toContain("dead letter");
  const further = { "webhooks received": receiver.requests.length };
  await measuring.done({ faults: moved, ...counted, further });
}, 400_000);
