/**
 * Test events (document 3, "Test event"): asked for by the panel, sent by the process that sends webhooks, answered here.
 * A request nobody takes within 30 s is dropped.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "#core/platform/redis/client.ts";
import { WEBHOOK_TESTS_KEY, webhookTestKey } from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import type { StatusPair } from "#core/statuses/rules/status.ts";
import type { WebhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { SAMPLE_PAIR } from "#core/webhooks/rules/webhook-sample.ts";

const REQUEST_LIFE_SECONDS = 30;
/** Longer than a test's own 10 seconds and the time to be taken. */
const ANSWER_LIMIT_MS = 15_000;
const POLL_MS = 50;
/** Requests waiting at once; further ones are refused. */
const WAITING_LIMIT = 100;

export interface TestRequest {
  readonly testId: string;
  readonly endpointId: string;
  /** What the sample shipment is in. */
  readonly pair: StatusPair;
}

/** What the panel answers. */
export interface TestResult {
  readonly delivered: boolean;
  readonly httpStatus: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  /** What was sent; null if the endpoint is gone. */
  readonly payload: WebhookPayload | null;
  /** What came back; null when no answer did. */
  readonly answer: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | null;
  } | null;
}

/** Asks for a test event and waits for its result; null when nobody sends webhooks at the moment. */
export async function requestTestEvent(
  redis: Redis,
  endpointId: string,
  pair: StatusPair = SAMPLE_PAIR,
): Promise<TestResult | null> {
  if ((await redis.lLen(WEBHOOK_TESTS_KEY)) >= WAITING_LIMIT) return null;
  const request: TestRequest = { testId: randomUUID(), endpointId, pair };
  await redis
    .multi()
    .rPush(WEBHOOK_TESTS_KEY, JSON.stringify(request))
    .expire(WEBHOOK_TESTS_KEY, REQUEST_LIFE_SECONDS)
    .exec();
  announce(redis, "webhook-tests");
  const deadline = performance.now() + ANSWER_LIMIT_MS;
  while (performance.now() < deadline) {
    const text = await redis.getDel(webhookTestKey(request.testId));
    if (text !== null) return JSON.parse(text);
    await Bun.sleep(POLL_MS);
  }
  return null;
}

/** The oldest requests, taken out. */
export async function takeTestRequests(redis: Redis, limit: number): Promise<TestRequest[]> {
  const texts = await redis.lPopCount(WEBHOOK_TESTS_KEY, limit);
  return (texts ?? []).map((text) => JSON.parse(String(text)));
}

export async function answerTestRequest(
  redis: Redis,
  { testId }: TestRequest,
  result: TestResult,
): Promise<void> {
  await redis.set(webhookTestKey(testId), JSON.stringify(result), { EX: REQUEST_LIFE_SECONDS });
}
