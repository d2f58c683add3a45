/** References: which shipments a courier's tracking number or externalId may mean. */
import type { Candidate } from "#core/domain/match-reference.ts";
import { perPartition, type Redis, run, script } from "./client.ts";
import { externalReference, type Reference, trackingReference } from "./keys.ts";
import registerSource from "./scripts/register.lua" with { type: "text" };

const registerScript = script(registerSource);

/** Candidates one reference holds; two are ambiguous already. */
const CANDIDATES_LIMIT = 50;

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

/** Candidates of every reference, by its key: one call a partition, whatever the number. */
export async function resolveReferences(
  redis: Redis,
  references: Iterable<Reference>,
): Promise<Map<string, Candidate[]>> {
  const byKey = new Map([...references].map((reference) => [reference.key, reference]));
  const groups = Map.groupBy(byKey.values(), ({ partition }) => partition);
  const found = new Map<string, Candidate[]>();
  await perPartition(groups, async (_, group) => {
    const keys = group.map(({ key }) => key);
    const values = await redis.mGet(keys);
    keys.forEach((key, at) => {
      found.set(key, parseCandidates(values[at] ?? null));
    });
  });
  return found;
}

function parseCandidates(lines: string | null): Candidate[] {
  if (lines === null) return [];
  return lines.split("\n").map((line) => {
    const [shipmentId, channelId, placeholder, orderReference] = JSON.parse(line);
    return { shipmentId, channelId, isPlaceholder: placeholder === 1, orderReference };
  });
}
