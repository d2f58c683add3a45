/**
 * Who sends: bearer token, request rate, source address and client certificate (document 2, "Authentication" and
 * "Limits").
 */

import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import type { RateVerdict } from "#core/events/store/courier-rate.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { isWithin, type Peer, subscriberOf } from "#core/platform/http/peer.ts";
import { certificateMatches } from "#core/platform/network/client-certificate.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Intake } from "#ingest/messages/intake.ts";
import { type CourierTokens, courierOf } from "#ingest/oauth/access-token.ts";

/**
 * Callers without a valid token, and those that request one, share this rate per address; an IPv6 /64 network counts as one
 * address.
 */
export const UNKNOWN_CALLER_RATE = { perSecond: 20, burst: 100 } as const;

export type RateHeaders = Readonly<Record<"x-ratelimit-limit" | "x-ratelimit-remaining", string>>;

export interface Caller {
  readonly courier: Courier;
  /** `X-RateLimit-*`, for every response. */
  readonly rateHeaders: RateHeaders;
}

/** What a request shows of its sender. */
export interface Bearer {
  readonly hasToken: boolean;
  /** Whose token it is; undefined when it is nobody's. */
  readonly courierIn: (configuration: Configuration) => Courier | undefined;
}

/** Looks the far end of a connection up: most requests are judged without it. */
export type FindPeer = () => Peer;

export interface AuthenticateDeps extends Pick<Runtime, "redis" | "live" | "log"> {
  readonly intake: Intake;
  readonly accessTokens: CourierTokens;
}

/**
 * @throws {Problem} 401 unknown token, 403 address or certificate not allowed, 429 rate limited, 503 store unavailable; each
 * with the rate headers
 */
export async function authenticate(
  deps: AuthenticateDeps,
  bearer: Bearer,
  peer: FindPeer,
): Promise<Caller> {
  const { courier, rateHeaders } = await admit(deps, bearer, peer);
  const refusal = courier ? refusalOf(courier, peer) : unknownToken(bearer);
  if (refusal) throw withHeaders(refusal, rateHeaders);
  if (!courier) throw new Error("a caller is either refused or known");
  return { courier, rateHeaders };
}

/**
 * Takes a request from the rate of the courier whose token it bears, else from that of its address.
 * @throws {Problem} 429, 503
 */
export async function admit(
  { redis, live, log, intake }: AuthenticateDeps,
  { courierIn }: Bearer,
  peer: FindPeer,
): Promise<{ readonly courier: Courier | undefined; readonly rateHeaders: RateHeaders }> {
  const expected = courierIn(live.configuration());
  const limit = expected ?? UNKNOWN_CALLER_RATE;
  const subject = expected?.code ?? `ip ${subscriberOf(peer().address)}`;
  try {
    await live.followTestClock();
    const { configuration, rate } = await intake.admit({ subject, limit });
    const rateHeaders = headersOf(rate);
    if (!rate.allowed) throw withHeaders(tooManyRequests(rate), rateHeaders);
    return { courier: courierIn(configuration), rateHeaders };
  } catch (error) {
    // The store that counts is unavailable: nothing remains for now.
    const unknown = headersOf({ limit: limit.burst, remaining: 0 });
    throw withHeaders(toProblem(error, redis, log), unknown);
  }
}

/** @param authorization the header; null for a caller who shows no token */
export async function bearerOf(
  { accessTokens, live }: Pick<AuthenticateDeps, "accessTokens" | "live">,
  authorization: string | null,
): Promise<Bearer> {
  const token = tokenOf(authorization);
  if (token === undefined) return { hasToken: false, courierIn: () => undefined };
  const hash = hashToken(token);
  const isKnown = live.configuration().courierByToken.has(hash);
  const claims = isKnown ? null : await accessTokens.verify(token, live.now());
  return {
    hasToken: true,
    courierIn: (configuration) =>
      configuration.courierByToken.get(hash) ??
      (claims ? courierOf(claims, configuration, live.now()) : undefined),
  };
}

function tokenOf(authorization: string | null): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
}

/** The same problem with these headers; its own go before them. */
export function withHeaders(
  { status, code, detail, members, headers: own }: Problem,
  headers: Readonly<Record<string, string>>,
): Problem {
  return new Problem(status, code, detail, { members, headers: { ...headers, ...own } });
}

export function headersOf({ limit, remaining }: Pick<RateVerdict, "limit" | "remaining">) {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
  } satisfies RateHeaders;
}

/** Of an answer that no rate counts, such as that to a malformed path: what a caller without a token may have at once. */
export const UNCOUNTED_HEADERS = headersOf({
  limit: UNKNOWN_CALLER_RATE.burst,
  remaining: UNKNOWN_CALLER_RATE.burst,
});

export function tooManyRequests({ retryAfterMs }: Pick<RateVerdict, "retryAfterMs">): Problem {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new Problem(429, "RATE_LIMITED", `Too many requests; retry after ${seconds} s.`, {
    headers: { "retry-after": String(seconds) },
  });
}

function unknownToken({ hasToken }: Bearer): Problem {
  const challenge = hasToken ? 'Bearer error="invalid_token"' : "Bearer";
  const detail = "The bearer token is missing, unknown or expired.";
  return new Problem(401, "UNKNOWN_TOKEN", detail, { headers: { "www-authenticate": challenge } });
}

/** Why a courier may not send from here; null when it may. An empty allowlist allows any address. */
export function refusalOf({ allowedIps, mtls }: Courier, peer: FindPeer): Problem | null {
  if (allowedIps.length > 0 && !isWithin(peer().address, allowedIps)) {
    return new Problem(403, "ADDRESS_NOT_ALLOWED", "The source address is not on the allowlist.");
  }
  if (mtls && !certificateMatches(peer().certificate, mtls)) {
    const detail = "This courier must connect with the client certificate agreed at onboarding.";
    return new Problem(403, "CERTIFICATE_NOT_ACCEPTED", detail);
  }
  return null;
}
