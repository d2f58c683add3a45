/** Webhooks in number: decided and queued as the consumer does, before the clock starts, so that sending is measured. */
import type { Channel } from "#core/configuration/store/configuration.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  type Decision,
  eventIdOf,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import type { Transport } from "#core/webhooks/store/transport/transport.ts";
import { startDeliverer } from "#processors/webhooks/deliver.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { LIMIT_MS } from "./harness.ts";

export const BODY_BYTES = 2_048;
const SHIPMENTS_PER_CHANNEL = 50;
const DECISIONS_PER_CALL = 500;

let changes = 0;

/** The next change of some shipments of a channel, for all of its endpoints. */
export function nextDecision(
  channel: Channel,
  shipments: readonly number[],
  text: string,
): Decision {
  changes += 1;
  const verdicts = channel.endpoints.map(({ id, trigger }) => {
    return { endpointId: id, trigger, verdict: "send" as const };
  });
  return {
    shipmentId: shipments[changes % shipments.length] ?? 0,
    channelId: channel.id,
    eventId: eventIdOf("bench", `${changes}-0`),
    entryId: `${changes}-0`,
    fact: {
      key: `fact-${changes}`,
      occurredAtMs: 0,
      receivedAtMs: 0,
      status: "IN_TRANSIT",
      courierStatus: text,
      place: "Milano",
      detail: 0,
    },
    verdicts,
  };
}

export async function record({ redis, live }: Runtime, decisions: readonly Decision[]) {
  for (let from = 0; from < decisions.length; from += DECISIONS_PER_CALL) {
    await recordDecisions(redis, decisions.slice(from, from + DECISIONS_PER_CALL), live.now());
  }
}

const shipmentsOf = new Map<number, number[]>();

/** So many deliveries, of the channels in turn, with bodies of 2 KB. */
export async function queueDeliveries(
  runtime: Runtime,
  channels: readonly Channel[],
  deliveries: number,
): Promise<void> {
  for (const { id, code } of channels) {
    const own = shipmentsOf.get(id) ?? [];
    while (own.length < SHIPMENTS_PER_CHANNEL) {
      own.push(await addShipment(runtime, `BENCH-${code}-${own.length}`, { channel: code }));
    }
    shipmentsOf.set(id, own);
  }
  const decisions: Decision[] = [];
  for (let left = deliveries, n = 0; left > 0; n += 1) {
    const channel = channels[n % channels.length];
    if (!channel) throw new Error("no channel");
    const text = "x".repeat(BODY_BYTES - 1_000);
    decisions.push(nextDecision(channel, shipmentsOf.get(channel.id) ?? [], text));
    left -= channel.endpoints.length;
  }
  await record(runtime, decisions);
}

/** @returns deliveries a second, from the first lease to the last recorded result */
export async function runDeliverer(
  runtime: Runtime,
  transport: Transport,
  deliveries: number,
): Promise<number> {
  const { redis, log, live, secrets } = runtime;
  const { delivered: before } = await readLedger(redis);
  let posted = 0;
  // Tells without asking the store when it is time to ask it.
  const counting: Transport = {
    ...transport,
    post: (...request) => {
      posted += 1;
      return transport.post(...request);
    },
  };
  const isDone = async () =>
    posted >= deliveries && (await readLedger(redis)).delivered - before >= deliveries;
  const own = { redis, log, live, transport: counting, vault: secrets.vault };
  const startMs = performance.now();
  const { stop } = startDeliverer({ ...own, random: Math.random });
  await eventually(isDone, "everything is delivered", LIMIT_MS);
  const rate = (deliveries * 1_000) / (performance.now() - startMs);
  await stop();
  return rate;
}
