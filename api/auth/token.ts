/** `POST /v2/auth/token` (document 1, "Authentication"). */
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Elysia } from "elysia";
import { suspended } from "#api/auth/authenticated.ts";
import { createTokens, TOKEN_LIFE_SECONDS } from "#api/auth/tokens.ts";
import { TOKEN_BODY_BYTES } from "#api/body-limits.ts";
import type { ApiDeps } from "#api/deps.ts";
import { readChecked } from "#api/read-json.ts";
import { Problem } from "#core/problem.ts";
import type { ApiKey, Channel, Configuration } from "#core/redis/configuration.ts";
import { suspendedUntilMs } from "#core/redis/rate-limit.ts";
import { readVerifiedKey, rememberVerifiedKey } from "#core/redis/verified-keys.ts";
import { hashToken } from "#core/secrets.ts";

const TokenRequest = Type.Object({ apiKey: Type.String({ minLength: 1, maxLength: 255 }) });
const checker = TypeCompiler.Compile(TokenRequest);

interface Verified {
  readonly apiKey: ApiKey;
  readonly channel: Channel;
  /** The context came out of the cache. */
  readonly cached: boolean;
}

export function tokenRoute(deps: ApiDeps) {
  const { redis, live, secrets } = deps;
  const tokens = createTokens(secrets.jwtSecret);

  return new Elysia().post(
    "/v2/auth/token",
    async ({ request, set }) => {
      const { apiKey: text } = await readChecked(request, checker, TOKEN_BODY_BYTES);
      const configuration = await live.refresh();
      const nowMs = live.now();
      const { apiKey, channel, cached } = await verify(deps, hashToken(text), configuration, nowMs);
      const untilMs = await suspendedUntilMs(redis, channel, apiKey, nowMs);
      if (untilMs > 0) throw suspended(untilMs, nowMs);
      const scopes = [...apiKey.scopes];
      const { companyId } = channel;
      const claims = { keyId: apiKey.id, channelId: channel.id, companyId, scopes };
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
    { parse: "none" },
  );
}

/** @throws {Problem} 401 */
async function verify(
  { redis }: ApiDeps,
  hash: string,
  configuration: Configuration,
  nowMs: number,
): Promise<Verified> {
  const { version } = configuration;
  const known = await readVerifiedKey(redis, hash, version, nowMs);
  const apiKey = known
    ? configuration.apiKeyById.get(known.keyId)
    : configuration.apiKeys.get(hash);
  const channel = apiKey && configuration.channels.get(apiKey.channelId);
  if (!apiKey?.active || !channel?.active) {
    throw new Problem(401, "INVALID_API_KEY", "The API key is not valid or not active.");
  }
  if (known) return { apiKey, channel, cached: true };
  const context = { keyId: apiKey.id, channelId: channel.id, companyId: channel.companyId };
  await rememberVerifiedKey(redis, hash, context, version, nowMs);
  return { apiKey, channel, cached: false };
}
