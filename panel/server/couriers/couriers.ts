/** Onboarding of couriers: tokens, signing secrets, activation. */

import { type TSchema, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { AccessKind } from "#core/configuration/store/courier-access.ts";
import { allEntities, type Stored } from "#core/configuration/store/entities.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Caller } from "#panel/server/caller.ts";
import { queryOf, WHOLE_LIST, wholeList } from "#panel/server/http/list-page.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { issueAccess, revokeAccess, setAccepting } from "./courier-access.ts";
import { readCourier } from "./courier-of.ts";
import { courierSetupRoutes } from "./courier-setup.ts";
import { CourierView, courierView, readCourierFacts } from "./courier-view.ts";

export const IssuedToken = Type.Object({
  id: Type.String(),
  token: Type.String({ description: "shown this once" }),
});

export const IssuedSecret = Type.Object({
  id: Type.String(),
  secret: Type.String({ description: "shown this once" }),
});

export const Activation = Type.Object({ code: Type.String(), acceptingEvents: Type.Boolean() });

export function courierRoutes(runtime: Runtime) {
  return new Elysia({ name: "courier-routes" })
    .use(ownCourierRoutes(runtime))
    .use(courierSetupRoutes(runtime))
    .use(courierAccessRoutes(runtime));
}

async function couriersOf({ redis }: Runtime, caller: Caller): Promise<Stored<"courier">[]> {
  const all = await allEntities(redis, "courier");
  return all.filter(({ code }) => isTheirs(caller, { companyCode: null, courierCode: code }));
}

/** Couriers, and whether their events are accepted. */
function ownCourierRoutes(runtime: Runtime) {
  const { redis } = runtime;
  const { vault } = runtime.secrets;
  return panelRoutes(runtime, "couriers")
    .get(
      "/panel/api/couriers",
      async ({ caller, query }) => {
        const comparisons = await readCourierFacts(redis);
        const { items, nextCursor } = wholeList(await couriersOf(runtime, caller), query);
        return { items: items.map((one) => courierView(vault, one, comparisons)), nextCursor };
      },
      route({
        access: { can: "couriers:read", of: "caller" },
        query: queryOf(WHOLE_LIST),
        response: Type.Object({ items: Type.Array(CourierView), nextCursor: nullableText }),
        summary: "Couriers, and which of their tokens and secrets are in force",
      }),
    )
    .get(
      "/panel/api/couriers/:code",
      async ({ params }) =>
        courierView(vault, await readCourier(redis, params.code), await readCourierFacts(redis)),
      route({
        access: { can: "couriers:read", of: "courier" },
        response: CourierView,
        summary: "One courier",
      }),
    )
    .post(
      "/panel/api/couriers/:code/activate",
      ({ params, request }) => activate(runtime, request, params.code, true),
      activation("Accept events of the courier"),
    )
    .post(
      "/panel/api/couriers/:code/deactivate",
      ({ params, request }) => activate(runtime, request, params.code, false),
      activation("Answer 404 to events of the courier"),
    );
}

async function activate(
  runtime: Runtime,
  request: Request,
  code: string,
  acceptingEvents: boolean,
) {
  const before = (await readCourier(runtime.redis, code)).acceptingEvents;
  await setAccepting(runtime, code, acceptingEvents);
  noteChange(request, { acceptingEvents: before }, { acceptingEvents });
  runtime.log.info({ courier: code, acceptingEvents }, "activation changed");
  return { code, acceptingEvents };
}

const activation = (summary: string) =>
  route({
    access: { can: "couriers:write", of: "installation" },
    response: Activation,
    summary,
    errors: ["COURIER_NOT_FOUND", "CONFIGURATION_BUSY"],
  });

/** Tokens and signing secrets. */
function courierAccessRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "courier-access")
    .post(
      "/panel/api/couriers/:code/tokens",
      async ({ params, set }) => {
        const { id, text } = await issue(runtime, params.code, "tokens");
        set.status = 201;
        return { id, token: text };
      },
      issuing(IssuedToken, "Issue a token; the others keep working until they are revoked"),
    )
    .delete(
      "/panel/api/couriers/:code/tokens/:id",
      ({ params }) => revoke(runtime, params, "tokens"),
      revoking("Revoke a token, at once on every process"),
    )
    .post(
      "/panel/api/couriers/:code/signing-secrets",
      async ({ params, set }) => {
        const { id, text } = await issue(runtime, params.code, "signing-secrets");
        set.status = 201;
        return { id, secret: text };
      },
      issuing(IssuedSecret, "Issue a signing secret; the others keep verifying"),
    )
    .delete(
      "/panel/api/couriers/:code/signing-secrets/:id",
      ({ params }) => revoke(runtime, params, "signing-secrets"),
      revoking("Revoke a signing secret"),
    );
}

const ACCESS = { can: "courier-access:write", of: "courier" } as const;

const issuing = <T extends TSchema>(issued: T, summary: string) =>
  route({
    access: ACCESS,
    response: { 201: issued },
    summary,
    errors: ["TOO_MANY_ISSUED", "CONFIGURATION_BUSY"],
  });

const revoking = (summary: string) =>
  route({
    access: ACCESS,
    summary,
    answers: { 204: { description: "revoked" } },
    errors: ["ACCESS_NOT_FOUND", "CONFIGURATION_BUSY"],
  });

async function issue(runtime: Runtime, code: string, kind: AccessKind) {
  const { id, text } = await issueAccess(runtime, code, kind);
  runtime.log.info({ courier: code, kind, id }, "access issued");
  return { id, text };
}

async function revoke(
  runtime: Runtime,
  { code, id }: { readonly code: string; readonly id: string },
  kind: AccessKind,
): Promise<Response> {
  await revokeAccess(runtime, code, kind, id);
  runtime.log.info({ courier: code, kind, id }, "access revoked");
  return new Response(null, { status: 204 });
}
