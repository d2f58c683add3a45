/** Access tokens (document 1, "Authentication"): what they carry, minted and verified by the service clock. */

import { jwt } from "@elysiajs/jwt";
import { type Static, Type } from "@sinclair/typebox";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";

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

const checker = compileSchema(Claims);

export interface Tokens {
  mint(claims: Claims, nowMs: number): Promise<string>;
  /** Null when the token is not ours, has been changed or has expired. */
  verify(token: string, nowMs: number): Promise<Claims | null>;
}

export function createTokens(secret: string): Tokens {
  const signer = jwt({ name: "signer", secret }).decorator.signer;
  return {
    // The plugin writes `iat` from the process clock only, which is not the service clock: `exp` alone counts.
    mint: (claims, nowMs) =>
      signer.sign({ ...claims, iat: false, exp: Math.floor(nowMs / 1000) + TOKEN_LIFE_SECONDS }),
    async verify(token, nowMs) {
      const payload = await signer.verify(token, {
        algorithms: ["HS256"],
        currentDate: new Date(nowMs),
        requiredClaims: ["exp"],
      });
      return checker.check(payload) ? payload : null;
    },
  };
}
