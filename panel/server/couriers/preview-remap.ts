/** What a new mapping would change, without changing anything. */

import { Type } from "@sinclair/typebox";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { type Refolded, refold } from "#core/shipments/rules/refold.ts";
import { missingOf } from "#core/shipments/store/shipments.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import { type Status, type StatusPair, StatusSchema } from "#core/statuses/rules/status.ts";
import {
  type Remapping,
  type RemapScope,
  readRemappings,
  shipmentsToRemap,
} from "#core/statuses/store/remappings.ts";
import { NO_PROGRESS } from "#core/statuses/store/remaps.ts";
import { decide, type Verdict } from "#core/webhooks/rules/trigger.ts";

/** Shipments a preview looks at; with more of them it tells what it has seen so far and that it is not complete. */
const EXAMINED_LIMIT = 20_000;

const pair = Type.Object({
  status: Type.Unsafe<Status>(StatusSchema),
  detail: Type.Integer({ description: "0 = none" }),
});

export const RemapPreview = Type.Object({
  examined: Type.Integer({ description: "shipments looked at" }),
  complete: Type.Boolean({ description: "false when there are more shipments than it looks at" }),
  events: Type.Integer(),
  shipments: Type.Integer(),
  states: Type.Array(Type.Object({ before: pair, after: pair, shipments: Type.Integer() })),
  webhooks: Type.Array(
    Type.Object({
      endpointId: Type.String(),
      endpoint: Type.String(),
      channel: Type.String(),
      verdict: Type.String(),
      count: Type.Integer(),
    }),
  ),
});

export interface Preview {
  /** Shipments looked at. */
  readonly examined: number;
  readonly complete: boolean;
  /** Events and shipments that would be remapped. */
  readonly events: number;
  readonly shipments: number;
  readonly states: Array<{
    readonly before: StatusPair;
    readonly after: StatusPair;
    readonly shipments: number;
  }>;
  /** Decisions that changes of the current state would make. */
  readonly webhooks: Array<{
    readonly endpointId: string;
    readonly endpoint: string;
    readonly channel: string;
    readonly verdict: Verdict;
    readonly count: number;
  }>;
}

export async function previewRemap(
  redis: Redis,
  configuration: Configuration,
  scope: RemapScope,
  entries: readonly CatalogueEntry[],
): Promise<Preview> {
  const catalogue = new Map(entries.map((entry) => [entry.code, entry]));
  const tally = createTally(configuration);
  let examined = 0;
  let missing = 0;
  const pages = shipmentsToRemap(redis, configuration, scope, NO_PROGRESS.cursor);
  for await (const { ids, isRepetition } of pages) {
    if (examined >= EXAMINED_LIMIT)
      return { examined: examined - missing, complete: false, ...tally.result() };
    // What is in the archive comes back for the remap, and not for a look at it.
    const archived = (await missingOf(redis, ids)).length;
    missing += archived;
    examined += isRepetition ? archived : ids.length;
    for (const remapping of await readRemappings(redis, scope, catalogue, ids)) {
      const { from, facts } = remapping;
      tally.add(remapping, refold(from.state, facts, from.base));
    }
  }
  return { examined: examined - missing, complete: missing === 0, ...tally.result() };
}

function createTally(configuration: Configuration) {
  /** A shipment with events of several codes stands in several sets. */
  const seen = new Set<number>();
  const states = new Map<string, Preview["states"][number]>();
  const webhooks = new Map<string, Preview["webhooks"][number]>();
  let events = 0;

  function addVerdicts(channelId: number, status: Status | null, firstOccurrence: boolean): void {
    const channel = configuration.channels.get(channelId);
    for (const endpoint of channel?.endpoints ?? []) {
      const verdict = decide(endpoint, { status, changed: true, firstOccurrence });
      const key = `${endpoint.id} ${verdict}`;
      const count = (webhooks.get(key)?.count ?? 0) + 1;
      const { id: endpointId, code } = endpoint;
      webhooks.set(key, {
        endpointId,
        endpoint: code,
        channel: channel?.code ?? "",
        verdict,
        count,
      });
    }
  }

  return {
    add({ from, history, facts }: Remapping, { change }: Refolded): void {
      if (seen.has(from.id)) return;
      seen.add(from.id);
      events += facts.filter((fact, index) => fact !== history[index]).length;
      if (!change) return;
      const { before, after } = change;
      const key = JSON.stringify([before, after]);
      states.set(key, { before, after, shipments: (states.get(key)?.shipments ?? 0) + 1 });
      const status = change.fact.mapping?.status ?? null;
      addVerdicts(from.meta.channelId, status, change.firstOccurrence);
    },
    result: () => ({
      events,
      shipments: seen.size,
      states: [...states.values()],
      webhooks: [...webhooks.values()],
    }),
  };
}
