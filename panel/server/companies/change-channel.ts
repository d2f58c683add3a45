/** The settings of a channel that are one value each: its name, its language, what is switched on, webhooks v1. */
import { type Static, Type } from "@sinclair/typebox";
import type { ChannelEntity } from "#core/configuration/store/entities.ts";
import type { ChannelChange } from "#core/configuration/store/merchant-settings.ts";
import { mayAnswer } from "#core/platform/openapi/operation.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/platform/schema/fault.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SetupChannel, SetupWebhookV1 } from "#core/setup/rules/setup.ts";
import { faultOfWebhookUrl, WEBHOOK_V1_PROTOCOLS } from "#core/webhooks/rules/webhook-url.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { readJson } from "#panel/server/http/read-json.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { refuseEndpointFaults } from "#panel/server/webhooks/webhook-access.ts";
import { changeSettings } from "./channel-access.ts";
import { ChannelDetail } from "./companies.ts";

const { name, language, trackingPage, addressCheck } = SetupChannel.properties;

export const ChannelPatch = Type.Object(
  {
    name,
    language,
    trackingPage,
    addressCheck,
    webhookV1: Type.Optional(
      Type.Union([SetupWebhookV1, Type.Null()], {
        description: "null = none. It is silent while the channel has an endpoint",
      }),
    ),
  },
  { additionalProperties: false, minProperties: 1, description: "absent = as it is" },
);
type ChannelPatch = Static<typeof ChannelPatch>;
const checker = compileSchema(ChannelPatch);

const ChannelOwn = Type.Pick(ChannelDetail, [
  ...(["name", "language", "trackingPage", "addressCheck", "webhookV1"] as const),
]);

export function changeChannelRoute(runtime: Runtime) {
  return panelRoutes(runtime, "channel").patch(
    "/panel/api/channels/:channelCode",
    async ({ params, request }) => {
      const body = await readJson(request);
      const url = (body as ChannelPatch | null)?.webhookV1?.url;
      await refuseEndpointFaults(faultsOf(body), url, runtime.config, "webhookV1.url");
      const change = changeOf(body as ChannelPatch);
      const { before, after } = await changeSettings(runtime, params.channelCode, () => change);
      noteChange(request, ownOf(before), ownOf(after));
      return ownOf(after);
    },
    {
      needs: { can: "channels:write", of: "channel" },
      parse: "none",
      response: ChannelOwn,
      detail: {
        summary: "Change a channel's name, language, tracking page, address checks or webhooks v1",
        ...mayAnswer("CONFIGURATION_BUSY"),
        requestBody: jsonBody(ChannelPatch, { language: "en", trackingPage: true }),
      },
    },
  );
}

function faultsOf(body: unknown): Fault[] {
  if (!checker.check(body)) return listFaults(checker.errors(body));
  const { webhookV1 } = body;
  const message = webhookV1 ? faultOfWebhookUrl(webhookV1.url, WEBHOOK_V1_PROTOCOLS) : null;
  return message === null ? [] : [{ path: "webhookV1.url", code: "BAD_FORMAT", message }];
}

function changeOf({ webhookV1, ...change }: ChannelPatch): ChannelChange {
  if (webhookV1 === undefined) return change;
  return { ...change, webhookV1: webhookV1 ? JSON.stringify(webhookV1) : "" };
}

function ownOf(entity: ChannelEntity): Static<typeof ChannelOwn> {
  const { webhookV1, ...others } = entity;
  return {
    name: others.name,
    language: others.language,
    trackingPage: others.trackingPage,
    addressCheck: others.addressCheck,
    webhookV1: webhookV1 ? JSON.parse(webhookV1) : null,
  };
}
