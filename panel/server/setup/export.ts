/** `GET /panel/api/setup`: the running installation as a setup file. */

import { Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { exportSetup } from "#core/setup/store/export-setup.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

/** Its members are those of setup files: their lengths are counted as requests count them. */
export const ExportedSetup = Type.Unsafe<SetupFile>(
  Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        "a setup file without secrets, orders, sandbox rows and what is closed or revoked. An installation that has no such entity generates its secrets; to one that has, it changes nothing",
    },
  ),
);

export function exportRoute({ redis, ...runtime }: Runtime) {
  return panelRoutes({ redis, ...runtime }, "setup-export").get(
    "/panel/api/setup",
    () => exportSetup(redis),
    route({
      access: { can: "doctor:read", of: "installation" },
      response: ExportedSetup,
      summary: "The running installation as a setup file, without secrets",
    }),
  );
}
