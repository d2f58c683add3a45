/** Access tokens (document 1, "Authentication"): what they carry. */

import { type Static, Type } from "@sinclair/typebox";
import { type SignedTokens, signedTokens } from "#core/platform/secrets/signed-tokens.ts";

/** Document 1, "Limits". */
export const TOKEN_LIFE_SECONDS = 86_400;

const id = Type.Integer({ minimum: 1 });

export const Claims = Type.Object({
  keyId: id,
  /** Null: a token without channel context. */
  channelId: Type.Union([id, Type.Null()]),
  companyId: Type.Union([id, Type.Null()]),
  scopes: Type.Array(Type.String()),
});
export type Claims = Static<typeof Claims>;

export type Tokens = SignedTokens<Claims>;

export function createTokens(secret: string): Tokens {
  return signedTokens({
    key: secret,
    type: "JWT",
    claims: Claims,
    lifeSeconds: TOKEN_LIFE_SECONDS,
  });
}
