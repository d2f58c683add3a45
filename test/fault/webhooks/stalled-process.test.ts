/** A process that stands still for longer than its leases last, as on an overloaded machine, sends nothing twice when it goes on. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { BARE, newProduct, type Product } from "#test/support/product/product.ts";
import {
  AUTHORITY,
  attemptsOf,
  DELIVERED_LIMIT_MS,
  type Receiver,
  startReceiver,
} from "#test/support/servers/receiver.ts";

const SHIPMENTS = 60;
const STALLS = 4;
/** More than the 6 s of a lease, and less than the 10 s of a request. */
const STALL_MS = 7_000;
/** Something is always under way. */
const ANSWER_MS = 400;
const EVENTS_BETWEEN = 50;

let receiver: Receiver;
let product: Product;

beforeAll(async () => {
  receiver = await startReceiver();
  receiver.behave((_, response) => {
    setTimeout(() => response.writeHead(200).end(), ANSWER_MS);
  });
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  const webhook = { code: "main", url: receiver.url, alertEmail: "ops@acme.test" };
  if (channel) channel.webhooks = [{ ...webhook, trigger: "every_event" }];
  const env = { WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", WEBHOOK_CA_FILE: AUTHORITY.file };
  product = await newProduct(BARE, setup, env);
  await product.start();
}, 300_000);
afterAll(async () => {
  await product.end();
  await receiver.stop();
}, 300_000);

test("no attempt of a delivery is made twice, although its lease has ended meanwhile", async () => {
  await createShipments(product, "STALL", SHIPMENTS);
  const stream = startEventStream(product, "STALL", SHIPMENTS, { senders: 2 });
  for (let n = 0; n < STALLS; n += 1) {
    await stream.grows("events are accepted", EVENTS_BETWEEN);
    process.kill(product.pid(), "SIGSTOP");
    const fromMs = performance.now();
    await eventually(() => performance.now() - fromMs > STALL_MS, "leases have ended");
    process.kill(product.pid(), "SIGCONT");
  }
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  await stream.stop();
  const received = () => new Set(receiver.requests.map(({ body }) => body.id)).size;
  await eventually(
    () => received() === stream.accepted.size,
    () => `${stream.accepted.size} webhooks arrive; ${received()} have`,
    DELIVERED_LIMIT_MS,
  );
  const attempts = attemptsOf(receiver.requests);
  expect(attempts).toHaveLength(new Set(attempts).size);
}, 400_000);
