/**
 * Access tokens of OAuth clients (document 2, "Authentication" 5): signed, so that every ingest process knows them
 * without a look into the store, and bound to the client's secret, so that changing or removing it ends them at once.
 */

import { createHash, createHmac } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import { signedTokens } from "#core/platform/secrets/signed-tokens.ts";

export const TOKEN_LIFE_SECONDS = 3_600;

const Claims = Type.Object({
  aud: Type.Literal("courier-events"),
  sub: Type.String(),
  /** Fingerprint of the client's secret. */
  key: Type.String(),
});

export interface AccessTokens {
  /** The courier must have an OAuth client. */
  mint(courier: Courier, nowMs: number): string;
  /** Undefined when the token is not ours, has been changed, has expired, or its client has changed. */
  courierOf(token: string, configuration: Configuration, nowMs: number): Courier | undefined;
}

export function accessTokens(jwtSecret: string): AccessTokens {
  const tokens = signedTokens({
    // A key of its own, so that no token of another room passes for one of these.
    key: createHmac("sha256", jwtSecret).update("courier access tokens").digest(),
    type: "at+jwt",
    claims: Claims,
    lifeSeconds: TOKEN_LIFE_SECONDS,
  });
  return {
    mint({ oauth }, nowMs) {
      const [sub, key] = [oauth?.clientId ?? "", keyOf(oauth?.secretHash ?? "")];
      return tokens.mint({ aud: "courier-events", sub, key }, nowMs);
    },
    courierOf(token, configuration, nowMs) {
      const claims = tokens.verify(token, nowMs);
      if (!claims) return undefined;
      const courier = configuration.courierByClientId.get(claims.sub);
      return courier?.oauth && keyOf(courier.oauth.secretHash) === claims.key ? courier : undefined;
    },
  };
}

function keyOf(secretHash: string): string {
  return createHash("sha256").update(secretHash).digest("base64url").slice(0, 16);
}
