/** Suggestions for unmapped codes: computed for all viewers together, at most once a minute while nothing changes. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { unmappedName } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { STATUS_TEXTS } from "#core/statuses/rules/status-texts.ts";
import {
  type KnownText,
  knowledgeOf,
  type Suggestion,
} from "#core/statuses/rules/suggest-mapping.ts";
import { readPassages } from "#core/statuses/store/passages.ts";
import type { UnmappedCode } from "#core/statuses/store/unmapped.ts";

/** With the most parcels; the others have no suggestion until these are mapped. */
const SUGGESTED_CODES = limit(
  50,
  "unmapped codes with a suggestion",
  "the next codes have none until these are mapped",
);
const PARCELS_LOOKED_AT = limit(25, "parcels looked at for a suggestion", "the oldest parcels");
const SUGGESTIONS_KEPT_MS = limit(60_000, "age of a suggestion", "computed again");
/** Before that a code that is new waits. */
const SUGGESTIONS_LEAST_MS = 2_000;

/** By `unmappedName`. */
export type Suggestions = ReadonlyMap<string, Suggestion>;

interface Kept {
  readonly version: number;
  readonly names: string;
  readonly atMs: number;
  readonly found: Promise<Suggestions>;
}

/** @returns reads the suggestions for codes, of which those with the most parcels come first */
export function createSuggestions(redis: Redis) {
  let kept: Kept | null = null;

  return (configuration: Configuration, codes: readonly UnmappedCode[]): Promise<Suggestions> => {
    const asked = codes.slice(0, SUGGESTED_CODES);
    const names = asked.map(({ courier, code }) => unmappedName(courier, code)).join("\n");
    const { version } = configuration;
    const ageMs = performance.now() - (kept?.atMs ?? Number.NEGATIVE_INFINITY);
    const isFresh =
      kept !== null &&
      kept.version === version &&
      ageMs < (kept.names === names ? SUGGESTIONS_KEPT_MS : SUGGESTIONS_LEAST_MS);
    if (kept && isFresh) return kept.found;
    const found = suggestionsFor(redis, configuration, asked);
    kept = { version, names, atMs: performance.now(), found };
    // A reading that failed is not kept.
    found.catch(() => {
      if (kept?.found === found) kept = null;
    });
    return found;
  };
}

async function suggestionsFor(
  redis: Redis,
  configuration: Configuration,
  codes: readonly UnmappedCode[],
): Promise<Suggestions> {
  const knowledge = knowledgeOf(knownTexts(configuration));
  const found = new Map<string, Suggestion>();
  for (const unknown of codes) {
    const { courier, code, description } = unknown;
    const passages = await readPassages(redis, courier, code, PARCELS_LOOKED_AT);
    const suggestion = knowledge.suggest(description, passages);
    if (suggestion) found.set(unmappedName(courier, code), suggestion);
  }
  return found;
}

function knownTexts({ couriers, statusDetails }: Configuration): KnownText[] {
  const own = [...couriers.values()].filter(({ code }) => !isTestCourier(code));
  const ofCouriers = own.flatMap(({ name, catalogue }) =>
    [...catalogue.values()].flatMap(({ code, description, status, statusDetail = 0, rules }) =>
      // With narrower mappings, the own one is for what is left.
      status === undefined || (rules && rules.length > 0)
        ? []
        : [
            {
              pair: { status, detail: statusDetail },
              text: description,
              of: { name, code },
            },
          ],
    ),
  );
  const carried = STATUSES.filter((one) => one !== "WAITING_TO_COMPUTE" && one !== "PENDING");
  const ofStatuses = Object.values(STATUS_TEXTS).flatMap((texts) =>
    carried.map((status) => ({ pair: { status, detail: 0 }, text: texts[status], of: null })),
  );
  const ofDetails = [...statusDetails.values()].flatMap(({ id, status, description = {} }) =>
    Object.values(description).flatMap((text) =>
      status === undefined ? [] : [{ pair: { status, detail: id }, text, of: null }],
    ),
  );
  return [...ofCouriers, ...ofStatuses, ...ofDetails];
}
