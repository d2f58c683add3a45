/** Companies and channels as they are configured: what their pages show, without a secret. */

import { type Static, Type } from "@sinclair/typebox";
import { settingsIn, shownMembers } from "#core/configuration/rules/entity.ts";
import { CHANNEL_SETTINGS, COMPANY_SETTINGS } from "#core/configuration/rules/settings.ts";
import type {
  ApiKey,
  Channel,
  ChannelCourier,
  Company,
  Configuration,
} from "#core/configuration/store/configuration.ts";
import { templatesOf } from "#core/configuration/store/merchant-settings.ts";
import { readAddressChecks } from "#core/merchants/store/address-checks.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { managedBy } from "#core/setup/rules/merge-said.ts";
import { listPageOf, listQuery, pageAfter } from "#panel/server/http/list-page.ts";
import { version } from "#panel/server/http/version.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { closedAt, closedAtOf } from "#panel/server/setup/closed-at.ts";
import { managedBySchema } from "#panel/server/setup/managed-by.ts";
import { channelOf } from "#panel/server/webhooks/webhook-access.ts";
import { companyOf } from "./company-of.ts";

export const BoxView = Type.Object({
  code: Type.String(),
  length: Type.Number({ description: "cm" }),
  width: Type.Number({ description: "cm" }),
  height: Type.Number({ description: "cm" }),
  version,
});

export const CompanyView = Type.Object({
  code: Type.String(),
  ...shownMembers(COMPANY_SETTINGS),
  boxes: Type.Array(BoxView),
  channels: Type.Array(
    Type.Object({ code: Type.String(), name: Type.String(), active: Type.Boolean() }),
  ),
  managedBy: managedBySchema,
  closedAt,
  version,
});

export const RateLimitView = Type.Object({
  bucketSize: Type.Number({ description: "requests at once" }),
  refillRate: Type.Number({ description: "requests a minute" }),
});

export const ChannelCourierView = Type.Object({
  code: Type.String(),
  transcodings: Type.Array(Type.String(), { description: "the merchant's names for it" }),
  senderAccounts: Type.Array(Type.String()),
  shippingEnabled: Type.Boolean(),
  labelFormat: Type.String(),
  errorLabel: Type.Boolean(),
});

export const TemplateView = Type.Object({
  event: Type.String(),
  language: Type.String(),
  subject: Type.String(),
  body: Type.String(),
  version,
});

export const ApiKeyView = Type.Object({
  id: Type.Integer(),
  code: Type.String(),
  mode: Type.Union([Type.Literal("live"), Type.Literal("test")]),
  active: Type.Boolean({ description: "false: switched off or revoked" }),
  companyWideRead: Type.Boolean(),
  scopes: Type.Array(Type.String()),
});

export const ChannelDetail = Type.Object({
  code: Type.String(),
  companyCode: Type.String(),
  active: Type.Boolean(),
  ...shownMembers(CHANNEL_SETTINGS),
  rateLimit: RateLimitView,
  addressChecks: Type.Integer({ description: "so far; by month: …/address-checks" }),
  couriers: Type.Array(ChannelCourierView),
  boxes: Type.Array(BoxView, { description: "of the company" }),
  sender: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
  emails: Type.Object({
    managed: Type.Boolean(),
    from: text,
    statusNotifications: Type.Array(Type.String()),
    templates: Type.Array(TemplateView),
  }),
  apiKeys: Type.Array(ApiKeyView, { description: "those of its shadow in test mode too" }),
  managedBy: managedBySchema,
  closedAt,
  version,
});

export function companyRoutes(runtime: Runtime) {
  const { live } = runtime;
  return panelRoutes(runtime, "companies")
    .get(
      "/panel/api/companies",
      async ({ caller, query }) => {
        const { after, limit } = listPageOf(query);
        const configuration = await live.refresh();
        const theirs = [...configuration.companies.values()].filter(({ code }) =>
          isTheirs(caller, { companyCode: code, courierCode: null }),
        );
        const page = pageAfter(theirs, ({ code }) => code, after, limit);
        return { ...page, items: page.items.map((one) => companyView(one, configuration)) };
      },
      route({
        access: { can: "channels:read", of: "caller" },
        query: listQuery,
        response: Type.Object({ items: Type.Array(CompanyView), nextCursor: text }),
        summary: "Companies by code, with their channels",
      }),
    )
    .get(
      "/panel/api/companies/:code",
      async ({ params }) => {
        const configuration = await live.refresh();
        return companyView(companyOf(configuration, params.code), configuration);
      },
      route({
        access: { can: "channels:read", of: "company" },
        response: CompanyView,
        summary: "One company",
      }),
    )
    .get(
      "/panel/api/channels/:channelCode",
      async ({ params }) => {
        const configuration = await live.refresh();
        return channelDetail(runtime, configuration, channelOf(configuration, params.channelCode));
      },
      route({
        access: { can: "channels:read", of: "channel" },
        response: ChannelDetail,
        summary: "One channel with everything that is configured for it",
      }),
    );
}

export function companyView(
  { code, boxes, channelIds, setupSaid, version, ...company }: Company,
  { channels }: Configuration,
): Static<typeof CompanyView> {
  return {
    code,
    ...settingsIn(COMPANY_SETTINGS, company),
    boxes: [...boxes.values()].map(boxView),
    channels: channelIds.flatMap((id) => {
      const channel = channels.get(id);
      return channel ? [{ code: channel.code, name: channel.name, active: channel.active }] : [];
    }),
    managedBy: managedBy(setupSaid),
    closedAt: closedAtOf(company),
    version,
  };
}

export function boxView({ code, length, width, height, version }: Static<typeof BoxView>) {
  return { code, length, width, height, version };
}

export function templateView({
  event,
  language,
  subject,
  body,
  version,
}: Static<typeof TemplateView>) {
  return { event, language, subject, body, version };
}

export function channelCourierView(courier: ChannelCourier): Static<typeof ChannelCourierView> {
  const { transcodings, senderAccounts, ...one } = courier;
  return { ...one, transcodings: [...transcodings], senderAccounts: [...senderAccounts] };
}

export async function channelDetail(
  { redis }: Runtime,
  configuration: Configuration,
  channel: Channel,
): Promise<Static<typeof ChannelDetail>> {
  const { id, companyId, code, active } = channel;
  const company = configuration.companies.get(companyId);
  const [templates, checks] = await Promise.all([
    templatesOf(redis, id),
    readAddressChecks(redis, { companyId, channelId: id }),
  ]);
  const { managed, from, statusNotifications } = channel.emails;
  return {
    code,
    active,
    ...settingsIn(CHANNEL_SETTINGS, channel),
    companyCode: company?.code ?? "",
    rateLimit: { bucketSize: channel.bucketSize, refillRate: channel.refillRate },
    addressChecks: checks.reduce((sum, one) => sum + one.checks, 0),
    couriers: [...channel.couriers.values()].map(channelCourierView),
    boxes: [...(company?.boxes.values() ?? [])].map(boxView),
    sender: channel.sender && { ...channel.sender },
    emails: {
      managed,
      from,
      statusNotifications: [...statusNotifications],
      templates: templates.map(templateView),
    },
    apiKeys: [...configuration.apiKeyById.values()].flatMap((key) => {
      const owner = configuration.channels.get(key.channelId);
      return owner && (owner.id === id || owner.testOf === id) ? [keyView(key, owner)] : [];
    }),
    managedBy: channel.managedBy,
    closedAt: closedAtOf(channel),
    version: channel.version,
  };
}

export function keyView(
  { id, code, active, companyWideRead, scopes }: ApiKey,
  { testOf }: Channel,
): Static<typeof ApiKeyView> {
  const mode = testOf === null ? "live" : "test";
  return { id, code, mode, active, companyWideRead, scopes: [...scopes] };
}
