/**
 * The request log: calls of the APIs that were refused or failed, for each tenant, so that a quoted `requestId` leads somewhere. Nothing
 * is written for a call that succeeds, and no answer waits for what is written.
 */
import type { Problem } from "#core/platform/errors/problem.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { refusedRequestsKey } from "#core/platform/redis/keys.ts";
import { limit, rate } from "#core/platform/schema/limit.ts";
import { bodyShape } from "./body-shape.ts";
import { currentRequestId } from "./request-id.ts";

export const REQUESTS_KEPT_DAYS = limit(7, "for how long refused calls are kept", "deleted");
export const REQUESTS_OF_TENANT = limit(
  1_000,
  "latest refused calls kept of a company or a courier",
  "the oldest go",
);
export const REQUESTS_OF_ALL = limit(
  5_000,
  "latest refused calls of all callers kept for operators",
  "the oldest go",
);
/** Of each process: a flood of refused calls neither fills the store nor pushes out what was refused before it. */
const KEPT_OF_TENANT = rate(
  50,
  5,
  "refused calls of a tenant that a process writes down",
  "the answer alone tells of them",
);
/** Ids that programs make: UUIDs, ULIDs and those of traces. What else a caller sends may be anybody's name or address. */
const MADE_ID =
  /^(?:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{16,64}|[\dA-HJKMNP-TV-Z]{26})$/i;
/** Tenants whose buckets a process keeps. */
const TENANTS_KNOWN = 10_000;
const READ_TOGETHER = 250;
const DAY_MS = 86_400_000;
const TTL_SECONDS = (REQUESTS_KEPT_DAYS + 1) * 86_400;

/** Whose every refused call is among. */
export const ALL_CALLERS = "operators";

export interface RefusedRequest {
  readonly atMs: number;
  /** As accounts have it: `company <code>`, `courier <code>`; empty = nobody known. */
  readonly tenant: string;
  readonly method: string;
  /** Pattern, such as `/v2/shipments/:id`; empty where there is none: a path may hold anything. */
  readonly route: string;
  readonly status: number;
  readonly code: string;
  /** Code of the API key; null of a caller without. */
  readonly key: string | null;
  readonly requestId: string;
  /** Names and types of the body's members; null if it was not read. */
  readonly body: unknown;
}

interface Requester {
  readonly tenant: string;
  readonly key: string | null;
}

const requesters = new WeakMap<Request, Requester>();
const bodies = new WeakMap<Request, unknown>();

/** Who calls, as soon as that is known. */
export function noteRequester(request: Request, requester: Requester): void {
  requesters.set(request, requester);
}

/** What was read of the call: its shape is kept if the call is refused. */
export function noteBody(request: Request, body: unknown): void {
  bodies.set(request, body);
}

export interface Refusal {
  readonly request: Request;
  /** Undefined where the path has none, and before it is looked for, whatever the framework's type says. */
  readonly route: string | undefined;
  readonly problem: Problem;
}

interface Keeping {
  readonly redis: Redis;
  readonly log: Log;
  readonly now: () => number;
}

/** Of one process. @returns what an app calls with each problem that it answers */
export function requestLog({ redis, log, now }: Keeping): (refusal: Refusal) => void {
  const buckets = new Map<string, { left: number; atMs: number }>();
  const takes = (tenant: string): boolean => {
    const nowMs = performance.now();
    const bucket = buckets.get(tenant) ?? { left: KEPT_OF_TENANT.burst, atMs: nowMs };
    const more = ((nowMs - bucket.atMs) / 1_000) * KEPT_OF_TENANT.perSecond;
    bucket.left = Math.min(KEPT_OF_TENANT.burst, bucket.left + more);
    bucket.atMs = nowMs;
    if (buckets.size < TENANTS_KNOWN) buckets.set(tenant, bucket);
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
  };
  return ({ request, route = "", problem: { status, code } }) => {
    const { tenant = "", key = null } = requesters.get(request) ?? {};
    if (!takes(tenant)) return;
    const { method } = request;
    const requestId = currentRequestId() ?? "";
    const body = bodyShape(bodies.get(request));
    const entry = { atMs: now(), tenant, method, route, status, code, key, requestId, body };
    // An unexpected error has its own line, with the same id.
    const isLogged = code !== "INTERNAL_ERROR" && MADE_ID.test(requestId);
    if (isLogged) log.info({ method, route, status, code, tenant }, "call refused");
    write(redis, entry).catch((error: Error) =>
      log.debug({ reason: error.message }, "a refused call was not written down"),
    );
  };
}

async function write(redis: Redis, entry: RefusedRequest): Promise<void> {
  const text = JSON.stringify(entry);
  const lists: [string, number][] = [[ALL_CALLERS, REQUESTS_OF_ALL]];
  if (entry.tenant !== "") lists.push([entry.tenant, REQUESTS_OF_TENANT]);
  await Promise.all(
    lists.flatMap(([tenant, most]) => {
      const name = refusedRequestsKey(tenant);
      return [
        redis.lPush(name, text),
        redis.lTrim(name, 0, most - 1),
        redis.expire(name, TTL_SECONDS),
      ];
    }),
  );
}

/** Newest first. @param tenant whose, or `ALL_CALLERS` */
export async function readRefusedRequests(
  redis: Redis,
  tenant: string,
  nowMs: number,
): Promise<RefusedRequest[]> {
  const sinceMs = nowMs - REQUESTS_KEPT_DAYS * DAY_MS;
  const found: RefusedRequest[] = [];
  for (let from = 0; from < REQUESTS_OF_ALL; from += READ_TOGETHER) {
    const rows = await redis.lRange(refusedRequestsKey(tenant), from, from + READ_TOGETHER - 1);
    const own = rows.map((row): RefusedRequest => JSON.parse(row));
    found.push(...own.filter(({ atMs }) => atMs >= sinceMs));
    if (rows.length < READ_TOGETHER) break;
  }
  return found;
}
