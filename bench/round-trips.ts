/** Redis round trips of one event that becomes one webhook, and commands at rest, of the product as `npm start` runs it. */
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  type Command,
  countSteps,
  STEP_NAMES,
  TRACE_FILE,
} from "#test/support/servers/command-trace.ts";
import { courierEvent, messageOf, post } from "./events.ts";
import * as harness from "./harness.ts";
import { startReceivers } from "./receivers.ts";
import { trackingNumberOf, webhookSetup } from "./shipments.ts";
import { median } from "./table.ts";

/** Longer than the pause of anything on a timer. */
const BETWEEN_MS = 1_300;
const NUMBERS = { events: [40, 10], rest: [30, 5], warmUp: 5 } as const;

async function measure(defer: harness.Defer): Promise<string> {
  const { events, rest, warmUp } = harness.readOptions(NUMBERS);
  const receivers = await startReceivers(defer, 1);
  const setup = webhookSetup([[receivers.urlOf(0)]], "every_event");
  const store = await harness.openStore(defer, setup, { WEBHOOK_CA_FILE: receivers.caFile });
  await addShipment(store.runtime, trackingNumberOf(0), { channel: "channel-0" });
  let told = Promise.withResolvers<readonly Command[]>();
  const telling = { preload: TRACE_FILE, ipc: (all: never) => told.resolve(all) };
  const { ingest, child } = await harness.startProduct(defer, store, telling);
  const take = () => {
    told = Promise.withResolvers();
    child.send("take");
    return told.promise;
  };
  const counts: (readonly (readonly number[])[])[] = [];
  for (let n = 0; n < warmUp + events; n += 1) {
    const event = { ...courierEvent(0, n, `${n}`), status: { code: "TRN", description: `${n}` } };
    await Bun.sleep(BETWEEN_MS);
    await take();
    await post(ingest, messageOf(n, [JSON.stringify(event)]));
    const arrivals: number[] = [];
    const hasArrived = async () => arrivals.push(...(await receivers.arrivals())) > 0;
    await eventually(hasArrived, "the webhook arrives", harness.LIMIT_MS);
    const before = (await take()).filter(({ sentMs }) => sentMs < (arrivals[1] ?? 0));
    if (n >= warmUp) counts.push(countSteps(before));
  }
  await take();
  await Bun.sleep(rest * 1_000);
  const perSecond = Math.round((await take()).length / rest);
  const rows = STEP_NAMES.map((step, at) => {
    const medians = [0, 1].map((one) => median(counts.map((steps) => steps[at]?.[one] ?? 0)));
    return `| ${step} | ${medians.join(" | ")} |`;
  });
  return `| step | waits | commands |\n|---|--:|--:|\n${rows.join("\n")}\n\nAt rest ${perSecond} commands a second.\n`;
}

await using stack = new AsyncDisposableStack();
process.stdout.write(await measure(harness.deferTo(stack)));
