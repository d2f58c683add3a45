/**
 * Access tokens: JSON Web Tokens (RFC 7519) that an HMAC seals (HS256), judged by the service clock. Libraries verify
 * asynchronously, which the way of an event does not wait for, and take a signature in another spelling.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { type Static, type TObject, Type } from "@sinclair/typebox";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";

interface TokenKind<T extends TObject> {
  readonly key: string | Uint8Array;
  /** Member `typ` of the header. */
  readonly type: string;
  readonly claims: T;
  readonly lifeSeconds: number;
}

export interface SignedTokens<Claims> {
  mint(claims: Claims, nowMs: number): string;
  /** Null when the token is not ours, has been changed or has expired. */
  verify(token: string, nowMs: number): Claims | null;
}

const Expiry = Type.Object({ exp: Type.Integer() });

export function signedTokens<T extends TObject>(kind: TokenKind<T>): SignedTokens<Static<T>> {
  const { key, type, lifeSeconds } = kind;
  const [claimsChecker, expiryChecker] = [compileSchema(kind.claims), compileSchema(Expiry)];
  const head = encode({ alg: "HS256", typ: type });
  const seal = (text: string) => createHmac("sha256", key).update(text).digest("base64url");
  return {
    mint(claims, nowMs) {
      const exp = Math.floor(nowMs / 1000) + lifeSeconds;
      const text = `${head}.${encode({ ...(claims as object), exp })}`;
      return `${text}.${seal(text)}`;
    },
    verify(token, nowMs) {
      const [header, payload = "", signature = "", ...more] = token.split(".");
      if (header !== head || more.length > 0) return null;
      // As text: several spellings of base64url decode to the same bytes.
      const given = Buffer.from(signature);
      const expected = Buffer.from(seal(`${header}.${payload}`));
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
      const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
      if (!expiryChecker.check(claims) || claims.exp * 1000 <= nowMs) return null;
      return claimsChecker.check(claims) ? claims : null;
    },
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
