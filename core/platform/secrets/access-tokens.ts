/** Access tokens: JWTs that the framework's plugin signs and verifies, with a life by the service clock. */
import { jwt } from "@elysiajs/jwt";
import type { TSchema } from "@sinclair/typebox";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";

export type Verified<Claims> = Claims & { readonly exp: number };

type ClaimValue = string | number | null | string[];

/** @param secret of these tokens alone, so that no token of another port passes for one of them */
export function createAccessTokens<Claims extends Record<string, ClaimValue>>(
  schema: TSchema & { readonly static: Claims },
  secret: string | Uint8Array,
  lifeSeconds: number,
  typ = "JWT",
) {
  const { signer } = jwt({ name: "signer", secret, typ }).decorator;
  const checker = compileSchema(schema);

  async function verifyAt(token: string, at: Date): Promise<Verified<Claims> | null> {
    // Several spellings of base64url decode to the same bytes; only ours is the token.
    const signature = token.slice(token.lastIndexOf(".") + 1);
    if (Buffer.from(signature, "base64url").toString("base64url") !== signature) return null;
    const payload = await signer.verify(token, {
      algorithms: ["HS256"],
      currentDate: at,
      requiredClaims: ["exp"],
    });
    return checker.check(payload) ? (payload as Verified<Claims>) : null;
  }

  return {
    // The plugin writes `iat` from the process clock only, which is not the service clock: `exp` alone counts.
    mint: (claims: Claims, nowMs: number): Promise<string> =>
      signer.sign({ ...claims, iat: false, exp: Math.floor(nowMs / 1000) + lifeSeconds }),
    /** Null when the token is not ours, has been changed or has expired. */
    verify: (token: string, nowMs: number) => verifyAt(token, new Date(nowMs)),
    /** When a token of ours that is not valid any more expired, in seconds since 1970; null for any other. */
    expiredAt: async (token: string, nowMs: number): Promise<number | null> => {
      const claims = await verifyAt(token, new Date(0));
      return claims && claims.exp * 1000 <= nowMs ? claims.exp : null;
    },
  };
}
