/** Who sends: bearer token, request rate and source address (document 2, "Authentication" and "Limits"). */
import ipaddr from "ipaddr.js";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Courier } from "#core/redis/configuration.ts";
import { type RateVerdict, takeCourierRate } from "#core/redis/courier-rate.ts";
import type { Live } from "#core/redis/live.ts";
import { hashToken } from "#core/secrets.ts";

/** Callers without a valid token share this rate per address. */
const UNKNOWN_CALLER_RATE = { perSecond: 20, burst: 100 };

export interface Caller {
  readonly courier: Courier;
  /** `X-RateLimit-*`, for every response. */
  readonly rateHeaders: Readonly<Record<string, string>>;
}

/**
 * @param address the peer's IP address
 * @throws {Problem} 401 unknown token, 403 address not allowed, 429 rate limited; each with the rate headers
 */
export async function authenticate(
  { redis, live }: { readonly redis: Redis; readonly live: Live },
  authorization: string | null,
  address: string,
): Promise<Caller> {
  const token = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  const hash = token === undefined ? "" : hashToken(token);
  await live.followTestClock();
  const expected = live.configuration().courierByToken.get(hash);
  const [configuration, rate] = await Promise.all([
    live.refresh(),
    takeCourierRate(
      redis,
      expected?.code ?? `ip ${address}`,
      expected ?? UNKNOWN_CALLER_RATE,
      live.now(),
    ),
  ]);
  const courier = configuration.courierByToken.get(hash);
  const rateHeaders = headersOf(rate);
  if (!rate.allowed) throw tooManyRequests(rate, rateHeaders);
  if (!courier) {
    throw new Problem(401, "UNKNOWN_TOKEN", "The bearer token is missing or unknown.", {
      headers: { ...rateHeaders, "www-authenticate": "Bearer" },
    });
  }
  if (!isAllowed(courier, address)) {
    throw new Problem(403, "ADDRESS_NOT_ALLOWED", "The source address is not on the allowlist.", {
      headers: rateHeaders,
    });
  }
  return { courier, rateHeaders };
}

function headersOf({ limit, remaining }: RateVerdict): Record<string, string> {
  return { "x-ratelimit-limit": String(limit), "x-ratelimit-remaining": String(remaining) };
}

function tooManyRequests(rate: RateVerdict, rateHeaders: Record<string, string>): Problem {
  const seconds = Math.max(1, Math.ceil(rate.retryAfterMs / 1000));
  return new Problem(429, "RATE_LIMITED", `Too many requests; retry after ${seconds} s.`, {
    headers: { ...rateHeaders, "retry-after": String(seconds) },
  });
}

/** An empty allowlist allows any address. IPv4 addresses in IPv6 form count as IPv4. */
function isAllowed({ allowedIps }: Courier, address: string): boolean {
  if (allowedIps.length === 0) return true;
  if (!ipaddr.isValid(address)) return false;
  const peer = ipaddr.process(address);
  return allowedIps.some(
    ([network, bits]) => network.kind() === peer.kind() && peer.match(network, bits),
  );
}
