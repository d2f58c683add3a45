/** Access tokens (document 1, "Authentication"): what they carry. */

import { type Static, Type } from "@sinclair/typebox";
import { createAccessTokens } from "#core/platform/secrets/access-tokens.ts";

/** Document 1, "Limits". */
export const TOKEN_LIFE_SECONDS = 86_400;

const id = Type.Integer({ minimum: 1 });

const Claims = Type.Object({
  keyId: id,
  /** Null: a token without channel context. */
  channelId: Type.Union([id, Type.Null()]),
  companyId: Type.Union([id, Type.Null()]),
  scopes: Type.Array(Type.String()),
});
export type Claims = Static<typeof Claims>;

export const createTokens = (secret: string) =>
  createAccessTokens(Claims, secret, TOKEN_LIFE_SECONDS);

export type Tokens = ReturnType<typeof createTokens>;
