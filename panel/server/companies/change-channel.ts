/** The settings of a channel that are one value each (`settings.ts`). */

import { type Static, Type } from "@sinclair/typebox";
import { patchOf, settingsIn, shownMembers } from "#core/configuration/rules/entity.ts";
import { CHANNEL_SETTINGS } from "#core/configuration/rules/settings.ts";
import { route } from "#core/platform/http/access.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/platform/schema/fault.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { faultOfWebhookUrl, WEBHOOK_V1_PROTOCOLS } from "#core/webhooks/rules/webhook-url.ts";
import { uncheckedBody } from "#panel/server/http/checked-body.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { refuseEndpointFaults } from "#panel/server/webhooks/webhook-access.ts";
import { changeSettings } from "./channel-access.ts";

export const ChannelPatch = patchOf(CHANNEL_SETTINGS);
type ChannelPatch = Static<typeof ChannelPatch>;
const checker = compileSchema(ChannelPatch);

export function changeChannelRoute(runtime: Runtime) {
  return panelRoutes(runtime, "channel").patch(
    "/panel/api/channels/:channelCode",
    async ({ params, body, request }) => {
      const url = (body as ChannelPatch | null)?.webhookV1?.url;
      await refuseEndpointFaults(faultsOf(body), url, runtime.config, "webhookV1.url");
      const change = body as ChannelPatch;
      const { before, after } = await changeSettings(runtime, params.channelCode, () => change);
      const changed = settingsIn(CHANNEL_SETTINGS, after);
      noteChange(request, settingsIn(CHANNEL_SETTINGS, before), changed);
      return changed;
    },
    route({
      access: { can: "channels:write", of: "channel" },
      response: Type.Object(shownMembers(CHANNEL_SETTINGS)),
      summary: "Change a channel's name, language, tracking page, address checks or webhooks v1",
      errors: ["CONFIGURATION_BUSY"],
      body: uncheckedBody(ChannelPatch, { language: "en", trackingPage: true }),
    }),
  );
}

function faultsOf(body: unknown): Fault[] {
  if (!checker.check(body)) return listFaults(checker.errors(body));
  const { webhookV1 } = body;
  const message = webhookV1 ? faultOfWebhookUrl(webhookV1.url, WEBHOOK_V1_PROTOCOLS) : null;
  return message === null ? [] : [{ path: "webhookV1.url", code: "BAD_FORMAT", message }];
}
