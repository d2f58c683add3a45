/** From the change log to webhook decisions: one for every change and endpoint, recorded with its deliveries. */
import { decide } from "#core/domain/trigger.ts";
import { webhookDecisions } from "#core/metrics.ts";
import { type Change, decodeChangeEntry } from "#core/redis/change-log.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Endpoint } from "#core/redis/configuration.ts";
import type { Entry, Failure, Handler } from "#core/redis/consumer.ts";
import { type Decision, eventIdOf, recordDecisions } from "#core/redis/deliveries.ts";
import type { Live } from "#core/redis/live.ts";

export interface DecideDeps {
  readonly redis: Redis;
  readonly live: Live;
}

/** Handler of group "webhooks". A change that was decided before is left as it was. */
export function decideHandler({ redis, live }: DecideDeps): Handler {
  return async (entries) => {
    const { channels } = await live.refresh();
    const failures: Failure[] = [];
    const decisions: Decision[] = [];
    for (const entry of entries) {
      const read = readEntry(entry);
      if (typeof read === "string") failures.push({ entry, reason: read });
      else if (read.type === "changed") {
        const endpoints = channels.get(read.change.channelId)?.endpoints ?? [];
        if (endpoints.length > 0) {
          decisions.push(decisionOf(entry, read.shipmentId, read.change, endpoints));
        }
      }
    }
    const made = await recordDecisions(redis, decisions, live.now());
    for (const { verdicts } of made) {
      for (const { verdict } of verdicts) webhookDecisions.inc({ verdict });
    }
    return failures;
  };
}

function readEntry({ fields }: Entry) {
  try {
    return decodeChangeEntry(fields);
  } catch (error) {
    return `unreadable: ${error}`;
  }
}

function decisionOf(
  { key, id }: Entry,
  shipmentId: number,
  { channelId, fact, changed, firstOccurrence }: Change,
  endpoints: readonly Endpoint[],
): Decision {
  const input = { status: fact.status, changed, firstOccurrence };
  return {
    shipmentId,
    channelId,
    fact,
    eventId: eventIdOf(key, id),
    entryId: id,
    verdicts: endpoints.map((endpoint) => ({
      endpointId: endpoint.id,
      trigger: endpoint.trigger,
      verdict: decide(endpoint, input),
    })),
  };
}
