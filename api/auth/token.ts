/** `POST /v2/auth/token` (document 1, "Authentication"). */

import { type Static, Type } from "@sinclair/typebox";
import { suspended } from "#api/auth/authenticated.ts";
import { createTokens, TOKEN_LIFE_SECONDS } from "#api/auth/tokens.ts";
import type { ApiDeps } from "#api/deps.ts";
import { TOKEN_BODY_BYTES } from "#api/http/body-limits.ts";
import { jsonBody } from "#api/http/read-json.ts";
import type { ApiKey, Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { readVerifiedKey, rememberVerifiedKey } from "#core/configuration/store/verified-keys.ts";
import { suspendedUntilMs } from "#core/merchants/store/rate-limit.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { requireJsonAccepted } from "#core/platform/http/accept.ts";
import { declared, publicRoutes, route } from "#core/platform/http/access.ts";
import { type Peer, peerOfConnection, subscriberOf } from "#core/platform/http/peer.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { refuseGuess, WRONG_SECRETS } from "#core/platform/secrets/wrong-secrets.ts";

export const TokenRequest = Type.Object({ apiKey: Type.String({ minLength: 1, maxLength: 255 }) });
const BODY = jsonBody(TokenRequest, { apiKey: "key_acme_main" }, TOKEN_BODY_BYTES);

export const TokenAnswer = Type.Object({
  token: Type.String(),
  scopes: Type.Array(Type.String()),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "seconds" }),
  rate_limit: Type.Object({
    refill_rate: Type.Integer({ description: "requests added a minute, all at once" }),
    bucket_size: Type.Integer(),
  }),
  cache: Type.Boolean({ description: "served from the cache" }),
});
type TokenAnswer = Static<typeof TokenAnswer>;

const operation = declared({
  id: "createToken",
  summary: "Exchange an API key for an access token",
  description: "The token is valid for 24 hours and may be used until then.",
  body: BODY,
  answers: {
    200: {
      description: "The token, its scopes and the channel's request budget.",
      headers: { "X-Auth-Cache": "HIT or MISS" },
      content: {
        schema: TokenAnswer,
        example: {
          token: "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
          scopes: ["shipments:read", "orders:read"],
          token_type: "Bearer",
          expires_in: TOKEN_LIFE_SECONDS,
          rate_limit: { refill_rate: 150, bucket_size: 300 },
          cache: false,
        } satisfies TokenAnswer,
      },
    },
  },
  errors: ["INVALID_API_KEY", "KEY_SUSPENDED", "RATE_LIMITED"],
});

interface Verified {
  readonly apiKey: ApiKey;
  readonly channel: Channel;
  /** The context came out of the cache. */
  readonly cached: boolean;
}

export function tokenRoute(deps: ApiDeps) {
  const { redis, live, secrets } = deps;
  const tokens = createTokens(secrets.jwtSecret);

  return publicRoutes("auth token").post(
    "/v2/auth/token",
    async ({ request, server, set }): Promise<TokenAnswer> => {
      requireJsonAccepted(request);
      const { apiKey: text } = await BODY.read(request);
      const configuration = await live.refresh();
      const nowMs = live.now();
      const verified = await verify(deps, hashToken(text), configuration, nowMs);
      await refuseGuesses(deps, peerOfConnection(request, server, deps.config), verified, nowMs);
      if (!verified) {
        throw new Problem(401, "INVALID_API_KEY", "The API key is not valid or not active.");
      }
      const { apiKey, channel, cached } = verified;
      const untilMs = await suspendedUntilMs(redis, channel, apiKey, nowMs);
      if (untilMs > 0) throw suspended(untilMs, nowMs);
      const scopes = [...apiKey.scopes];
      const { companyId } = channel;
      const claims = { keyId: apiKey.id, channelId: channel.id, companyId, scopes };
      set.headers["cache-control"] = "no-store";
      set.headers["x-auth-cache"] = cached ? "HIT" : "MISS";
      return {
        token: await tokens.mint(claims, nowMs),
        scopes,
        token_type: "Bearer",
        expires_in: TOKEN_LIFE_SECONDS,
        rate_limit: { refill_rate: channel.refillRate, bucket_size: channel.bucketSize },
        cache: cached,
      };
    },
    route(operation),
  );
}

/**
 * Only wrong keys count. A key that was accepted from this network before is still accepted, whatever its neighbours try.
 * @throws {Problem} 429
 */
async function refuseGuesses(
  { redis }: ApiDeps,
  { address }: Peer,
  verified: Verified | null,
  nowMs: number,
): Promise<void> {
  const holder = verified ? String(verified.apiKey.id) : null;
  const shown = {
    kind: "api-key",
    network: subscriberOf(address),
    holder,
    isRight: verified !== null,
  } as const;
  const waitMs = await refuseGuess(redis, shown, nowMs);
  if (waitMs === 0) return;
  const headers = {
    "retry-after": String(Math.ceil(waitMs / 1000)),
    "x-ratelimit-limit": String(WRONG_SECRETS.burst),
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": String(Math.ceil((nowMs + waitMs) / 1000)),
  };
  const detail = "Too many invalid API keys came from this address.";
  throw new Problem(429, "RATE_LIMITED", detail, { headers });
}

/** Null if the key is unknown or not active. */
async function verify(
  { redis }: ApiDeps,
  hash: string,
  configuration: Configuration,
  nowMs: number,
): Promise<Verified | null> {
  const { version } = configuration;
  const known = await readVerifiedKey(redis, hash, version, nowMs);
  const apiKey = known
    ? configuration.apiKeyById.get(known.keyId)
    : configuration.apiKeys.get(hash);
  const channel = apiKey && configuration.channels.get(apiKey.channelId);
  if (!apiKey?.active || !channel?.active) return null;
  if (known) return { apiKey, channel, cached: true };
  const context = { keyId: apiKey.id, channelId: channel.id, companyId: channel.companyId };
  await rememberVerifiedKey(redis, hash, context, version, nowMs);
  return { apiKey, channel, cached: false };
}
