/** `POST /panel/api/clock`: moves the test clock of all processes forward (`TEST_CLOCK=1`). */

import { Type } from "@sinclair/typebox";
import { advanceClock } from "#core/configuration/store/live.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

/** Ten years a call: enough for every expiry, and far from the end of dates. */
const MAX_ADVANCE_SECONDS = 315_360_000;

export const ClockAdvance = Type.Object({
  advanceSeconds: Type.Integer({ minimum: 0, maximum: MAX_ADVANCE_SECONDS }),
});

export function clockRoute(runtime: Runtime) {
  const { redis, live, config } = runtime;
  return panelRoutes(runtime, "clock").post(
    "/panel/api/clock",
    async ({ body }) => {
      if (!config.testClock) {
        throw new Problem(409, "TEST_CLOCK_OFF", "The clock moves only with TEST_CLOCK=1.");
      }
      const { advanceSeconds } = body;
      await advanceClock(redis, advanceSeconds);
      await live.refresh();
      return { now: new Date(live.now()).toISOString() };
    },
    route({
      access: { can: "clock:write", of: "installation" },
      response: Type.Object({ now: Type.String({ description: "service clock, ISO 8601" }) }),
      summary: "Move the test clock forward",
      errors: ["TEST_CLOCK_OFF"],
      body: jsonBody(ClockAdvance, { advanceSeconds: 60 }),
    }),
  );
}
