/** The formulas of `docs/scale.md`: what a load takes, how many masters hold it in whole partitions, and where an installation ends. */
/** What `bench/cluster-costs.ts` measures. */
export const COSTS_FILE = "bench/results/scale.json";

/** Of each family: what a cluster of three or four masters begins with. */
export const PARTITIONS = 16;

/** Events of a message. */
export const MESSAGE_SIZES = [1, 20, 500] as const;
export type MessageSize = (typeof MESSAGE_SIZES)[number];

/**
 * How far a second measurement may be from the first. CPU time does not contain the time of others, but caches and the two threads of a
 * core are shared with them.
 */
export const CHECK_FACTOR = 2;

/** Microseconds of CPU an event, as the page names them. */
export const COST_NAMES = {
  ingest: "ingest",
  masterForIngest: "masters, for ingest",
  replicaForIngest: "replicas, for ingest",
  processors: "processors",
  analytics: "analytics, the embedded ClickHouse in it",
  masterForWork: "masters, for processors and analytics",
  replicaForWork: "replicas, for processors and analytics",
} as const;
export type SizeCosts = Readonly<Record<keyof typeof COST_NAMES, number>>;

/** Medians of the runs. A read is a `GET /v2/shipments/{id}`; a webhook comes beside its event. One line is measured once more. */
export interface ClusterCosts {
  readonly machine: string;
  readonly shipments: number;
  readonly runs: number;
  readonly messages: Readonly<Record<MessageSize, SizeCosts>>;
  readonly check: Readonly<{ messageSize: MessageSize; predicted: number; measured: number }>;
  readonly read: Readonly<Record<"api" | "master", number>>;
  readonly webhook: Readonly<Record<"processors" | "analytics" | "master" | "replica", number>>;
}

/** Of a master's core: scripts run on one, and the rest is for bursts, rewrites of the file, and a replica that catches up. */
export const MASTER_CPU_SHARE = 0.5;
/** Of a master's memory: a rewrite copies what changes meanwhile, and a slot may come from another master. */
export const MASTER_MEMORY_SHARE = 0.7;
/** Of the rewritten append-only file, which is about as large as the memory (docs/operations/redis.md, "The append-only file"). */
export const DISK_PER_MEMORY = 5;
/** A read of a reference and a claim share what ingest costs Redis, in equal parts. */
export const SHARE_OF_EVENTS = 0.5;
/** Of a cell: of what one installation can do. */
export const CELL_SHARE = 0.5;
/** Webhooks that a process has under way at most: `LIMITS.inFlight` of `processors/webhooks/deliver-limits.ts`. */
export const WEBHOOKS_IN_FLIGHT = 400;

const DAY_SECONDS = 86_400;
const MONTH_DAYS = 30.4;
const GB = 1e9;

/** The rows of the first tables of the page, which name their units. */
export const ROW_NAMES = {
  messageBytes: "message bytes",
  fileBytes: "append-only bytes",
  logBytes: "log memory",
  eventIdBytes: "eventId memory",
  shipmentBytes: "shipment memory",
  referenceBytes: "reference memory",
  archivedRowBytes: "archived row",
  rowBytes: "ClickHouse row",
  archivingCpu: "archiving CPU",
  masterForArchiving: "Redis CPU for archiving",
  coreShare: "share of a core used",
  peakOverMean: "peak over mean",
  eventsPerShipment: "events a shipment",
  daysUnderWay: "days until a shipment has ended",
  archiveAfterDays: "ARCHIVE_AFTER_DAYS",
  referencesPerShipment: "references a shipment",
  archiveMonths: "months of archived shipments",
  eventIdDays: "days an eventId stays",
  rawMonths: "months of raw events",
  backlogMinutes: "minutes of backlog",
  masterGb: "GB a master holds",
  webhooksPerEvent: "webhooks an event",
  readsPerEvent: "reads an event",
  receiverSeconds: "seconds a receiver takes",
  vcpuEur: "EUR a vCPU month",
  gibEur: "EUR a GiB month",
  tbEur: "EUR a TB month",
} as const;

export interface Inputs extends Readonly<Record<keyof typeof ROW_NAMES, number>> {
  readonly messageSize: MessageSize;
  readonly costs: ClusterCosts;
}

export type Family = "e" | "t" | "k";

/** What one partition takes of its master: cores and memory. */
export type Need = Readonly<Record<"cpu" | "bytes", number>>;

/** Bytes of Redis, one copy, by what they hold. */
export function memoryOf(input: Inputs, rate: number) {
  const perDay = (rate / input.peakOverMean) * DAY_SECONDS;
  const ended = perDay / input.eventsPerShipment;
  const archived = ended * MONTH_DAYS * input.archiveMonths;
  return {
    eventIds: perDay * input.eventIdDays * input.eventIdBytes,
    backlog: rate * 60 * input.backlogMinutes * input.logBytes,
    shipments: ended * (input.daysUnderWay + input.archiveAfterDays) * input.shipmentBytes,
    references: archived * input.referencesPerShipment * input.referenceBytes,
  };
}

/** Microseconds of masters an event: for ingest, and for everything behind it, reads, webhooks and archiving too. */
function masterCosts({ costs, ...input }: Inputs) {
  const { masterForIngest, masterForWork } = costs.messages[input.messageSize];
  // Archiving follows the mean: it waits while others are busy.
  const archiving = input.masterForArchiving / input.eventsPerShipment / input.peakOverMean;
  const webhooks = input.webhooksPerEvent * costs.webhook.master;
  const reads = input.readsPerEvent * costs.read.master;
  return { ingest: masterForIngest, work: masterForWork + webhooks + reads + archiving };
}

/** What a partition of each family takes at a rate. */
export function needsOf(input: Inputs, rate: number): Record<Family, Need> {
  const memory = memoryOf(input, rate);
  const { ingest, work } = masterCosts(input);
  const cores = (us: number) => (rate * us) / 1e6 / PARTITIONS;
  const eventBytes = memory.eventIds + memory.backlog;
  return {
    e: { cpu: cores(ingest * SHARE_OF_EVENTS), bytes: eventBytes / PARTITIONS },
    t: { cpu: cores(ingest * (1 - SHARE_OF_EVENTS)), bytes: memory.references / PARTITIONS },
    k: { cpu: cores(work), bytes: memory.shipments / PARTITIONS },
  };
}

const capacityOf = ({ masterGb }: Inputs) => ({
  cpu: MASTER_CPU_SHARE,
  bytes: masterGb * GB * MASTER_MEMORY_SHARE,
});

/** @returns how much of a master a partition takes, of what it may use: above 1 it fits into none */
export function fillOf(input: Inputs, { cpu, bytes }: Need): number {
  const capacity = capacityOf(input);
  return Math.max(cpu / capacity.cpu, bytes / capacity.bytes);
}

/**
 * Whole partitions, the largest first, each on the first master that has room for it.
 * @returns masters; null = a partition is larger than a master
 */
export function mastersFor(input: Inputs, rate: number): number | null {
  const capacity = capacityOf(input);
  const all = Object.values(needsOf(input, rate))
    .flatMap((need) => Array.from({ length: PARTITIONS }, () => need))
    .toSorted((one, other) => fillOf(input, other) - fillOf(input, one));
  const masters: { cpu: number; bytes: number }[] = [];
  for (const need of all) {
    if (fillOf(input, need) > 1) return null;
    const fits = masters.find(
      ({ cpu, bytes }) => cpu + need.cpu <= capacity.cpu && bytes + need.bytes <= capacity.bytes,
    );
    if (fits) {
      fits.cpu += need.cpu;
      fits.bytes += need.bytes;
    } else masters.push({ cpu: need.cpu, bytes: need.bytes });
  }
  return masters.length;
}

/** Events a second at which a partition fills its master: all needs grow with the rate. */
export type Limit = Readonly<Record<"cpu" | "memory", number>>;

/** @param partitions 16 = an installation whose companies are alike; 1 = a company, which is in one partition */
export function limitOf(input: Inputs, family: Family, partitions: number): Limit {
  const { cpu, bytes } = needsOf(input, 1)[family];
  const capacity = capacityOf(input);
  const share = partitions / PARTITIONS;
  return { cpu: (capacity.cpu / cpu) * share, memory: (capacity.bytes / bytes) * share };
}

/** A company is in one `{k}` partition, alone on a master. */
export const companyLimit = (input: Inputs) => Math.min(...Object.values(limitOf(input, "k", 1)));

/** The first family that no longer fits, with a master for every partition. */
export function installationLimits(input: Inputs): Limit {
  const all = (["e", "t", "k"] as const).map((family) => limitOf(input, family, PARTITIONS));
  const leastOf = (key: keyof Limit) => Math.min(...all.map((limit) => limit[key]));
  return { cpu: leastOf("cpu"), memory: leastOf("memory") };
}

export const installationLimit = (input: Inputs) =>
  Math.min(...Object.values(installationLimits(input)));

/** Several installations ("cells") share a rate that one does not hold. */
export function planFor(input: Inputs, rate: number) {
  const most = installationLimit(input);
  const installations = rate <= most ? 1 : Math.ceil(rate / (most * CELL_SHARE));
  const each = rate / installations;
  const { costs } = input;
  const size = costs.messages[input.messageSize];
  const processes = (us: number, least: number) =>
    Math.max(least, Math.ceil((each * us) / 1e6 / input.coreShare));
  const archiving = input.archivingCpu / input.eventsPerShipment / input.peakOverMean;
  const webhooks = each * input.webhooksPerEvent;
  const inFlight = webhooks * input.receiverSeconds;
  const work = size.processors + input.webhooksPerEvent * costs.webhook.processors;
  const ingest = processes(size.ingest, 2);
  const processors = Math.max(processes(work, 2), Math.ceil(inFlight / WEBHOOKS_IN_FLIGHT));
  const ours = input.webhooksPerEvent * costs.webhook.analytics;
  const analytics = processes(size.analytics + ours + archiving, 1);
  const api = processes(input.readsPerEvent * costs.read.api, 2);
  const masters = mastersFor(input, each) ?? Number.NaN;
  const perDay = (each / input.peakOverMean) * DAY_SECONDS;
  const ended = perDay / input.eventsPerShipment;
  const memory = 2 * Object.values(memoryOf(input, each)).reduce((sum, bytes) => sum + bytes, 0);
  return {
    rate,
    installations,
    ingest: ingest * installations,
    processors: processors * installations,
    analytics: analytics * installations,
    api: api * installations,
    masters: masters * installations,
    /** Open to receivers at once. */
    connections: Math.ceil(inFlight) * installations,
    cores: (ingest + processors + analytics + api + 2 * masters) * installations,
    /** Of all copies. */
    memoryBytes: memory * installations,
    diskBytes: memory * DISK_PER_MEMORY * installations,
    rowBytes: perDay * MONTH_DAYS * input.rawMonths * input.rowBytes * installations,
    archiveBytes: ended * MONTH_DAYS * input.archiveMonths * input.archivedRowBytes * installations,
  };
}

export type Plan = ReturnType<typeof planFor>;
