/** `GET /panel/api/me`: who is logged in, and what they may do. */
import { Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/domain/schema/nullable.ts";
import type { Runtime } from "#core/runtime.ts";
import { operatorRoutes } from "#panel/operators.ts";

const Me = Type.Object({
  kind: Type.String(),
  role: Type.String(),
  name: Type.String(),
  email: text,
  companyCode: text,
  courierCode: text,
  totp: Type.Boolean(),
  capabilities: Type.Array(Type.String()),
});

const CAPABILITIES = [
  ...["overview:read", "shipments:read", "webhooks:read", "webhooks:write"],
  ...["carriers:read", "carriers:write", "companies:read", "companies:write"],
  ...["benchmarks:read", "sql:read", "dead-letters:read", "dead-letters:write"],
];

export function meRoute(runtime: Runtime) {
  return operatorRoutes(runtime, "me").get(
    "/panel/api/me",
    () => ({
      ...{ kind: "operator", role: "admin", name: "operator", email: null },
      ...{ companyCode: null, courierCode: null, totp: false },
      capabilities: [...CAPABILITIES],
    }),
    { response: Me, detail: { summary: "Who is logged in, and what they may do" } },
  );
}
