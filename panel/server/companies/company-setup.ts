/** New companies and channels, and every setting of those that there are: their entries of the setup file. */
import { Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { uncheckedBody } from "#panel/server/http/checked-body.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { applyEntry, ENTRY_BODY_BYTES, type EntryCall } from "#panel/server/setup/apply-entry.ts";
import {
  ChannelEntry,
  ChannelPatch,
  CompanyEntry,
  CompanyPatch,
} from "#panel/server/setup/entry-schemas.ts";
import { generatedSecrets, shownOnce } from "#panel/server/setup/generated.ts";
import { channelOf, settingsChannelOf } from "#panel/server/webhooks/webhook-access.ts";
import { ChannelDetail, CompanyView, channelDetail, companyView } from "./companies.ts";
import { companyOf } from "./company-of.ts";

export const AppliedCompany = Type.Object({
  ...CompanyView.properties,
  generated: generatedSecrets,
});
export const AppliedChannel = Type.Object({
  ...ChannelDetail.properties,
  generated: generatedSecrets,
});
const WRITE = { can: "channels:write", of: "installation" } as const;

export function companySetupRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "company-setup")
    .post(
      "/panel/api/companies",
      ({ body, request, set }) => {
        set.status = 201;
        return applyCompany(runtime, request, null, body);
      },
      route({
        access: WRITE,
        response: { 201: AppliedCompany },
        summary: "Create a company: an entry of `companies` of the setup file, channels included",
        errors: ["COMPANY_EXISTS", "ENTITY_CLOSED", "CONFIGURATION_BUSY"],
        body: uncheckedBody(
          CompanyEntry,
          {
            code: "bottega",
            name: "Bottega S.r.l.",
            seatPostcode: "50122",
            channels: [{ code: "bottega-it", apiKeys: [{ code: "main" }] }],
          },
          ENTRY_BODY_BYTES,
        ),
      }),
    )
    .patch(
      "/panel/api/companies/:code",
      ({ params, body, request }) => applyCompany(runtime, request, params.code, body),
      route({
        access: WRITE,
        response: AppliedCompany,
        summary: "Change what is given of a company",
        errors: ["COMPANY_NOT_FOUND", "ENTITY_CLOSED", "CONFIGURATION_BUSY"],
        body: uncheckedBody(CompanyPatch, { seatPostcode: "50122" }, ENTRY_BODY_BYTES),
      }),
    )
    .use(channelSetupRoutes(runtime));
}

function channelSetupRoutes(runtime: Runtime) {
  const { live } = runtime;
  return panelRoutes(runtime, "channel-setup")
    .post(
      "/panel/api/companies/:code/channels",
      async ({ params, body, request, set }) => {
        const companyCode = companyOf(await live.refresh(), params.code).code;
        set.status = 201;
        return applyChannel(runtime, request, { kind: "channel", code: null, body, companyCode });
      },
      route({
        access: WRITE,
        response: { 201: AppliedChannel },
        summary: "Create a channel of a company: an entry of its `channels` of the setup file",
        errors: ["COMPANY_NOT_FOUND", "CHANNEL_EXISTS", "ENTITY_CLOSED", "CONFIGURATION_BUSY"],
        body: uncheckedBody(
          ChannelEntry,
          { code: "bottega-de", apiKeys: [{ code: "main" }], couriers: [{ code: "GLS_ITA" }] },
          ENTRY_BODY_BYTES,
        ),
      }),
    )
    .patch(
      "/panel/api/channels/:channelCode",
      async ({ params, body, request }) => {
        const configuration = await live.refresh();
        const { code, companyId } = settingsChannelOf(configuration, params.channelCode);
        const companyCode = configuration.companies.get(companyId)?.code ?? "";
        return applyChannel(runtime, request, { kind: "channel", code, body, companyCode });
      },
      route({
        access: { can: "channels:write", of: "channel" },
        response: AppliedChannel,
        summary: "Change what is given of a channel",
        errors: ["ENTITY_CLOSED", "CONFIGURATION_BUSY"],
        body: uncheckedBody(ChannelPatch, { language: "en", trackingPage: true }, ENTRY_BODY_BYTES),
      }),
    );
}

async function applyCompany(
  runtime: Runtime,
  request: Request,
  code: string | null,
  body: unknown,
) {
  const applied = await applyEntry(runtime, request, { kind: "company", code, body });
  runtime.log.info({ company: applied.code }, "company applied");
  const configuration = runtime.live.configuration();
  const view = companyView(companyOf(configuration, applied.code), configuration);
  return { ...view, generated: shownOnce(applied.generated) };
}

async function applyChannel(runtime: Runtime, request: Request, call: EntryCall) {
  const applied = await applyEntry(runtime, request, call);
  runtime.log.info({ channel: applied.code }, "channel applied");
  const configuration = runtime.live.configuration();
  const channel = channelOf(configuration, applied.code);
  const view = await channelDetail(runtime, configuration, channel);
  return { ...view, generated: shownOnce(applied.generated) };
}
