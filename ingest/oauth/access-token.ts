/**
 * Access tokens of OAuth clients (document 2, "Authentication" 5): signed, so that every ingest process knows them
 * without a look into the store, and bound to the client's secret, so that changing or removing it ends them at once.
 */
import { createHash, createHmac } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { createAccessTokens, type Verified } from "#core/platform/secrets/access-tokens.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";

export const TOKEN_LIFE_SECONDS = 3_600;
/** A courier shows the same token for an hour, and to verify it takes 30 to 45 us. */
export const TOKENS_KEPT = limit(
  1_000,
  "verified access tokens of couriers in a process",
  "the one kept longest is verified again when it is shown",
);

const Claims = Type.Object({
  aud: Type.Literal("courier-events"),
  sub: Type.String(),
  /** Fingerprint of the client's secret. */
  key: Type.String(),
});
type Claims = Verified<Static<typeof Claims>>;

export type CourierTokens = ReturnType<typeof accessTokens>;

export function accessTokens(jwtSecret: string) {
  const key = createHmac("sha256", jwtSecret).update("courier access tokens").digest();
  const tokens = createAccessTokens(Claims, key, TOKEN_LIFE_SECONDS, "at+jwt");
  /** By the token's hash. */
  const kept = new Map<string, Claims>();
  return {
    /** The courier must have an OAuth client. */
    mint: ({ oauth }: Courier, nowMs: number) => {
      const client = { sub: oauth?.clientId ?? "", key: keyOf(oauth?.secretHash ?? "") };
      return tokens.mint({ aud: "courier-events", ...client }, nowMs);
    },
    /** Null when the token is not ours or has been changed; `courierOf` judges its life. */
    async verify(token: string, nowMs: number): Promise<Claims | null> {
      const hash = hashToken(token);
      const known = kept.get(hash);
      if (known) return known;
      const claims = await tokens.verify(token, nowMs);
      if (claims) kept.set(hash, claims);
      const [oldest = ""] = kept.keys();
      if (kept.size > TOKENS_KEPT) kept.delete(oldest);
      return claims;
    },
  };
}

/** Undefined when the token has expired or its client has changed. */
export function courierOf(
  { sub, key, exp }: Claims,
  { courierByClientId }: Configuration,
  nowMs: number,
): Courier | undefined {
  const courier = courierByClientId.get(sub);
  const isTheirs = courier?.oauth && keyOf(courier.oauth.secretHash) === key;
  return isTheirs && exp * 1000 > nowMs ? courier : undefined;
}

function keyOf(secretHash: string): string {
  return createHash("sha256").update(secretHash).digest("base64url").slice(0, 16);
}
