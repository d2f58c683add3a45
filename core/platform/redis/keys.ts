/**
 * Every key name, in one place. Three families of hash tags, each with the partitions of the installation (`partitions.ts`); all
 * keys of one atomic step share a tag, so the same code serves one Redis and a cluster.
 *
 * | tag    | partition by                  | holds                                                        |
 * |--------|-------------------------------|--------------------------------------------------------------|
 * | {e<n>} | courier + eventId             | memory of seen eventIds, event log                           |
 * | {t<n>} | courier + reference           | reference -> shipment, parked events                         |
 * | {k<n>} | company                       | shipments, histories, indices, change log, webhook deliveries |
 */
import { matchingNumber, plainReference } from "#core/events/rules/reference.ts";
import { digestOf } from "./digest.ts";
import {
  FAMILIES,
  idDigits,
  idPartition,
  partitionCount,
  partitionOfDigest,
  partitionsOf,
  perPartitioning,
} from "./partitions.ts";

/** What all processes read with every request: configuration version and the shared test clock. */
export const SYSTEM_KEY = "waybill:system";
/** Hash: which key secrets are sealed with (`keyring.ts`). */
export const KEYRING_KEY = "waybill:keyring";
/** Sorted set: live processes, with the key that each seals with. */
export const KEY_USERS_KEY = "waybill:key-users";
export const SETUP_LOCK_KEY = "waybill:setup-lock";
/** String: who changes this account; of the second, who adds one. */
export const accountLockKey = (id: string) => `waybill:account-lock:${id}`;
export const NEW_ACCOUNT_LOCK_KEY = "waybill:new-account-lock";
/** Who waits for a lock, in its slot: sorted sets by turn, and by when each that does not ask again is dead (milliseconds). */
export const lockQueueKeys = (lockKey: string) => {
  const tag = lockKey.includes("{") ? lockKey : `{${lockKey}}`;
  return { waiting: `${tag}:waiting`, alive: `${tag}:alive` };
};
/** Hash: the version of this layout (`layout.ts`). */
export const LAYOUT_KEY = "waybill:layout";
export const LAYOUT_LOCK_KEY = "waybill:layout-lock";
/** String: who is moving slots (`cli/slots`). */
export const SLOTS_LOCK_KEY = "waybill:slots-lock";
/** Hash by the tag of a partition: scripts that processes ran on it in a day (since 1970) of their clocks. */
export const partitionCallsKey = (day: number) => `waybill:partition-calls:${day}`;
/** List: ids of the backups asked for; string: what came of one (JSON). */
export const BACKUP_REQUESTS_KEY = "waybill:backup-requests";
export const backupAnswerKey = (id: string) => `waybill:backup:${id}`;
export const BACKUP_LOCK_KEY = "waybill:backup-lock";
export const EXPORT_LOCK_KEY = "waybill:export-lock";
/** String: which process counts for expected delivery. */
export const STAY_CELLS_LOCK_KEY = "waybill:stay-cells-lock";
/** Hash by destination CAP: how long a courier's deliveries stayed in each status; and the one that takes its place (`stay-cells.ts`). */
export const stayCellsKeys = (courier: string) => {
  const tag = `{waybill:stay-cells:${courier}}`;
  return { current: tag, next: `${tag}:next` };
};
/** Sorted set: message ids of mails about erased recipients, by when they were erased (service clock, milliseconds). */
export const ERASED_MAILS_KEY = "waybill:erased-mails";
/** Hash: since when something that was erased is in the append-only file, and a name of the latest erasure. */
export const FILE_REWRITE_KEY = "waybill:file-rewrite";
/** String: which process changes the tables of ClickHouse. */
export const SCHEMA_LOCK_KEY = "waybill:clickhouse-schema-lock";
/** String: which process moves shipments to the archive. */
export const ARCHIVER_LOCK_KEY = "waybill:archiver-lock";
/** Hash: what the latest complete round of it left (`archive-status.ts`). */
export const ARCHIVER_STATUS_KEY = "waybill:archiver";
/** Sorted set: rows of the archive that cannot be opened, by when they were noted (`damaged-rows.ts`). */
export const DAMAGED_ROWS_KEY = "waybill:archiver:damaged";
/** Hash: channels held in Redis, and how far they have come back (`held-channels.ts`). */
export const HELD_CHANNELS_KEY = "waybill:archiver:held";
/** When processors were running (`running-time.ts`). */
export const RUNNING_KEYS = {
  /** Sorted set: who is running, by last heartbeat (clock of Redis, milliseconds). */
  running: "{waybill:running}",
  /** Hash: the service clock at the last heartbeat, and how many downtimes there were. */
  clock: "{waybill:running}:clock",
  /** List: downtimes, oldest first. */
  downtimes: "{waybill:running}:downtimes",
};
/** Hash: courier -> when the first event in a signed message was accepted (service clock, milliseconds). */
export const FIRST_SIGNED_KEY = "waybill:first-signed";
/** Hash: endpoint -> when a test event was delivered last (service clock, milliseconds). */
export const VERIFIED_ENDPOINTS_KEY = "waybill:verified-endpoints";
/** Hash: `channel:code` of an endpoint that the panel deleted -> fingerprint of its entry in the setup file. */
export const DELETED_WEBHOOKS_KEY = "waybill:deleted-webhooks";
/** Hash: kind, company, courier and address of each account of the panel, by its id (`account-index.ts`). */
export const ACCOUNT_INDEX_KEY = "waybill:account-index";
/** Hash: a link to a courier's quality report (JSON), by the hash of its token. */
export const QUALITY_LINKS_KEY = "waybill:quality-links";
/** Calls of a caller of the panel under idempotency keys. */
export const panelRequestKeys = (identity: string) => {
  const tag = `{panel-requests:${identity}}`;
  return {
    /** Hash: a call and its sealed answer, by the digest of the key. */
    request: (digest: string) => `${tag}:${digest}`,
    /** Sorted set: digests by when they are forgotten (service clock, milliseconds). */
    remembered: `${tag}:keys`,
  };
};
/** List (JSON): refused API calls of a tenant, newest first (`refused-requests.ts`). */
export const refusedRequestsKey = (tenant: string) => `waybill:refused-requests:${tenant}`;
/** Alarms that became incidents, and their notifications, in one slot. */
export const ALARM_KEYS = {
  /** String: which panel looks. */
  lock: "{waybill:alarms}:lock",
  /** Hash: incidents that are open or about to open (JSON), by owner and code. */
  open: "{waybill:alarms}:open",
  /** List: an owner's incidents that are over (JSON), newest first. */
  past: (owner: string) => `{waybill:alarms}:past:${owner}`,
  /** String: who has acknowledged an incident, and when (JSON). */
  acknowledged: (incidentId: string) => `{waybill:alarms}:acknowledged:${incidentId}`,
  /** Hash: notifications that are still to be sent (JSON). */
  outbox: "{waybill:alarms}:outbox",
  /** Hash: receiver -> when it was last notified, and what went wrong (JSON). */
  told: "{waybill:alarms}:told",
};
/** Hash: a box, template or receiver that the panel deleted -> fingerprint of its entry in the setup file. */
export const DELETED_SETTINGS_KEY = "waybill:deleted-settings";

/** The hash tags of all partitions. */
export const partitionTags = perPartitioning(() =>
  FAMILIES.flatMap((family) => partitionsOf(family).map((n) => `{${family}${n}}`)),
);

export const eventLogs = perPartitioning(() => partitionsOf("e").map((n) => `{e${n}}:log`));
export const changeLogs = perPartitioning(() => partitionsOf("k").map((n) => `{k${n}}:changes`));
/** Webhook attempts on their way to ClickHouse. */
export const attemptLogs = perPartitioning(() => partitionsOf("k").map((n) => `{k${n}}:attempts`));

/** Hash beside a log of attempts: how many were `logged`, `taken` over and `dropped` at the mark, so far. */
export function attemptCountsKey(logKey: string): string {
  return `${logKey}:n`;
}

/** Stream beside a log: entries that a group could not process. */
export function deadLetterKey(logKey: string): string {
  return `${logKey}:dead`;
}

/** Hash: how many events or changes a log has had (`logged`), and by group how many of them are done. */
export function logCountsKey(logKey: string): string {
  return `${logKey}:counts`;
}

/** Sorted set: what failed in a group and waits for its next try, by when it is due. */
export function retriesKey(logKey: string, group: string): string {
  return `${logKey}:retries:${group}`;
}

/** Sorted set: the same by the time of its entry. */
export function retryAgesKey(logKey: string, group: string): string {
  return `${logKey}:ages:${group}`;
}

/** Sorted set: dead letters that were driven again, by time (service clock, milliseconds). */
export function redrivenKey(logKey: string): string {
  return `${logKey}:redriven`;
}

export const eventKeys = (n: number) => ({
  log: `{e${n}}:log`,
  ledger: `{e${n}}:ledger`,
  /** Bucket number follows the prefix. */
  seenPrefix: (generation: number) => `{e${n}}:seen:${generation}:`,
  /** Set of hours since 1970 that have counts. */
  countedHours: `{e${n}}:counts`,
  /** Hash: `courier outcome rule` as JSON -> events of the hour. */
  counts: (hour: number) => `{e${n}}:counts:${hour}`,
  /** Strings, a line each: what became of events, by their id and by their message (`event-outcomes.ts`). */
  outcomesById: (day: number, bucket: number) => `{e${n}}:oe:${day}:${bucket}`,
  outcomesByMessage: (day: number, bucket: number) => `{e${n}}:om:${day}:${bucket}`,
  /** List (JSON): the latest events of a courier with an outcome, newest first (`courier-inbox.ts`). */
  inbox: (courier: string, outcome: string) => `{e${n}}:in:${courier}:${outcome}`,
});

/** Hash of a reference partition: day (since 1970) -> parked events, not yet applied, that were sent on it last. */
export const parkedCountsKey = (n: number) => `{t${n}}:parked`;

/** Sorted set of a reference partition: its hashes of parked events by how long the first event of each is kept at most (milliseconds). */
export const parkedDueKey = (n: number) => `{t${n}}:parked-due`;

export interface Reference {
  readonly partition: number;
  readonly key: string;
  readonly parkedKey: string;
  /** Under the text as it was given, where that differs: 0.1.0 wrote there. It is read, and nothing is written there any more. */
  readonly asGiven?: Reference;
}

/** Hash: references of archived shipments, by 48 bits of them (`compact-references.ts`). */
export const compactBucketKey = (partition: number, generation: number, bucket: number) =>
  `{t${partition}}:c:${generation}:${bucket}`;

/** 32 bits of a reference, for its bucket, and the name that it has there. */
export function compactPlace({ key }: Reference): { readonly bits: number; readonly name: Buffer } {
  const digest = Buffer.from(key.slice(key.lastIndexOf(":") + 1), "base64url");
  return { bits: digest.readUInt32BE(0), name: digest.subarray(4, 10) };
}

/**
 * A reference is a tracking number of a courier, or an externalId under a sender account of a courier.
 * @param identity lengths keep the parts apart whatever they contain: JSON texts may hold any character, NUL included
 */
function reference(identity: string): Reference {
  const digest = digestOf(identity);
  const partition = partitionOfDigest("t", digest);
  const name = digest.toString("base64url", 1, 16);
  return { partition, key: `{t${partition}}:r:${name}`, parkedKey: `{t${partition}}:p:${name}` };
}

const part = (text: string) => `${text.length}:${text}`;

/** Equal for all texts that mean the same tracking number. */
export function trackingReference(courier: string, trackingNumber: string): Reference {
  const under = (number: string) => reference(`6:number${part(courier)}${part(number)}`);
  const form = matchingNumber(trackingNumber);
  return form === trackingNumber ? under(form) : { ...under(form), asGiven: under(trackingNumber) };
}

/** With those under the texts as they were given. */
export function withAsGiven(references: readonly Reference[]): readonly Reference[] {
  return references.every(({ asGiven }) => asGiven === undefined)
    ? references
    : references.flatMap((one) => (one.asGiven ? [one, one.asGiven] : [one]));
}

export function externalReference(
  courier: string,
  senderAccount: string,
  externalId: string,
): Reference {
  const under = (account: string, id: string) =>
    reference(`8:external${part(courier)}${part(account)}${part(id)}`);
  const [account, id] = [plainReference(senderAccount), plainReference(externalId)];
  return account === senderAccount && id === externalId
    ? under(account, id)
    : { ...under(account, id), asGiven: under(senderAccount, externalId) };
}

/** All data of a company lives in one partition. */
export function companyPartition(companyId: number): number {
  return companyId % partitionCount("k");
}

/** Shipment ids are dealt so that the id alone tells the partition. */
export function shipmentPartition(shipmentId: number): number {
  return idPartition(shipmentId);
}

export const companyTag = (n: number) => `{k${n}}`;

const shipmentKeys = (tag: string) => ({
  changes: `${tag}:changes`,
  ledger: `${tag}:ledger`,
  shipmentIds: `${tag}:ids`,
  /** Hash: head `v`, meta and state `st`, record `c`, history (`history-parts.ts`), base `b`. */
  shipment: (id: number) => `${tag}:s:${id}`,
  /** Hash: courier code -> shipment id, for one tracking number of a channel by its matching form: uniqueness and search. */
  numbers: (channelId: number, trackingNumber: string) =>
    `${tag}:n:${channelId}:${matchingNumber(trackingNumber)}`,
  /** The same by the text as it was given: 0.1.0 wrote there. */
  numbersAsGiven: (channelId: number, trackingNumber: string) =>
    `${tag}:n:${channelId}:${trackingNumber}`,
  /** Set of shipment ids with one exact value. */
  exact: (channelId: number, field: ExactField, value: string) =>
    `${tag}:x:${channelId}:${field}:${value}`,
  /** Bitmap by rank of the same shipments, once they are many. */
  exactBits: (channelId: number, field: ExactField, value: string) =>
    `${tag}:xb:${channelId}:${field}:${value}`,
  index: (channelId: number, order: IndexOrder) => `${tag}:i:${channelId}:${order}`,
  /** Rows of a channel's shipments that search scans (`columns.ts`). */
  block: (channelId: number, block: number) => `${tag}:b:${channelId}:${block}`,
  /** Hash: the last second assigned as statusUpdatedAt, and how many of the company's shipments have it. */
  clock: (companyId: number) => `${tag}:clock:${companyId}`,
  /** String: ranks of the rows that have changed, the latest last. */
  rowLog: (channelId: number) => `${tag}:rl:${channelId}`,
  /** Hash: how far a channel's search lines reach: `part`, `upTo` (`search-lines.ts`). */
  searchLines: (channelId: number) => `${tag}:sl:${channelId}`,
  /** String: a part of them. */
  searchLinesPart: (channelId: number, part: number) => `${tag}:sl:${channelId}:${part}`,
  /** Hash: `gone` = rows whose shipments have left the indices, block number -> how many of its rows those are. */
  rows: (channelId: number) => `${tag}:rw:${channelId}`,
  /** Hash: what the archive holds of a company (`archive-summary.ts`). */
  archived: (companyId: number) => `${tag}:ar:${companyId}`,
  /** Sorted set of `id batch`: rows of the archive that do not count, by when they ceased to (Redis clock, milliseconds). */
  absentRows: (companyId: number) => `${tag}:ax:${companyId}`,
  /** Sorted set of batches of the archive that do not count, in the same order; those that were skipped from `SKIPPED_FROM` on. */
  absentBatches: (companyId: number) => `${tag}:ab:${companyId}`,
  /** List of removals of archived shipments of a company (JSON), newest first (`retirement.ts`). */
  removals: (companyId: number) => `${tag}:rm:${companyId}`,
  /** String: version of the configuration that facts must have been mapped with at least. */
  mappingFloor: `${tag}:mapping-floor`,
  /** Set of `courier:code`. */
  unmappedCodes: `${tag}:um`,
  /** Hash: events, description, first and last time seen of an unmapped code. */
  unmapped: (courier: string, code: string) => `${tag}:um:${unmappedName(courier, code)}`,
  /** Sorted set by id: shipments with unmapped events of a code. */
  unmappedShipments: (courier: string, code: string) => `${tag}:us:${unmappedName(courier, code)}`,
});

const orderAndLabelKeys = (tag: string) => ({
  /** Counter of orders. */
  orderIds: `${tag}:oids`,
  /** Hash: version, record (JSON). */
  order: (id: number) => `${tag}:o:${id}`,
  /** Hash: source and reference -> order id. */
  orderNaturals: (channelId: number) => `${tag}:on:${channelId}`,
  /** Sorted set by order date (UTC milliseconds), without deleted orders. */
  orderDates: (channelId: number) => `${tag}:oi:${channelId}`,
  /** Hash: order parcel's hash -> order id. */
  orderParcels: (channelId: number) => `${tag}:op:${channelId}`,
  /** String: a job that has created parcels (JSON). */
  parcelJob: (jobId: string) => `${tag}:pjob:${jobId}`,
  /** Counters of labels and of transmissions. */
  labelIds: `${tag}:lids`,
  transmissionIds: `${tag}:txids`,
  /** Hash: a label, from its claim on. */
  label: (id: number) => `${tag}:lb:${id}`,
  /** String: the label that (channel, carrier, reference) has claimed. */
  labelClaim: (channelId: number, digest: string) => `${tag}:lc:${channelId}:${digest}`,
  /** Sorted set: ids of a channel's labels by the time they were made. */
  channelLabels: (channelId: number) => `${tag}:lbx:${channelId}`,
  /** String: who is confirming or voiding labels of a carrier. */
  confirmLock: (channelId: number, carrier: string) => `${tag}:lock:cf:${channelId}:${carrier}`,
  /** String: the transmission that a confirmation will open, until its outcome is known. */
  transmissionClaim: (channelId: number, digest: string) => `${tag}:txc:${channelId}:${digest}`,
  /** Hash: a transmission, with the head of its slip (JSON). */
  transmission: (channelId: number, id: number) => `${tag}:tx:${channelId}:${id}`,
  /** Hash: the content of a transmission's slip (JSON), by the digest of its secret address. */
  slip: (digest: string) => `${tag}:slip:${digest}`,
});

const jobAndMessageKeys = (tag: string) => ({
  /** Hash: `channel:month` -> address checks to be billed. */
  addressChecks: `${tag}:billing:address-checks`,
  /** Hash: a request under an idempotency key, by the digest of the key, and its answer. */
  idempotent: (channelId: number, digest: string) => `${tag}:idem:${channelId}:${digest}`,
  sandbox: (channelId: number) => `${tag}:sandbox:${channelId}`,
  /** Hash: an import job. */
  job: (jobId: string) => `${tag}:job:${jobId}`,
  /** Hash: chunk -> its items (JSON), until they are done. */
  jobItems: (jobId: string) => `${tag}:jobi:${jobId}`,
  /** Hash: chunk -> what came of its items (JSON). */
  jobResults: (jobId: string) => `${tag}:jobr:${jobId}`,
  /** Set: ids of a channel's unfinished jobs. */
  openJobs: (channelId: number) => `${tag}:jobs:${channelId}`,
  /** Sorted set: `channel:job` of the partition's latest jobs, by the time they were accepted (service clock, milliseconds). */
  latestJobs: `${tag}:latest-jobs`,
  /** Set: ids of a channel's finished jobs whose callback has not been sent. */
  callbacks: (channelId: number) => `${tag}:jobcb:${channelId}`,
  /** Sorted set: `shipment:number` of the repetitions of an erasure, by due time (service clock, milliseconds). */
  erasures: `${tag}:erasures`,
  /** String: the last shipment of a channel's shadow whose life has begun. */
  testParcelsFound: (channelId: number) => `${tag}:tests:${channelId}`,
  /** Counter of stock releases of all shipments of the partition. */
  releaseIds: `${tag}:releases`,
  /** Hash: release id -> what was asked of the carrier and what it answered (JSON). */
  releases: (shipmentId: number) => `${tag}:sr:${shipmentId}`,
  /** Hash: a message to a recipient on its way: e-mail or SMS. */
  message: (messageId: string) => `${tag}:msg:${messageId}`,
  /** Hash: topic a shipment's recipient has had a message about -> when (UTC milliseconds). */
  topics: (shipmentId: number) => `${tag}:told:${shipmentId}`,
  /** List: notifications sent about a shipment (JSON), newest first. */
  notifications: (shipmentId: number) => `${tag}:nt:${shipmentId}`,
});

const allCompanyKeys = (tag: string) => ({
  ...shipmentKeys(tag),
  ...orderAndLabelKeys(tag),
  ...jobAndMessageKeys(tag),
});

/** Made once: hot paths ask for them per shipment. */
const allOfCompanies = perPartitioning(() =>
  partitionsOf("k").map((n) => allCompanyKeys(companyTag(n))),
);

/** Everything of the companies of a partition. */
export const companyKeys = (n: number) => allOfCompanies()[n] ?? allCompanyKeys(companyTag(n));

/** Where a tracking number of a channel may stand, each once. */
export function numberKeys(
  { numbers, numbersAsGiven }: ReturnType<typeof companyKeys>,
  channelId: number,
  trackingNumber: string,
): string[] {
  return [
    ...new Set([numbers(channelId, trackingNumber), numbersAsGiven(channelId, trackingNumber)]),
  ];
}

/** Queues of work under leases; the tag is that of a partition. */
export type WorkName = "imports" | "import-callbacks" | "messages" | "test-parcels";

export const workKeys = (tag: string, name: WorkName) => ({
  /** Sorted set by due time (service clock, milliseconds). */
  waiting: `${tag}:w:${name}`,
  /** Sorted set by the end of the lease (clock of Redis, milliseconds). */
  leases: `${tag}:wl:${name}`,
  /** Hash: work -> its lease. */
  holders: `${tag}:wh:${name}`,
  counter: `${tag}:wc:${name}`,
  /** Hash: work -> its owner, where owners take turns. */
  owners: `${tag}:wo:${name}`,
  /** Hash: owner -> the lease of its latest turn. */
  turns: `${tag}:wt:${name}`,
});

/** Remaps of all couriers, in one slot so that they are moved together. */
export const REMAP_KEYS = {
  /** Counter. */
  next: "{remaps}:next",
  /** Hash. */
  remap: (id: string) => `{remaps}:remap:${id}`,
  /** List of ids, newest first. */
  ofCourier: (courier: string) => `{remaps}:of:${courier}`,
  /** Sorted set: those not done, in the order they were made. */
  open: "{remaps}:open",
  /** String: which process applies them. */
  lease: "{remaps}:lease",
  /** Hash like a remap: the one-time refold of shipments that events ahead of their time decide. */
  refold: "{remaps}:refold-ahead",
} as const;

/** Number conflicts of all companies, in one slot. */
export const NUMBER_CONFLICT_KEYS = {
  /** Hash: `[shipment, new number]` -> conflict, both JSON. */
  list: "{number-conflicts}:list",
  /** Sorted set of the same names by when the event was received (UTC milliseconds). */
  byTime: "{number-conflicts}:by-time",
} as const;

/** Courier codes have no colon, so the first one ends them. */
export function unmappedName(courier: string, code: string): string {
  return `${courier}:${code}`;
}

/** What idle loops wait for: entries of the logs, deliveries, test events, work of the queues. */
export type WakeTopic =
  | "event"
  | "change"
  | "attempt"
  | "audit"
  | "webhooks"
  | "webhook-tests"
  | "imports"
  | "import-callbacks"
  | "messages"
  | "test-parcels";
/** Channel of messages that say nothing but that there is work. */
export const wakeChannel = (topic: WakeTopic) => `waybill:wake:${topic}`;

/** List: test events asked for by the panel, on their way to whoever sends. */
export const WEBHOOK_TESTS_KEY = "waybill:webhook-tests";
/** List of one element: what came of a test event. */
export const webhookTestKey = (testId: string) => `waybill:webhook-test:${testId}`;

/**
 * Where the scores of failing endpoints begin in the two rings: they come after all healthy ones, which are therefore found
 * immediately, however many failing ones are waiting. Turns and due times are smaller.
 */
export const FAILING_FROM = 2 ** 50;

const webhookKeysOf = (n: number) => {
  const tag = companyTag(n);
  return {
    /** Hash. */
    delivery: (deliveryId: string) => `${tag}:d:${deliveryId}`,
    /** Hash: event id -> what was decided for each endpoint. */
    verdicts: (shipmentId: number) => `${tag}:dv:${shipmentId}`,
    /** Sorted set of an endpoint's deliveries by creation (UTC milliseconds): its delivery log. */
    log: (endpointId: string) => `${tag}:dl:${endpointId}`,
    /** Sorted set of an endpoint's failed deliveries by creation (UTC milliseconds): what can be replayed. */
    failed: (endpointId: string) => `${tag}:df:${endpointId}`,
    /** Sorted set of an endpoint's deliveries by creation that were replayed so late that they outlive their 30 days. */
    late: (endpointId: string) => `${tag}:dlate:${endpointId}`,
    /** Hash: attempts of an endpoint in one hour (since 1970) by result, and by status and latency bucket. */
    attempts: (endpointId: string, hour: number) => `${tag}:dh:${endpointId}:${hour}`,
    /** Set of the ids of replays of whole windows that are not done. */
    replays: `${tag}:replays`,
    /** Sorted set of the latest replays of an endpoint's windows by their beginning, UTC milliseconds. */
    replaysOf: (endpointId: string) => `${tag}:rpe:${endpointId}`,
    /** JSON: a replay of a window and how far it has come. */
    replay: (replayId: string) => `${tag}:rp:${replayId}`,
    /** Set of the shipments that a replay has served, for one delivery a shipment. */
    replayed: (replayId: string) => `${tag}:rps:${replayId}`,
    /** String: an alert somebody is mailing, or that waits for its next try. */
    alertClaim: (alertId: string) => `${tag}:alert:${alertId}`,
    /** List: an endpoint's first attempts. */
    queue: (endpointId: string) => `${tag}:dq:${endpointId}`,
    /** Sorted set: an endpoint's retries by due time (UTC milliseconds). */
    retries: (endpointId: string) => `${tag}:dr:${endpointId}`,
    /** Sorted set: endpoints with first attempts, by turn; failing ones from `FAILING_FROM` on. */
    firstRing: `${tag}:dring:first`,
    /** Sorted set: endpoints with retries, by the earliest due time; failing ones from `FAILING_FROM` on. */
    retryRing: `${tag}:dring:retry`,
    /** Sorted set: `endpoint delivery lease` under way, by the end of its lease (Redis clock, milliseconds). */
    leases: `${tag}:dleases`,
    /** Hash: endpoint -> deliveries in its slots, `w <endpoint>` -> those under way outside of them. */
    inFlight: `${tag}:dflight`,
    /** Hash: endpoint -> its concurrency (`concurrency.ts`). */
    concurrencies: `${tag}:dlevels`,
    /** Hash: endpoint with `maxPerSecond` -> what it may begin, and when that was counted (service clock, milliseconds). */
    rates: `${tag}:drates`,
    /** Sorted set: endpoints that nothing is leased of, by when their pause ends (service clock, milliseconds). */
    pauses: `${tag}:dpauses`,
    /** Counter of turns and leases. */
    turns: `${tag}:dturns`,
    /** Sorted set: endpoints without success since their first failure (service clock, milliseconds). */
    failing: `${tag}:dfailing`,
    /** Set: failing endpoints whose first alert has gone out. */
    warned: `${tag}:dwarned`,
    /** Hash: endpoint that an alert was about and that has not succeeded since -> its first failure (service clock, milliseconds). */
    alerted: `${tag}:dalerted`,
    /** Hash: failing endpoint -> its last failure, a line of the attempt log. */
    lastFailures: `${tag}:dlast`,
    /** Stream: attempts for the analytics (`attempt-log.ts`). */
    attemptLog: `${tag}:attempts`,
    /** Hash. */
    attemptCounts: attemptCountsKey(`${tag}:attempts`),
    /** Stream: alerts for the mailer. */
    alerts: `${tag}:alerts`,
    ledger: `${tag}:ledger`,
  };
};

const allWebhookKeys = perPartitioning(() => partitionsOf("k").map(webhookKeysOf));

/** Webhook deliveries of a company partition. */
export const webhookKeys = (n: number) => allWebhookKeys()[n] ?? webhookKeysOf(n);

/** Sorted sets: by id, by ship date (days since 1970), by statusUpdatedAt (seconds since 1970). */
export type IndexOrder = "id" | "ship" | "upd";
export type ExactField = "orderReference" | "custom1" | "custom2" | "custom3";

/** Member of a shipment in the sorted sets: of fixed width, so that equal scores stand in the order of ids. */
export function indexMember(shipmentId: number): string {
  return String(shipmentId).padStart(idDigits(), "0");
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

/** Wrong secrets presented from a network, and the clients that presented a correct one from there. */
export const wrongSecretKeys = (kind: string, network: string) => {
  const tag = `{secrets:${kind}:${network}}`;
  const bucket = `${tag}:wrong`;
  return { bucket, holders: `${tag}:holders`, own: (holder: string) => `${bucket}:${holder}` };
};

export const courierRateKey = (subject: string) => `rate:courier:${subject}`;

/** String (JSON): a session of the control panel, by the hash of its id. */
export const sessionKey = (idHash: string) => `session:${idHash}`;

/** String: an account has used its one-time code of this time step. */
export const usedCodeKey = (accountId: string, step: number) => `used-code:${accountId}:${step}`;

/** Stream: changes made in the control panel, on their way to ClickHouse (`audit-log.ts`). */
export const AUDIT_LOG = "{waybill:audit}:log";
/** Hash: by tenant, how many entries were `logged` and `taken` over. */
export const AUDIT_TENANTS_KEY = "{waybill:audit}:tenants";
/** Stream: the same as a version before wrote them, which is moved to ClickHouse. */
export const OLD_AUDIT_KEY = "waybill:audit";
