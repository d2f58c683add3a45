/** Sends the test events that the panel asks for: one attempt, the real secret, a fixed sample (document 3, "Test event"). */
import { randomBytes } from "node:crypto";
import type { Endpoint } from "#core/configuration/store/configuration.ts";
import type { Log } from "#core/platform/process/log.ts";
import { internalErrors } from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { openWaker } from "#core/platform/redis/wake.ts";
import type { StatusPair } from "#core/statuses/rules/status.ts";
import { errorOf, meaningOf } from "#core/webhooks/rules/delivery-outcome.ts";
import { shownHeaders } from "#core/webhooks/rules/shown-answer.ts";
import { type WebhookEvent, webhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { sampleIn } from "#core/webhooks/rules/webhook-sample.ts";
import { clearFailing, DELETED_REASON } from "#core/webhooks/store/endpoints.ts";
import { signedHeaders } from "#core/webhooks/store/signed-headers.ts";
import { noteVerified } from "#core/webhooks/store/verified-endpoints.ts";
import { bodyTerms, bodyText } from "#core/webhooks/store/webhook-body.ts";
import {
  answerTestRequest,
  type TestRequest,
  type TestResult,
  takeTestRequests,
} from "#core/webhooks/store/webhook-tests.ts";
import type { SendDeps } from "./attempt.ts";

/** Requests are announced; one whose announcement was lost is found within this time. */
const LOOK_EVERY_MS = 2_000;
/** Test events sent at once. */
const AT_ONCE = 10;

export interface TestEventDeps extends SendDeps {
  readonly redis: Redis;
  readonly log: Log;
}

export interface TestSender {
  readonly stop: () => Promise<void>;
}

export function startTestSender(deps: TestEventDeps): TestSender {
  const underWay = new Set<Promise<void>>();
  const ticking = startTickingThroughOutages(deps.log, "webhook tests", LOOK_EVERY_MS, () =>
    takeAll(deps, underWay, () => ticking.wake()),
  );
  const waker = openWaker(deps.redis, "webhook-tests", ticking.wake);
  return {
    async stop() {
      waker.close();
      await ticking.stop();
      await Promise.all(underWay);
    },
  };
}

async function takeAll(
  deps: TestEventDeps,
  underWay: Set<Promise<void>>,
  wake: () => void,
): Promise<void> {
  const free = AT_ONCE - underWay.size;
  const requests = free > 0 ? await takeTestRequests(deps.redis, free) : [];
  for (const request of requests) {
    const work = answer(deps, request)
      .catch((error: Error) => deps.log.warn({ reason: error.message }, "test event dropped"))
      .finally(() => {
        underWay.delete(work);
        wake();
      });
    underWay.add(work);
  }
}

async function answer(deps: TestEventDeps, request: TestRequest): Promise<void> {
  const configuration = await deps.live.refresh();
  const endpoint = configuration.endpoints.get(request.endpointId);
  const result = endpoint ? await sendTestSafely(deps, endpoint, request.pair) : GONE;
  if (result.delivered) await recordSuccess(deps, request.endpointId);
  await answerTestRequest(deps.redis, request, result);
}

/** A success makes the endpoint healthy; a failed test event does not count, and neither does one of an endpoint that is off. */
async function recordSuccess({ redis, live }: TestEventDeps, endpointId: string): Promise<void> {
  const configuration = await live.refresh();
  if (!configuration.endpoints.get(endpointId)?.active) return;
  await noteVerified(redis, endpointId, live.now());
  await clearFailing(redis, configuration, endpointId, live.now());
}

const GONE: TestResult = {
  delivered: false,
  httpStatus: null,
  durationMs: 0,
  error: DELETED_REASON,
  payload: null,
  answer: null,
};

/** Internal errors are reported to the panel too, so that it does not wait for nothing. */
async function sendTestSafely(
  deps: TestEventDeps,
  endpoint: Endpoint,
  pair: StatusPair,
): Promise<TestResult> {
  try {
    return await sendTest(deps, endpoint, pair);
  } catch (error) {
    internalErrors.inc({ part: "webhook tests" });
    deps.log.error({ err: error, endpoint: endpoint.id }, "a test event could not be sent");
    return { ...GONE, error: "internal error" };
  }
}

async function sendTest(
  deps: TestEventDeps,
  endpoint: Endpoint,
  pair: StatusPair,
): Promise<TestResult> {
  const { statusDetails } = deps.live.configuration();
  const { fact, shipment } = sampleIn(pair, statusDetails.get(pair.detail));
  const event: WebhookEvent = {
    id: `evt_test_${randomBytes(16).toString("hex")}`,
    type: "webhook.test",
    createdAtMs: deps.live.now(),
    trigger: endpoint.trigger,
    fact,
  };
  const { withConsignee, source } = bodyTerms(endpoint, deps.live.configuration());
  const payload = webhookPayload(event, shipment, withConsignee);
  const facts = { eventId: event.id, type: event.type, attempt: 1, sentAtMs: event.createdAtMs };
  const body = Buffer.from(bodyText(payload, source));
  const headers = signedHeaders(endpoint, deps.vault, facts, body);
  const sent = await deps.transport.post(endpoint.url, headers, body);
  return {
    delivered: meaningOf(sent) === "delivered",
    httpStatus: sent.kind === "answered" ? sent.httpStatus : null,
    durationMs: sent.durationMs,
    error: errorOf(sent),
    payload,
    answer:
      sent.kind === "answered"
        ? { headers: shownHeaders(sent.responseHeaders) ?? {}, body: sent.responseSnippet }
        : null,
  };
}
