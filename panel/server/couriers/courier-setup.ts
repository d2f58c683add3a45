/** New couriers, and every setting of those that there are: an entry of `couriers` of the setup file. */
import { Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { uncheckedBody } from "#panel/server/http/checked-body.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { applyEntry, ENTRY_BODY_BYTES } from "#panel/server/setup/apply-entry.ts";
import { CourierEntry, CourierPatch } from "#panel/server/setup/entry-schemas.ts";
import { generatedSecrets, shownOnce } from "#panel/server/setup/generated.ts";
import { readCourier } from "./courier-of.ts";
import { CourierView, courierView, readCourierFacts } from "./courier-view.ts";

export const AppliedCourier = Type.Object({
  ...CourierView.properties,
  generated: generatedSecrets,
});
const ACCESS = { can: "couriers:write", of: "installation" } as const;

export function courierSetupRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "courier-setup")
    .post(
      "/panel/api/couriers",
      ({ body, request, set }) => {
        set.status = 201;
        return apply(runtime, request, null, body);
      },
      route({
        access: ACCESS,
        response: { 201: AppliedCourier },
        summary: "Create a courier: an entry of `couriers` of the setup file",
        errors: ["COURIER_EXISTS", "ENTITY_CLOSED", "CONFIGURATION_BUSY"],
        body: uncheckedBody(
          CourierEntry,
          {
            code: "DHL_ITA",
            name: "DHL Italy",
            signatureRequired: true,
            rateLimit: { perSecond: 20, burst: 100 },
            catalogue: [{ code: "DLV", terminal: true, status: "DELIVERED" }],
          },
          ENTRY_BODY_BYTES,
        ),
      }),
    )
    .patch(
      "/panel/api/couriers/:code",
      ({ params, body, request }) => apply(runtime, request, params.code, body),
      route({
        access: ACCESS,
        response: AppliedCourier,
        summary: "Change what is given of a courier; of tokens and secrets, the list in force",
        errors: ["COURIER_NOT_FOUND", "ENTITY_CLOSED", "CONFIGURATION_BUSY"],
        body: uncheckedBody(CourierPatch, { signatureRequired: true }, ENTRY_BODY_BYTES),
      }),
    );
}

async function apply(runtime: Runtime, request: Request, code: string | null, body: unknown) {
  const applied = await applyEntry(runtime, request, { kind: "courier", code, body });
  const { redis, secrets, log } = runtime;
  log.info({ courier: applied.code }, "courier applied");
  const courier = await readCourier(redis, applied.code);
  const view = courierView(secrets.vault, courier, await readCourierFacts(redis));
  return { ...view, generated: shownOnce(applied.generated) };
}
