/** A runtime whose channel sends webhooks to given receivers, and courier events that move its shipments. */

import type { Endpoint } from "#core/configuration/store/configuration.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { type Consumer, type LogItem, startConsumer } from "#core/platform/log/consumer.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Delivery } from "#core/webhooks/store/deliveries/deliveries.ts";
import { listDeliveries } from "#core/webhooks/store/deliveries/delivery-log.ts";
import {
  type Finished,
  finishDeliveries,
} from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import type { Fresh } from "#core/webhooks/store/deliveries/fresh-deliveries.ts";
import {
  type Leased,
  type LeaseTerms,
  readLeased,
  type Share,
  takeLeases,
} from "#core/webhooks/store/deliveries/leases.ts";
import { switchOff, switchOn } from "#core/webhooks/store/endpoints.ts";
import {
  createTransport,
  type TransportOptions,
} from "#core/webhooks/store/transport/transport.ts";
import { trackHandler } from "#processors/track/track.ts";
import type { SendDeps } from "#processors/webhooks/attempt.ts";
import { decideHandler } from "#processors/webhooks/decide.ts";
import { type Deliverer, startDeliverer } from "#processors/webhooks/deliver.ts";
import type { DeliverLimits } from "#processors/webhooks/deliver-limits.ts";
import { event } from "#test/support/clients/courier.ts";
import { type WebhookOptions, webhookSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { AUTHORITY } from "#test/support/servers/receiver.ts";
import { openTestRuntime, type TestRuntime } from "./runtime.ts";

/** Endpoints of channel acme-it whose receivers the authority of the tests has signed, by code: `main`, `second`, … unless they name themselves. */
export async function openWebhookRuntime(
  webhooks: readonly WebhookOptions[],
  env: Readonly<Record<string, string>> = {},
  given?: Parameters<typeof openTestRuntime>[2],
): Promise<TestRuntime> {
  return openTestRuntime(
    webhookSetup(...webhooks),
    { WEBHOOK_CA_FILE: AUTHORITY.file, ...env },
    given,
  );
}

export function endpointOf({ live }: TestRuntime, code: string): Endpoint {
  const found = [...live.configuration().endpoints.values()].find((one) => one.code === code);
  if (!found) throw new Error(`no endpoint ${code}`);
  return found;
}

/** What a deliverer sends with: the jitter is none, so that waits are the nominal ones. */
export function sendDeps(
  { live, secrets, config }: TestRuntime,
  transport: Partial<TransportOptions> = {},
): SendDeps {
  return {
    live,
    vault: secrets.vault,
    transport: createTransport({
      allowed: config.webhookAllowedCidrs,
      ca: AUTHORITY.pem,
      ...transport,
    }),
    random: () => 0.5,
  };
}

export interface Pipeline {
  readonly consumer: Consumer;
  readonly deliverer: Deliverer;
  readonly stop: () => Promise<void>;
}

/** Decides and delivers, as the product does. */
export function startPipeline(
  runtime: TestRuntime,
  deps: SendDeps,
  limits: Partial<DeliverLimits> = {},
): Pipeline {
  const { redis, log, live } = runtime;
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "webhooks",
    batch: 100,
    handler: decideHandler({ redis, live }),
  });
  const deliverer = startDeliverer({ redis, log, ...deps, limits });
  return {
    consumer,
    deliverer,
    async stop() {
      await consumer.stop();
      await deliverer.stop();
      deps.transport.close();
    },
  };
}

let shipments = 0;

/** A new shipment of channel acme-it. */
export function newShipment(runtime: TestRuntime): Promise<number> {
  shipments += 1;
  return addShipment(runtime, `WH${shipments}`);
}

/** Applies courier events to a shipment: state, history and change log as the product writes them. */
export async function applyEvents(
  runtime: TestRuntime,
  shipmentId: number,
  events: readonly Partial<CourierEvent>[],
): Promise<void> {
  const { redis, live, config } = runtime;
  const handler = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  const entries = events.map((members, messageIndex): LogItem => {
    const full = event(members);
    const logged = {
      shipmentId,
      messageIndex,
      event: full,
      courier: "GLS_ITA",
      receivedAtMs: live.now(),
      factKey: seenBucket("GLS_ITA", full.eventId).factKey,
    };
    return { key: "{e0}:log", id: `${messageIndex}-0`, fields: { e: encodeLoggedEvent(logged) } };
  });
  const failures = await handler(entries);
  if (failures.length > 0) throw new Error(JSON.stringify(failures));
}

/** The statuses of the test catalogue by their names. */
export const STATUS = {
  departed: { code: "DEP", description: "Partita" },
  inTransit: { code: "TRN", description: "In transito" },
  outForDelivery: { code: "OUT", description: "In consegna" },
  heldInDepot: { code: "HLD", description: "In giacenza" },
  delivered: { code: "DLV", description: "Consegnata" },
  unmapped: { code: "XYZ", description: "not yet mapped" },
} as const;

/** The delivery log of an endpoint of acme, newest first. */
export async function deliveriesOf(
  { redis, live }: TestRuntime,
  endpoint: Endpoint,
): Promise<Delivery[]> {
  const companyId = live.configuration().channels.get(endpoint.channelId)?.companyId ?? 0;
  const all = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, cursor: null, limit: 1_000 };
  return (await listDeliveries(redis, companyId, endpoint.id, all, live.now())).deliveries;
}

type Without<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

export type RoundTerms = Without<
  LeaseTerms,
  "perSilentEndpoint" | "silent" | "endpoint" | "capacityOfCompany"
> & {
  /** Concurrency that every endpoint has, unless `endpoint` tells. */
  readonly perEndpoint: number;
};

/** Terms of a round of leases; without silent endpoints, rates and tenants' shares unless told. */
export function leaseTerms({ perEndpoint, ...terms }: RoundTerms): LeaseTerms {
  const own = { companyId: 1, most: perEndpoint, mostInAll: null, maxPerSecond: null };
  return {
    perSilentEndpoint: 0,
    silent: new Set(),
    startConcurrency: perEndpoint,
    endpoint: () => own,
    capacityOfCompany: () => Number.MAX_SAFE_INTEGER,
    ...terms,
  };
}

/** One round of leases, read. @throws where a step fails */
export async function leaseRound(
  { redis, live }: TestRuntime,
  shares: readonly Without<Share, "wantedSilent">[],
  terms: RoundTerms,
  fresh?: Fresh,
): Promise<readonly Leased[]> {
  const { slots, failures } = await takeLeases(
    redis,
    shares.map((share) => ({ wantedSilent: 0, ...share })),
    leaseTerms(terms),
    live.now(),
    fresh?.endpoints,
  );
  for (const failure of failures.values()) throw failure;
  const { leased, failure } = await readLeased(redis, slots, fresh?.shipments);
  if (failure) throw failure;
  return leased;
}

/** Records results. @throws where they are not taken */
export async function recordResults(
  { redis, live }: TestRuntime,
  results: readonly Finished[],
  attemptsWaiting?: number,
): Promise<void> {
  const left = await finishDeliveries(redis, results, live.now(), attemptsWaiting);
  for (const error of left.values()) throw error;
}

/** Moves the service clock of all processes. */
export async function passTime({ redis, live }: TestRuntime, seconds: number): Promise<void> {
  await advanceClock(redis, seconds);
  await live.refresh();
}

/** Moves to the next full hour, so that what follows is counted in one hour. */
export async function beginHour(runtime: TestRuntime): Promise<void> {
  await passTime(runtime, 3_600 - (Math.floor(runtime.live.now() / 1_000) % 3_600));
}

/** Switches an endpoint and does nothing else: what waits for it stays where it is. */
export async function setActive(redis: Redis, endpointId: string, active: boolean): Promise<void> {
  const byHand = { reason: "manual", sinceMs: Date.now(), failingSinceMs: null } as const;
  if (active) await switchOn(redis, endpointId);
  else await switchOff(redis, endpointId, byHand);
}
