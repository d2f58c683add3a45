/** From the change log to webhook decisions: one for every change and endpoint, recorded with its deliveries. */

import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import type { Failure, Handler, LogItem } from "#core/platform/log/consumer.ts";
import { webhookDecisions } from "#core/platform/process/metrics.ts";
import { continueTrace, messageFacts, type TracedWork } from "#core/platform/process/tracing.ts";
import { isCluster, type Redis } from "#core/platform/redis/client.ts";
import { type ChangeSummary, decodeChangeEntry } from "#core/shipments/store/change-log.ts";
import { decide, type Subscription, type Verdict } from "#core/webhooks/rules/trigger.ts";
import { v1EndpointId } from "#core/webhooks/rules/webhook-v1.ts";
import {
  type Decision,
  eventIdOf,
  recordCurrentDecisions,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";

export interface DecideDeps {
  readonly redis: Redis;
  readonly live: Live;
}

/**
 * Handler of group "webhooks". A change that was decided before is left as it was. A configuration that was saved before the change
 * was read counts: on one server the script makes sure of it, on a cluster its version stands in another slot and is asked for before.
 */
export function decideHandler({ redis, live }: DecideDeps): Handler {
  return async (entries) => {
    await live.followTestClock();
    const { channels, version } = live.configuration();
    const first = decideAll(entries, channels);
    if (!isCluster(redis) && first.decisions.length > 0) {
      const recorded = await recordCurrentDecisions(redis, version, first.decisions, live.now());
      countVerdicts(recorded.made);
      if (!recorded.isStale) return concluded(first);
    }
    const current = await live.refresh();
    const decided = current.channels === channels ? first : decideAll(entries, current.channels);
    countVerdicts(await recordDecisions(redis, decided.decisions, live.now()));
    return concluded(decided);
  };
}

interface Decided {
  readonly decisions: readonly Decision[];
  readonly spans: readonly TracedWork[];
  readonly failures: readonly Failure[];
}

function decideAll(entries: readonly LogItem[], channels: Configuration["channels"]): Decided {
  const failures: Failure[] = [];
  const decisions: Decision[] = [];
  const spans: TracedWork[] = [];
  for (const entry of entries) {
    const read = readEntry(entry);
    if (typeof read === "string") failures.push({ entry, reason: read });
    else if (read.type === "changed") {
      const subscribers = subscribersOf(channels.get(read.change.channelId));
      if (subscribers.length > 0) {
        const decision = decisionOf(entry, read.shipmentId, read.change, subscribers);
        const { traced, span } = traceOf(decision);
        decisions.push(traced);
        if (span !== null) spans.push(span);
      }
    }
  }
  return { decisions, spans, failures };
}

/** Spans of what was decided by an earlier configuration are never ended, and not sent. */
function concluded({ spans, failures }: Decided): readonly Failure[] {
  for (const span of spans) span.end();
  return failures;
}

/** Once for a batch: a counter looks its labels up each time. */
function countVerdicts(made: readonly Decision[]): void {
  const counts = new Map<Verdict, number>();
  for (const { verdicts } of made) {
    for (const { verdict } of verdicts) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  }
  for (const [verdict, count] of counts) webhookDecisions.inc({ verdict }, count);
}

/** The deliveries of a traced change go on under the span of its decision. */
function traceOf(decision: Decision): { traced: Decision; span: TracedWork | null } {
  const { fact, eventId, shipmentId, verdicts } = decision;
  const span = continueTrace("consumer", "decide webhooks", fact.traceparent);
  if (span === null) return { traced: decision, span };
  const sends = verdicts.filter(({ verdict }) => verdict === "send").length;
  span.set({
    ...messageFacts("change", "decide"),
    "waybill.webhook_event_id": eventId,
    "waybill.shipment_id": shipmentId,
    "waybill.endpoints": verdicts.length,
    "waybill.deliveries": sends,
  });
  return { traced: { ...decision, fact: { ...fact, traceparent: span.traceparent } }, span };
}

interface Subscriber extends Subscription {
  readonly id: string;
}

/** Webhooks v1 hear only while the channel has no endpoint of v2 at all (document 3, "Versioning"). */
function subscribersOf(channel: Channel | undefined): readonly Subscriber[] {
  if (!channel) return [];
  const { id, endpoints, webhookV1 } = channel;
  if (endpoints.length > 0 || !webhookV1) return endpoints;
  return [{ id: v1EndpointId(id), trigger: "status_change", statuses: [], active: true }];
}

function readEntry({ fields }: LogItem) {
  try {
    return decodeChangeEntry(fields);
  } catch (error) {
    return `unreadable: ${error}`;
  }
}

function decisionOf(
  { key, id }: LogItem,
  shipmentId: number,
  { channelId, fact, changed, firstOccurrence }: ChangeSummary,
  subscribers: readonly Subscriber[],
): Decision {
  const input = { status: fact.status, changed, firstOccurrence };
  return {
    shipmentId,
    channelId,
    fact,
    eventId: eventIdOf(key, id),
    entryId: id,
    verdicts: subscribers.map((subscriber) => ({
      endpointId: subscriber.id,
      trigger: subscriber.trigger,
      verdict: decide(subscriber, input),
    })),
  };
}
