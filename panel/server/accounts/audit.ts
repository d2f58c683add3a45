/** `GET /panel/api/audit`: who changed what, the newest first. */

import { Type } from "@sinclair/typebox";
import type { Insights } from "#analytics/insights.ts";
import { AUDIT_CURSOR } from "#core/accounts/store/audit-log.ts";
import { route } from "#core/platform/http/access.ts";
import { jsonValue } from "#core/platform/schema/json-value.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { cursorOf, listPageOf, listQuery, wrongCursor } from "#panel/server/http/list-page.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { instantOfQuery } from "#panel/server/webhooks/webhook-access.ts";
import { readAudit } from "./read-audit.ts";

export const AuditEntry = Type.Object({
  id: Type.String({ description: "never changes, and names no other entry" }),
  at: Type.String({ description: "ISO 8601" }),
  tenant: Type.String({
    description:
      "whose the actor is: operators, company <code>, courier <code>; empty where not known",
  }),
  actor: Type.String({ description: "e-mail address, or PANEL_TOKEN" }),
  action: Type.String({ description: "method and path of the call" }),
  target: Type.String({ description: "the path with its names" }),
  before: jsonValue("null where there was nothing; secrets are masked"),
  after: jsonValue("null where nothing is left"),
});

const text = (description: string) => Type.Optional(Type.String({ description }));

export function auditRoute(runtime: Runtime, insights: Insights | undefined) {
  return panelRoutes(runtime, "audit").get(
    "/panel/api/audit",
    async ({ query }) => {
      const { after, limit } = listPageOf(query);
      if (after !== null && !AUDIT_CURSOR.test(after)) throw wrongCursor();
      const { tenant = "", actor = "", target = "", from = "", to = "" } = query;
      const { items, nextCursor, isPartial } = await readAudit(runtime.redis, insights, {
        tenant: tenant || null,
        actor: actor || null,
        target: target || null,
        cursor: after,
        limit,
        fromMs: from === "" ? 0 : instantOfQuery("from", from, false),
        toMs: to === "" ? Number.MAX_SAFE_INTEGER : instantOfQuery("to", to, true),
      });
      return {
        items: items.map(({ atMs, ...entry }) => ({ at: new Date(atMs).toISOString(), ...entry })),
        nextCursor: nextCursor === null ? null : cursorOf(nextCursor),
        isPartial,
      };
    },
    route({
      access: { can: "audit:read", of: "installation" },
      query: Type.Composite([
        listQuery,
        Type.Object({
          tenant: text("part of the tenant, such as company acme"),
          actor: text("part of the actor"),
          target: text("part of the target, such as /channels/acme-it"),
          from: text("at or after: ISO 8601 with an offset, or a day"),
          to: text("at or before: ISO 8601 with an offset, or a day"),
        }),
      ]),
      response: Type.Object({
        items: Type.Array(AuditEntry),
        nextCursor: nullableText,
        isPartial: Type.Boolean({
          description: "true: ClickHouse does not answer, and what it has of the log is missing",
        }),
      }),
      summary: "Who changed what, the newest first; a page may be empty and have a next one",
    }),
  );
}
