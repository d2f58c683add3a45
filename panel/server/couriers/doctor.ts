/** `GET /panel/api/doctor`: the settings of the stores, examined now. */

import { Type } from "@sinclair/typebox";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import { examineStores } from "#core/doctor/store-doctor.ts";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

const Findings = Type.Array(
  Type.Object({
    code: Type.String({ description: "names the check, for words in another language" }),
    check: Type.String(),
    ok: Type.Boolean(),
    found: Type.String(),
    wanted: Type.String(),
    advice: Type.String({ description: "empty where it is ok" }),
  }),
);

export function doctorRoute(runtime: Runtime, benchmarks: Benchmarks) {
  return panelRoutes(runtime, "doctor").get(
    "/panel/api/doctor",
    async () => [...(await examineStores(runtime.redis, benchmarks.facts))],
    route({
      access: { can: "doctor:read", of: "installation" },
      response: Findings,
      summary: "Whether the settings of the stores are those that Waybill relies on",
    }),
  );
}
