/** The boxes of a company: `boxCode` of a parcel gives its measures (document 1). */

import { type Static, Type } from "@sinclair/typebox";
import { boxId, deleteSetting, putBox } from "#core/configuration/store/merchant-settings.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { BOXES_PER_COMPANY, SetupBox } from "#core/setup/rules/setup.ts";
import { checkedPath, jsonBody, missingFields } from "#panel/server/http/checked-body.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { BoxView, boxView } from "./companies.ts";
import { companyOf } from "./company-of.ts";

const { code, ...measures } = SetupBox.properties;
export const BoxInput = Type.Partial(Type.Object(measures), {
  additionalProperties: false,
  minProperties: 1,
  description: "absent = as it is; a new box needs all",
});
const pathChecker = compileSchema(Type.Object({ boxCode: code }));

export function boxRoutes(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "boxes")
    .put(
      "/panel/api/companies/:code/boxes/:boxCode",
      async ({ params, body: wanted, request }) => {
        const { boxCode } = checkedPath(params, pathChecker);
        const { id: companyId } = companyOf(await live.refresh(), params.code);
        const outcome = await putBox(redis, { companyId, code: boxCode }, wanted);
        if (outcome === "full") throw tooMany();
        if ("missing" in outcome) throw missingFields(outcome.missing);
        const { before, after } = outcome;
        noteChange(request, before && boxView(before), boxView(after));
        await live.refresh();
        return boxView(after);
      },
      route({
        access: { can: "shipping:write", of: "company" },
        response: BoxView,
        summary: "Make or change a box; parcels from now on have its measures",
        errors: ["TOO_MANY_BOXES", "INVALID_PATH", "CONFIGURATION_BUSY"],
        body: jsonBody(BoxInput, { length: 30, width: 20, height: 10 }),
      }),
    )
    .delete(
      "/panel/api/companies/:code/boxes/:boxCode",
      async ({ params, request, set }) => {
        const { id: companyId } = companyOf(await live.refresh(), params.code);
        const deleted = await deleteSetting(
          redis,
          "box",
          boxId({ companyId, code: params.boxCode }),
        );
        if (!deleted) throw new Problem(404, "BOX_NOT_FOUND", "The company has no such box.");
        noteChange(request, boxView(deleted), null);
        await live.refresh();
        set.status = 204;
      },
      route({
        access: { can: "shipping:write", of: "company" },
        summary: "Delete a box; shipments and orders keep the measures that they have",
        errors: ["BOX_NOT_FOUND", "CONFIGURATION_BUSY"],
        answers: { 204: { description: "deleted" } },
      }),
    );
}

export type BoxInput = Static<typeof BoxInput>;

function tooMany(): Problem {
  const detail = `At most ${BOXES_PER_COMPANY} boxes a company.`;
  return new Problem(409, "TOO_MANY_BOXES", detail);
}
