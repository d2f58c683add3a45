/** Uses every script of the webhooks once at least, and tells of each call before it is made. */
import { expect } from "bun:test";
import { rememberEvents } from "#core/events/store/event-log.ts";
import rememberSource from "#core/events/store/remember.lua" with { type: "text" };
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import type { Redis, Script } from "#core/platform/redis/client.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import alertSource from "#core/webhooks/store/alert.lua" with { type: "text" };
import clearFailingSource from "#core/webhooks/store/clear-failing.lua" with { type: "text" };
import decideSource from "#core/webhooks/store/deliveries/decide.lua" with { type: "text" };
import {
  type Decision,
  drainQueues,
  recordDecisions,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import drainSource from "#core/webhooks/store/deliveries/drain.lua" with { type: "text" };
import finishSource from "#core/webhooks/store/deliveries/finish.lua" with { type: "text" };
import type { Finished } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import leaseSource from "#core/webhooks/store/deliveries/lease.lua" with { type: "text" };
import { renewLeases } from "#core/webhooks/store/deliveries/leases.ts";
import reclaimSource from "#core/webhooks/store/deliveries/reclaim.lua" with { type: "text" };
import renewSource from "#core/webhooks/store/deliveries/renew.lua" with { type: "text" };
import replaySource from "#core/webhooks/store/deliveries/replay.lua" with { type: "text" };
import {
  replayDeliveries,
  runningReplays,
  startReplay,
  stepReplay,
} from "#core/webhooks/store/deliveries/replays.ts";
import resumeSource from "#core/webhooks/store/deliveries/resume.lua" with { type: "text" };
import { clearFailing, raiseAlerts } from "#core/webhooks/store/endpoints.ts";
import endpointCapacity from "#core/webhooks/store/parts/endpoint-capacity.lua" with {
  type: "text",
};
import endpointConcurrency from "#core/webhooks/store/parts/endpoint-concurrency.lua" with {
  type: "text",
};
import endpointHealth from "#core/webhooks/store/parts/endpoint-health.lua" with { type: "text" };
import settleDelivery from "#core/webhooks/store/parts/settle-delivery.lua" with { type: "text" };
import { eventually } from "#test/support/eventually.ts";
import type { openTestRuntime, TestRuntime } from "#test/support/product/runtime.ts";
import {
  deliveriesOf,
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  recordResults,
} from "#test/support/product/webhooks.ts";

export const SOURCES = {
  alert: alertSource,
  "clear-failing": clearFailingSource,
  decide: decideSource,
  drain: drainSource,
  finish: finishSource,
  lease: leaseSource,
  reclaim: reclaimSource,
  remember: rememberSource,
  renew: renewSource,
  replay: replaySource,
  resume: resumeSource,
};
export type ScriptName = keyof typeof SOURCES;

export function scriptNamed(name: ScriptName): Script {
  return scriptOfParts(SOURCES[name], {
    "endpoint-health": endpointHealth,
    "endpoint-concurrency": endpointConcurrency,
    "endpoint-capacity": endpointCapacity,
    "settle-delivery": settleDelivery,
  });
}

export interface ScriptCall {
  readonly keys: string[];
  readonly arguments: Array<string | Buffer>;
}

/** Longer than any test. */
const LEASE_MS = 600_000;

/** @param store what `openTestRuntime` takes */
export function openScriptRuntime(
  ...store: [env?: Readonly<Record<string, string>>, given?: Parameters<typeof openTestRuntime>[2]]
): Promise<TestRuntime> {
  const webhooks = ["first", "second"].map((code) => ({ code, url: "https://localhost:1/" }));
  const triggered = webhooks.map((one) => ({ ...one, trigger: "every_event" as const }));
  return openWebhookRuntime(triggered, ...store);
}

/** The same client, whose calls of the scripts wait for `beforeCall`. */
function watched(
  redis: Redis,
  beforeCall: (name: ScriptName, call: ScriptCall) => Promise<void>,
): Redis {
  const names = new Map(
    (Object.keys(SOURCES) as ScriptName[]).map((name) => [scriptNamed(name).sha, name]),
  );
  const evalSha = async (sha: string, call: ScriptCall) => {
    const name = names.get(sha);
    if (name) await beforeCall(name, call);
    return redis.evalSha(sha, call);
  };
  return new Proxy(redis, {
    get(target, member) {
      if (member === "evalSha") return evalSha;
      const value = Reflect.get(target, member);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export function partitionOf(runtime: TestRuntime): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(endpointOf(runtime, "first").channelId)?.companyId ?? 0);
}

let changes = 0;

/** Two changes for both endpoints. */
async function queue(runtime: TestRuntime, shipmentId: number): Promise<void> {
  const decisions = [1, 2].map((): Decision => {
    changes += 1;
    const text = { key: `fact-${changes}`, courierStatus: "In transito", place: null };
    const fact = { ...text, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT", detail: 0 };
    const ids = ["first", "second"].map((code) => endpointOf(runtime, code).id);
    return {
      shipmentId,
      channelId: endpointOf(runtime, "first").channelId,
      eventId: `evt_${changes}`,
      entryId: `${changes}-0`,
      fact: fact as Decision["fact"],
      verdicts: ids.map((endpointId) => ({ endpointId, trigger: "every_event", verdict: "send" })),
    };
  });
  await recordDecisions(runtime.redis, decisions, runtime.live.now());
}

function lease(runtime: TestRuntime, leaseMs = LEASE_MS) {
  const wanted = { wanted: 10, wantedFailing: 10, wantedSilent: 10 };
  const limits = { leaseMs, perEndpoint: 10, perFailingEndpoint: 10, perSilentEndpoint: 10 };
  const silent = new Set([endpointOf(runtime, "second").id]);
  const terms = { ...limits, silent, retries: "last" } as const;
  return leaseRound(runtime, [{ partition: partitionOf(runtime), ...wanted }], terms);
}

/** Every script with more than one thing to do. */
export async function useAllScripts(
  given: TestRuntime,
  beforeCall: (name: ScriptName, call: ScriptCall) => Promise<void>,
): Promise<void> {
  const runtime = { ...given, redis: watched(given.redis, beforeCall) };
  const { redis, live } = runtime;
  const [nowMs, first, second] = [
    live.now(),
    endpointOf(given, "first"),
    endpointOf(given, "second"),
  ];
  await queue(runtime, await newShipment(given));
  const leased = await lease(runtime);
  expect(leased).toHaveLength(4);
  await renewLeases(redis, leased, LEASE_MS);
  const sent = {
    httpStatus: 500,
    durationMs: 7,
    error: "http_500",
    responseSnippet: null,
    responseHeaders: null,
    request: null,
  };
  const results = leased.map(
    (of, at): Finished => ({
      of,
      attempt: { generation: 1, attempt: 1, atMs: nowMs, ...sent },
      ...(at % 4 < 2
        ? { state: "waiting", nextAttemptAtMs: nowMs, reason: null }
        : { state: "failed", nextAttemptAtMs: null, reason: "gave up" }),
    }),
  );
  await recordResults(runtime, results);
  const logs = await Promise.all([first, second].map((one) => deliveriesOf(given, one)));
  const failed = logs.flat().filter(({ state }) => state === "failed");
  const ids = failed.map(({ deliveryId }) => deliveryId);
  expect(await replayDeliveries(redis, ids, nowMs)).toHaveLength(2);

  // What is under way when its lease ends is put back.
  await lease(runtime, 1);
  await eventually(async () => (await lease(runtime)).length === 4, "the leases have ended");

  await redis.zAdd(webhookKeys(partitionOf(given)).pauses, { value: first.id, score: 1 });
  await lease(runtime);

  await queue(runtime, await newShipment(given));
  await drainQueues(redis, partitionOf(given), [first.id], "switched off");
  await replayWindow(runtime, first.id);
  await judgeHealth(runtime, first.id, second.id);

  const layout = await seenLayout(redis, nowMs, 1_000);
  const seen = seenBucket("GLS_ITA", "event-1");
  await rememberEvents(redis, layout, [seen, { ...seen, member: "1" }]);
}

async function replayWindow(runtime: TestRuntime, endpointId: string): Promise<void> {
  const { redis, live } = runtime;
  const startedAtMs = live.now();
  const window = { endpointId, fromMs: 0, toMs: startedAtMs + 1_000, startedAtMs };
  const partition = partitionOf(runtime);
  await startReplay(redis, partition, { ...window, mode: "latest_per_shipment" });
  const [replay] = await runningReplays(redis, partition);
  if (!replay) throw new Error("no replay");
  await stepReplay(redis, replay, 50, 0, live.now());
}

async function judgeHealth(runtime: TestRuntime, one: string, other: string): Promise<void> {
  const { redis, live } = runtime;
  const { failing } = webhookKeys(partitionOf(runtime));
  const about = async (endpointId: string) => {
    const sinceMs = (await redis.zScore(failing, endpointId)) ?? 0;
    return { partition: partitionOf(runtime), endpointId, sinceMs };
  };
  const verdicts = [
    { ...(await about(one)), kind: "warning" as const },
    { ...(await about(other)), kind: "disabled" as const },
  ];
  expect(await raiseAlerts(redis, verdicts, live.now())).toBe(2);
  await clearFailing(redis, live.configuration(), one, live.now());
}
