/** The two endpoints for messages: one stores what it accepts, the other only says what would become of it. */

import type { Courier } from "#core/configuration/store/configuration.ts";
import { countRefused } from "#core/events/store/courier-counts.ts";
import { keepInInbox } from "#core/events/store/courier-inbox.ts";
import { type MessageOutcomes, outcomeKeeper } from "#core/events/store/event-outcomes.ts";
import { seenLayout } from "#core/events/store/seen.ts";
import { canTakeEvents, soleReference } from "#core/events/store/take-event.ts";
import {
  ambiguousEvents,
  eventsNotParked,
  eventsReceived,
  outcomesNotKept,
} from "#core/platform/process/metrics.ts";
import { currentSpan } from "#core/platform/process/tracing.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { watchChangeLog } from "#core/shipments/store/change-log-watch.ts";
import type { AuthenticateDeps } from "#ingest/authenticate.ts";
import {
  type Classified,
  classified,
  classify,
  logFull,
  type Outcome,
  type UnmatchedKind,
  validate,
} from "./classify.ts";
import { countOutcomes, OUTCOMES, outcomesToKeep } from "./message-report.ts";
import { type Message, type Prepared, prepare } from "./prepare.ts";
import type { MessageHandler, TakeTerms } from "./receive-message.ts";

type Deps = Runtime & AuthenticateDeps;

const REFUSED: ReadonlySet<Outcome> = new Set(["UNKNOWN_TRACKING", "INVALID"]);

function countFromZero(courier: string): void {
  for (const outcome of OUTCOMES) eventsReceived.inc({ courier, outcome }, 0);
  eventsNotParked.inc({ courier }, 0);
}

/** `POST /v1/events` */
export function storingHandler(deps: Deps): MessageHandler<Prepared> {
  const { redis, live, config, intake } = deps;
  const changeLog = watchChangeLog(redis, config.logHighWater);
  const keepOutcomes = outcomesInBackground(deps);
  for (const courier of live.configuration().couriers.keys()) countFromZero(courier);

  return {
    requiresActivation: true,
    prepare(courier, message, isTakenAtOnce) {
      // With what is looked up for the message, and not after it.
      changeLog.wasFull();
      return prepare({ intake }, courier, message, isTakenAtOnce);
    },
    async take(courier, prepared, terms) {
      const { messageId, receivedAtMs } = terms;
      const isFull = changeLog.wasFull() !== false;
      const taken = isFull ? null : await takeAtOnce(deps, courier, prepared, terms);
      if (taken === null) {
        // Beside its admission, which comes now.
        prepared.candidates().catch(() => {});
        return null;
      }
      const { rate, outcome, candidacy } = taken;
      const judge = async () => {
        const results = [classified(candidacy, outcome ?? undefined)];
        const message = { courier: courier.code, messageId, receivedAtMs };
        await account(deps, message, results);
        keepOutcomes({
          ...message,
          outcomes: outcomesToKeep(results, NONE_UNMATCHED, prepared.events),
        });
        return results;
      };
      return { rate, judge };
    },
    async classify(courier, prepared, messageId, receivedAtMs) {
      if (await changeLog.isFull()) throw logFull();
      const { code } = courier;
      const unmatched = new Map<number, UnmatchedKind>();
      const results = await classify(
        {
          redis,
          intake,
          configuration: live.configuration(),
          messageId,
          traceparent: currentSpan()?.traceparent,
          onUnmatched: (messageIndex, why) => unmatched.set(messageIndex, why),
          layout: await seenLayout(redis, receivedAtMs, config.eventsPerDay),
          onAmbiguous: (count) => ambiguousEvents.inc({ courier: code }, count),
          onNotParked: (count) => eventsNotParked.inc({ courier: code }, count),
        },
        courier,
        prepared,
        receivedAtMs,
      );
      const message = { courier: code, messageId, receivedAtMs };
      await account(deps, message, results);
      keepOutcomes({ ...message, outcomes: outcomesToKeep(results, unmatched, prepared.events) });
      return results;
    },
  };
}

const NONE_UNMATCHED: ReadonlyMap<number, UnmatchedKind> = new Map();

/** @returns null where the message has to be classified: nothing was done */
async function takeAtOnce(
  { redis, config, intake }: Deps,
  courier: Courier,
  { size, first }: Prepared,
  { version, messageId, receivedAtMs }: TakeTerms,
) {
  const [candidacy] = first.open;
  if (!candidacy || size !== 1 || !canTakeEvents(redis)) return null;
  const { event, seen, messageIndex } = candidacy;
  const reference = soleReference(event, candidacy);
  if (reference === null) return null;
  const { code } = courier;
  const traceparent = currentSpan()?.traceparent;
  const terms = {
    version,
    rate: { subject: code, limit: courier },
    layout: await seenLayout(redis, receivedAtMs, config.eventsPerDay),
    nowMs: receivedAtMs,
  };
  const { factKey } = seen;
  const logged = { courier: code, factKey, receivedAtMs, messageIndex, event, messageId };
  const traced = traceparent === undefined ? logged : { ...logged, traceparent };
  const taken = await intake.take({ terms, event: { ...traced, seen, reference } });
  return taken && { ...taken, candidacy };
}

/** Counts and logs what became of the events; only the counters of the ledger are waited for. */
async function account(
  { redis, log }: Deps,
  { courier, messageId, receivedAtMs }: Omit<MessageOutcomes, "outcomes">,
  results: readonly Classified[],
): Promise<void> {
  // A courier may be newer than this process.
  eventsNotParked.inc({ courier }, 0);
  const counts = countOutcomes(results);
  for (const outcome of OUTCOMES) {
    eventsReceived.inc({ courier, outcome }, counts[outcome]);
  }
  const refused = results.filter(({ outcome }) => REFUSED.has(outcome));
  await countRefused(redis, courier, refused, receivedAtMs);
  log.info({ courier, messageId, ...counts }, "message processed");
  currentSpan()?.set({
    "waybill.courier": courier,
    "waybill.message_id": messageId,
    "waybill.accepted": counts.ACCEPTED,
    "waybill.events": results.length,
  });
}

/** `POST /v1/events/validate` */
export function validatingHandler({ redis, config }: Deps): MessageHandler<Message> {
  return {
    requiresActivation: false,
    prepare: (_, message) => message,
    classify: async (courier, message, _, receivedAtMs) => {
      const layout = await seenLayout(redis, receivedAtMs, config.eventsPerDay);
      return validate({ redis, layout }, courier, message);
    },
  };
}

/** The answer does not wait for it: an operator may look it up, nothing depends on it. */
function outcomesInBackground({ redis }: Deps): (message: MessageOutcomes) => void {
  const keep = outcomeKeeper(redis);
  const keepAll = async (message: MessageOutcomes) => {
    const [lines] = await Promise.all([keep(message), keepInInbox(redis, message)]);
    return lines;
  };
  return (message) => {
    const { courier, outcomes } = message;
    if (outcomes.length === 0) return;
    keepAll(message).then(
      (lines) => outcomesNotKept.inc({ courier }, lines),
      () => outcomesNotKept.inc({ courier }, 2 * outcomes.length),
    );
  };
}
