/**
 * Every key name, in one place. Three families of hash tags, each with a fixed number of partitions; all keys of one
 * atomic step share a tag, so the same code serves one Redis and a cluster.
 *
 * | tag    | partition by                  | holds                                                        |
 * |--------|-------------------------------|--------------------------------------------------------------|
 * | {e<n>} | courier + eventId             | memory of seen eventIds, event log                           |
 * | {t<n>} | courier + reference           | reference -> shipment, parked events                         |
 * | {k<n>} | company                       | shipments, histories, indices, change log, webhook deliveries |
 */
import { createHash } from "node:crypto";
import type { Status } from "#core/domain/status.ts";

/** Fixed for the life of an installation: changing it would move every key. */
export const PARTITIONS = 16;

const numbers = Array.from({ length: PARTITIONS }, (_, n) => n);

/** What all processes read with every request: configuration version and the shared test clock. */
export const SYSTEM_KEY = "waybill:system";
export const SETUP_LOCK_KEY = "waybill:setup-lock";

export const EVENT_LOGS = numbers.map((n) => `{e${n}}:log`);
export const CHANGE_LOGS = numbers.map((n) => `{k${n}}:changes`);

export const eventKeys = (n: number) => ({
  log: `{e${n}}:log`,
  ledger: `{e${n}}:ledger`,
  /** Bucket number follows the prefix. */
  seenPrefix: (generation: number) => `{e${n}}:seen:${generation}:`,
});

export interface Reference {
  readonly partition: number;
  readonly key: string;
  readonly parkedKey: string;
}

/** A reference is a tracking number of a courier, or an externalId under a sender account of a courier. */
function reference(parts: readonly string[]): Reference {
  const digest = createHash("sha256").update(parts.join("\0")).digest();
  const partition = digest.readUInt8(0) % PARTITIONS;
  const name = digest.toString("base64url", 1, 16);
  return { partition, key: `{t${partition}}:r:${name}`, parkedKey: `{t${partition}}:p:${name}` };
}

export function trackingReference(courier: string, trackingNumber: string): Reference {
  return reference(["number", courier, trackingNumber]);
}

export function externalReference(
  courier: string,
  senderAccount: string,
  externalId: string,
): Reference {
  return reference(["external", courier, senderAccount, externalId]);
}

/** All data of a company lives in one partition. */
export function companyPartition(companyId: number): number {
  return companyId % PARTITIONS;
}

/** Shipment ids are dealt so that the id alone tells the partition. */
export function shipmentPartition(shipmentId: number): number {
  return shipmentId % PARTITIONS;
}

export const companyTag = (n: number) => `{k${n}}`;

export const companyKeys = (n: number) => {
  const tag = companyTag(n);
  return {
    changes: `${tag}:changes`,
    ledger: `${tag}:ledger`,
    shipmentIds: `${tag}:ids`,
    shipment: (id: number) => `${tag}:s:${id}`,
    history: (id: number) => `${tag}:h:${id}`,
    /** Courier code -> shipment id, for one tracking number of a channel: uniqueness and exact search. */
    numbers: (channelId: number, trackingNumber: string) =>
      `${tag}:n:${channelId}:${trackingNumber}`,
    /** Set of shipment ids with one exact value. */
    exact: (channelId: number, field: ExactField, value: string) =>
      `${tag}:x:${channelId}:${field}:${value}`,
    index: (channelId: number, order: IndexOrder, status?: Status) =>
      status === undefined
        ? `${tag}:i:${channelId}:${order}`
        : `${tag}:i:${channelId}:${status}:${order}`,
    orders: (channelId: number) => `${tag}:orders:${channelId}`,
    sandbox: (channelId: number) => `${tag}:sandbox:${channelId}`,
  };
};

/** Counter that moves when deliveries have been queued: what idle senders look at instead of every partition. */
export const WEBHOOK_BELL_KEY = "waybill:webhook-bell";
/** List: test events asked for by the panel, on their way to whoever sends. */
export const WEBHOOK_TESTS_KEY = "waybill:webhook-tests";
/** List of one element: what came of a test event. */
export const webhookTestKey = (testId: string) => `waybill:webhook-test:${testId}`;

/** Webhook deliveries of a company partition. The scripts build the keys of single endpoints and deliveries from the tag. */
export const webhookKeys = (n: number) => {
  const tag = companyTag(n);
  return {
    /** Hash. */
    delivery: (deliveryId: string) => `${tag}:d:${deliveryId}`,
    /** Hash: event id -> what was decided for each endpoint. */
    verdicts: (shipmentId: number) => `${tag}:dv:${shipmentId}`,
    /** Sorted set of an endpoint's deliveries by creation (UTC milliseconds): its delivery log. */
    log: (endpointId: string) => `${tag}:dl:${endpointId}`,
    /** List: an endpoint's first attempts. */
    queue: (endpointId: string) => `${tag}:dq:${endpointId}`,
    /** Sorted set: an endpoint's retries by due time (UTC milliseconds). */
    retries: (endpointId: string) => `${tag}:dr:${endpointId}`,
    /** Sorted set: endpoints with first attempts, by turn. */
    firstRing: `${tag}:dring:first`,
    /** Sorted set: endpoints with retries, by the earliest due time. */
    retryRing: `${tag}:dring:retry`,
    /** Sorted set: `endpoint delivery` under way, by the end of its lease (Redis clock, milliseconds). */
    leases: `${tag}:dleases`,
    /** Hash: endpoint -> deliveries under way. */
    inFlight: `${tag}:dflight`,
    /** Counter of turns and leases. */
    turns: `${tag}:dturns`,
    /** Sorted set: endpoints without success since their first failure (service clock, milliseconds). */
    failing: `${tag}:dfailing`,
    /** Set: failing endpoints whose first alert has gone out. */
    warned: `${tag}:dwarned`,
    /** Stream: alerts for the mailer. */
    alerts: `${tag}:alerts`,
    ledger: `${tag}:ledger`,
  };
};

/** Sorted sets: by id, by ship date (days since 1970), by statusUpdatedAt (seconds since 1970). */
export type IndexOrder = "id" | "ship" | "upd";
export type ExactField = "orderReference" | "custom1" | "custom2" | "custom3";

/** Member of a shipment in the sorted sets: of fixed width, so that equal scores stand in the order of ids. */
export function indexMember(shipmentId: number): string {
  return String(shipmentId).padStart(12, "0");
}

/** What admits a merchant's request, in the company's partition: the channel's bucket, the API key's standing. */
export const admissionKeys = (companyId: number, channelId: number, apiKeyId: number) => {
  const tag = companyTag(companyPartition(companyId));
  return {
    /** Hash. */
    bucket: `${tag}:rate:${channelId}`,
    /** List: when the key was answered 429, service clock, milliseconds. */
    rejections: `${tag}:rejected:${apiKeyId}`,
    /** String: until when the key is suspended, service clock, milliseconds. */
    suspension: `${tag}:suspended:${apiKeyId}`,
  };
};

/** Hash of an API key -> the context it was verified for. */
export const verifiedKeyKey = (apiKeyHash: string) => `verified:${apiKeyHash}`;

export const courierRateKey = (subject: string) => `rate:courier:${subject}`;
