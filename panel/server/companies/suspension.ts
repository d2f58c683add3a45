/** Lets an API key work again that too many refused requests have suspended (document 1, "Limits"). */
import { liftSuspension } from "#core/merchants/store/rate-limit.ts";
import { route } from "#core/platform/http/access.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";

export function suspensionRoute(runtime: Runtime) {
  const { redis, live, log } = runtime;
  return panelRoutes(runtime, "suspension").delete(
    "/panel/api/api-keys/:id/suspension",
    async ({ params, request }) => {
      const { apiKeyById, channels } = await live.refresh();
      const key = apiKeyById.get(idOf(params.id));
      const channel = key && channels.get(key.channelId);
      if (!key?.active || !channel) throw notFound("apiKey");
      if (await liftSuspension(redis, channel, key.id)) {
        const { code } = key;
        noteChange(request, { code, suspended: true }, { code, suspended: false });
        log.info({ id: key.id }, "suspension of an API key lifted");
      } else noteNoChange(request);
      return new Response(null, { status: 204 });
    },
    route({
      access: { can: "channels:write", of: "apiKey" },
      summary: "Lift the suspension of an API key; its requests are counted from zero",
      answers: { 204: { description: "not suspended" } },
    }),
  );
}
