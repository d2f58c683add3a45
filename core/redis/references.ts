/** References: which shipments a courier's tracking number or externalId may mean. */
import type { Candidate } from "#core/domain/match-reference.ts";
import { perPartition, type Redis, readTogether, run, script } from "./client.ts";
import { externalReference, type Reference, trackingReference } from "./keys.ts";
import registerSource from "./scripts/register.lua" with { type: "text" };

const registerScript = script(registerSource);

/** Candidates one reference holds; two are ambiguous already. */
const CANDIDATES_LIMIT = 50;
/** Of a reference that is not registered; never changed. */
const NOBODY: Candidate[] = [];

export interface Registration extends Candidate {
  readonly reference: Reference;
}

/** The references under which carrier events may find a shipment. */
export function referencesOf(
  courier: string,
  trackingNumbers: readonly string[],
  senderAccounts: readonly string[],
  orderReference: string | null,
): Reference[] {
  return [
    ...trackingNumbers.map((number) => trackingReference(courier, number)),
    ...(orderReference === null
      ? []
      : senderAccounts.map((account) => externalReference(courier, account, orderReference))),
  ];
}

/** Makes shipments findable; repeating it changes nothing. */
export async function registerReferences(
  redis: Redis,
  registrations: readonly Registration[],
): Promise<void> {
  const groups = Map.groupBy(registrations, ({ reference }) => reference.partition);
  await perPartition(groups, (_, group) => {
    const keys = group.map(({ reference }) => reference.key);
    const lines = group.flatMap(({ shipmentId, channelId, isPlaceholder, orderReference }) => {
      const rest = JSON.stringify([channelId, Number(isPlaceholder), orderReference]);
      return [`[${shipmentId},`, rest.slice(1)];
    });
    return run(redis, registerScript, keys, [String(CANDIDATES_LIMIT), ...lines]);
  });
}

/** Candidates of every reference, by its key: one call, on a cluster one a partition, whatever the number. */
export async function resolveReferences(
  redis: Redis,
  references: Iterable<Reference>,
): Promise<Map<string, Candidate[]>> {
  const found = new Map<string, Candidate[]>();
  const keys = new Map<number, string[]>();
  for (const { key, partition } of references) {
    if (found.has(key)) continue;
    found.set(key, NOBODY);
    const known = keys.get(partition);
    if (known) known.push(key);
    else keys.set(partition, [key]);
  }
  const reads = readTogether(redis, keys).map(async (together) => {
    const values = await redis.mGet([...together]);
    together.forEach((key, at) => {
      const lines = values[at];
      if (lines) found.set(key, parseCandidates(lines));
    });
  });
  await Promise.all(reads);
  return found;
}

function parseCandidates(lines: string): Candidate[] {
  return lines.split("\n").map((line) => {
    const [shipmentId, channelId, placeholder, orderReference] = JSON.parse(line);
    return { shipmentId, channelId, isPlaceholder: placeholder === 1, orderReference };
  });
}
