/** The settings of a channel that are one value each: its name, its language, what is switched on, webhooks v1. */
import { type Static, Type } from "@sinclair/typebox";
import { compileSchema } from "#core/domain/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/domain/schema/fault.ts";
import { SetupChannel, SetupWebhookV1 } from "#core/domain/setup/setup.ts";
import { faultOfWebhookUrl, WEBHOOK_V1_PROTOCOLS } from "#core/domain/webhooks/webhook-url.ts";
import { mayAnswer } from "#core/http/openapi/operation.ts";
import type { ChannelEntity } from "#core/redis/config/entities.ts";
import type { ChannelChange } from "#core/redis/config/merchant-settings.ts";
import type { Runtime } from "#core/runtime.ts";
import { changeSettings } from "#panel/channel-access.ts";
import { jsonBody } from "#panel/checked-body.ts";
import { noteChange, panelRoutes } from "#panel/panel-routes.ts";
import { readJson } from "#panel/read-json.ts";
import { ChannelDetail } from "#panel/routes/companies.ts";
import { refuseEndpointFaults } from "#panel/webhook-access.ts";

const { name, language, trackingPage, addressCheck } = SetupChannel.properties;

export const ChannelPatch = Type.Object(
  {
    ...{ name, language, trackingPage, addressCheck },
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
    ...{ name: others.name, language: others.language },
    ...{ trackingPage: others.trackingPage, addressCheck: others.addressCheck },
    webhookV1: webhookV1 ? JSON.parse(webhookV1) : null,
  };
}
