/**
 * Access tokens of OAuth clients (document 2, "Authentication" 5): signed, so that every ingest process knows them
 * without a look into the store, and bound to the client's secret, so that changing or removing it ends them at once.
 */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";

export const TOKEN_LIFE_SECONDS = 3_600;

const Claims = Type.Object({
  aud: Type.Literal("courier-events"),
  sub: Type.String(),
  /** Fingerprint of the client's secret. */
  key: Type.String(),
  exp: Type.Integer(),
});
type Claims = Static<typeof Claims>;

const checker = compileSchema(Claims);
const HEADER = encode({ alg: "HS256", typ: "at+jwt" });

export interface AccessTokens {
  /** The courier must have an OAuth client. */
  mint(courier: Courier, nowMs: number): string;
  /** Undefined when the token is not ours, has been changed, has expired, or its client has changed. */
  courierOf(token: string, configuration: Configuration, nowMs: number): Courier | undefined;
}

export function accessTokens(jwtSecret: string): AccessTokens {
  // A key of its own, so that no token of another role passes for one of these.
  const key = createHmac("sha256", jwtSecret).update("courier access tokens").digest();
  const seal = (text: string) => createHmac("sha256", key).update(text).digest("base64url");

  return {
    mint({ oauth }, nowMs) {
      const claims: Claims = {
        aud: "courier-events",
        sub: oauth?.clientId ?? "",
        key: keyOf(oauth?.secretHash ?? ""),
        exp: Math.floor(nowMs / 1000) + TOKEN_LIFE_SECONDS,
      };
      const text = `${HEADER}.${encode(claims)}`;
      return `${text}.${seal(text)}`;
    },
    courierOf(token, configuration, nowMs) {
      const [header, payload = "", signature = "", ...more] = token.split(".");
      if (header !== HEADER || more.length > 0) return undefined;
      // As text: several spellings of base64url decode to the same bytes.
      const given = Buffer.from(signature);
      const expected = Buffer.from(seal(`${header}.${payload}`));
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
      if (!checker.check(claims) || claims.exp * 1000 <= nowMs) return undefined;
      const courier = configuration.courierByClientId.get(claims.sub);
      return courier?.oauth && keyOf(courier.oauth.secretHash) === claims.key ? courier : undefined;
    },
  };
}

function keyOf(secretHash: string): string {
  return createHash("sha256").update(secretHash).digest("base64url").slice(0, 16);
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
