/** The formulas of `docs/scale.md`: what a load takes, how many masters hold it in whole partitions, and where an installation ends. */
import { PARTITIONS } from "#core/platform/redis/keys.ts";
import type { ClusterCosts, MessageSize } from "./scale-costs.ts";

/** Of a master's core: scripts run on one, and the rest is for bursts, rewrites of the file, and a replica that catches up. */
export const MASTER_CPU_SHARE = 0.5;
/** Of a master's memory: a rewrite copies what changes meanwhile, and a slot may come from another master. */
export const MASTER_MEMORY_SHARE = 0.7;
/** The disk of a node holds so many times the rewritten append-only file (docs/operations.md, "The append-only file"), which is about as large as the memory. */
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

export interface Inputs {
  readonly messageBytes: number;
  readonly fileBytes: number;
  readonly logBytes: number;
  readonly eventIdBytes: number;
  readonly shipmentBytes: number;
  readonly referenceBytes: number;
  readonly archivedRowBytes: number;
  readonly rowBytes: number;
  /** Microseconds a shipment. */
  readonly archivingCpu: number;
  readonly masterForArchiving: number;
  readonly coreShare: number;
  readonly peakOverMean: number;
  readonly eventsPerShipment: number;
  readonly daysUnderWay: number;
  readonly archiveAfterDays: number;
  readonly referencesPerShipment: number;
  readonly archiveMonths: number;
  readonly eventIdDays: number;
  readonly rawMonths: number;
  readonly backlogMinutes: number;
  readonly masterGb: number;
  readonly messageSize: MessageSize;
  readonly webhooksPerEvent: number;
  readonly readsPerEvent: number;
  readonly receiverSeconds: number;
  readonly vcpuEur: number;
  readonly gibEur: number;
  readonly tbEur: number;
  readonly costs: ClusterCosts;
}

export type Family = "e" | "t" | "k";

/** What one partition takes of its master. */
export interface Need {
  readonly family: Family;
  /** Cores. */
  readonly cpu: number;
  readonly bytes: number;
}

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
export function masterCosts({ costs, ...input }: Inputs) {
  const size = costs.messages[input.messageSize];
  // Archiving follows the mean: it waits while others are busy.
  const archiving = input.masterForArchiving / input.eventsPerShipment / input.peakOverMean;
  return {
    ingest: size.masterForIngest,
    work:
      size.masterForWork +
      input.webhooksPerEvent * costs.webhook.master +
      input.readsPerEvent * costs.read.master +
      archiving,
  };
}

/** What a partition of each family takes at a rate. */
export function needsOf(input: Inputs, rate: number): Record<Family, Need> {
  const memory = memoryOf(input, rate);
  const { ingest, work } = masterCosts(input);
  const cores = (us: number) => (rate * us) / 1e6 / PARTITIONS;
  const need = (family: Family, cpu: number, bytes: number): Need => ({
    family,
    cpu,
    bytes: bytes / PARTITIONS,
  });
  return {
    e: need("e", cores(ingest * SHARE_OF_EVENTS), memory.eventIds + memory.backlog),
    t: need("t", cores(ingest * (1 - SHARE_OF_EVENTS)), memory.references),
    k: need("k", cores(work), memory.shipments),
  };
}

const capacityOf = ({ masterGb }: Inputs) => ({
  cpu: MASTER_CPU_SHARE,
  bytes: masterGb * GB * MASTER_MEMORY_SHARE,
});

/** @returns how much of a master a partition takes, of what it may use: above 1 it fits into none */
export function fillOf(input: Inputs, { cpu, bytes }: Pick<Need, "cpu" | "bytes">): number {
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
export interface Limit {
  readonly cpu: number;
  readonly memory: number;
}

/** @param partitions 16 = an installation whose companies are alike; 1 = a company, which is in one partition */
export function limitOf(input: Inputs, family: Family, partitions: number): Limit {
  const { cpu, bytes } = needsOf(input, 1)[family];
  const capacity = capacityOf(input);
  const share = partitions / PARTITIONS;
  return { cpu: (capacity.cpu / cpu) * share, memory: (capacity.bytes / bytes) * share };
}

export const smaller = ({ cpu, memory }: Limit) => Math.min(cpu, memory);

/** A company is in one `{k}` partition, alone on a master. */
export const companyLimit = (input: Inputs) => smaller(limitOf(input, "k", 1));

/** The first family that no longer fits, with a master for every partition. */
export function installationLimit(input: Inputs): number {
  const families: Family[] = ["e", "t", "k"];
  return Math.min(...families.map((family) => smaller(limitOf(input, family, PARTITIONS))));
}

export interface Plan {
  readonly rate: number;
  readonly installations: number;
  readonly ingest: number;
  readonly processors: number;
  readonly analytics: number;
  readonly api: number;
  readonly masters: number;
  /** Open to receivers at once. */
  readonly connections: number;
  readonly cores: number;
  /** Of all copies. */
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly rowBytes: number;
  readonly archiveBytes: number;
}

/** Several installations ("cells") share a rate that one does not hold. */
export function planFor(input: Inputs, rate: number): Plan {
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
  const all = (value: number) => value * installations;
  const rows = perDay * MONTH_DAYS * input.rawMonths * input.rowBytes;
  const archive = ended * MONTH_DAYS * input.archiveMonths * input.archivedRowBytes;
  return {
    rate,
    installations,
    ingest: all(ingest),
    processors: all(processors),
    analytics: all(analytics),
    api: all(api),
    masters: all(masters),
    connections: all(Math.ceil(inFlight)),
    cores: all(ingest + processors + analytics + api + 2 * masters),
    memoryBytes: all(memory),
    diskBytes: all(memory * DISK_PER_MEMORY),
    rowBytes: all(rows),
    archiveBytes: all(archive),
  };
}
