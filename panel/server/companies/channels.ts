/** Channels of merchants: API keys (issue, revoke) and activation. */

import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { resetSandbox } from "#core/merchants/store/sandbox.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { entityCode } from "#core/platform/schema/text-forms.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SCOPES } from "#core/setup/rules/setup.ts";
import type { Caller } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { queryOf, WHOLE_LIST, wholeList } from "#panel/server/http/list-page.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { settingsChannelOf } from "#panel/server/webhooks/webhook-access.ts";
import { activateChannel, issueApiKey, type NewApiKey, revokeApiKey } from "./channel-access.ts";
import { ApiKeyView, keyView } from "./companies.ts";

const ScopeSchema = Type.Union(SCOPES.map((name) => Type.Literal(name)));

const NewApiKeyBody = Type.Object(
  {
    code: Type.Optional(entityCode),
    mode: Type.Optional(
      Type.Union([Type.Literal("live"), Type.Literal("test")], {
        description:
          "test: for the channel's shadow, whose code ends with `:test`; default live, and test of the shadow itself",
      }),
    ),
    companyWideRead: Type.Optional(Type.Boolean()),
    scopes: Type.Optional(Type.Array(ScopeSchema, { description: "absent = all" })),
  },
  { additionalProperties: false },
);

export const IssuedApiKeyView = Type.Object({
  id: Type.Integer(),
  code: Type.String(),
  mode: Type.Union([Type.Literal("live"), Type.Literal("test")]),
  key: Type.String({ description: "shown this once" }),
  companyWideRead: Type.Boolean(),
  scopes: Type.Array(Type.String()),
});

export const ChannelView = Type.Object({
  code: Type.String(),
  name: Type.String(),
  company: Type.String(),
  active: Type.Boolean(),
  apiKeys: Type.Array(ApiKeyView),
});

const Activation = Type.Object({ code: Type.String(), active: Type.Boolean() });

export function channelRoutes(runtime: Runtime) {
  return new Elysia({ name: "channel-routes" })
    .use(apiKeyRoutes(runtime))
    .use(ownChannelRoutes(runtime));
}

function ownChannelRoutes(runtime: Runtime) {
  const { redis, live, log } = runtime;
  return panelRoutes(runtime, "channels")
    .get(
      "/panel/api/channels",
      async ({ caller, query }) => wholeList(channelsOf(await live.refresh(), caller), query),
      route({
        access: { can: "channels:read", of: "caller" },
        query: queryOf(WHOLE_LIST),
        response: Type.Object({ items: Type.Array(ChannelView), nextCursor: nullableText }),
        summary: "Channels and their API keys",
      }),
    )
    .post(
      "/panel/api/channels/:channelCode/activate",
      ({ params, request }) => activate(runtime, request, params.channelCode, true),
      activation("Let the channel's keys and tokens work"),
    )
    .post(
      "/panel/api/channels/:channelCode/deactivate",
      ({ params, request }) => activate(runtime, request, params.channelCode, false),
      activation("Answer 401 to the channel, at once"),
    )
    .post(
      "/panel/api/channels/:channelCode/sandbox/reset",
      async ({ params, request }) => {
        const channel = settingsChannelOf(await live.refresh(), params.channelCode);
        const restored = await resetSandbox(redis, channel, live.now());
        if (restored === 0) noteNoChange(request);
        log.info({ channel: channel.code, restored }, "sandbox reset");
        return { code: channel.code, restored };
      },
      route({
        access: { can: "keys:write", of: "channel" },
        response: Type.Object({
          code: Type.String(),
          restored: Type.Integer({ description: "entities that had been changed or deleted" }),
        }),
        summary: "Make the channel's sandbox entities what the setup file says",
      }),
    );
}

async function activate(runtime: Runtime, request: Request, code: string, active: boolean) {
  const before = settingsChannelOf(await runtime.live.refresh(), code).active;
  await activateChannel(runtime, code, active);
  noteChange(request, { active: before }, { active });
  runtime.log.info({ channel: code, active }, "channel activation changed");
  return { code, active };
}

const activation = (summary: string) =>
  route({
    access: { can: "channels:write", of: "installation" },
    response: Activation,
    summary,
    errors: ["CHANNEL_NOT_FOUND", "CONFIGURATION_BUSY"],
  });

function apiKeyRoutes(runtime: Runtime) {
  const { log } = runtime;
  return panelRoutes(runtime, "api-keys")
    .post(
      "/panel/api/channels/:channelCode/api-keys",
      async ({ params, body, set }) => {
        const wanted = { ...NEW_KEY, ...body };
        const issued = await issueApiKey(runtime, params.channelCode, wanted);
        log.info({ channel: params.channelCode, id: issued.id }, "API key issued");
        set.status = 201;
        return { ...issued, scopes: [...issued.scopes] };
      },
      route({
        access: { can: "keys:write", of: "channel" },
        response: { 201: IssuedApiKeyView },
        summary: "Issue an API key; the others keep working until they are revoked",
        body: jsonBody(
          NewApiKeyBody,
          { mode: "test", scopes: ["shipments:read", "shipments:write"] },
          { optional: true },
        ),
        errors: ["TOO_MANY_API_KEYS", "API_KEY_CODE_IN_USE", "CONFIGURATION_BUSY"],
      }),
    )
    .delete(
      "/panel/api/api-keys/:id",
      async ({ params, request }) => {
        noteChange(request, await revokeApiKey(runtime, params.id), null);
        log.info({ id: params.id }, "API key revoked");
        return new Response(null, { status: 204 });
      },
      route({
        access: { can: "keys:write", of: "apiKey" },
        summary: "Revoke an API key, at once on every process",
        answers: { 204: { description: "revoked" } },
        errors: ["CONFIGURATION_BUSY"],
      }),
    );
}

/** What a call that says nothing asks for. */
const NEW_KEY: NewApiKey = { code: null, mode: null, companyWideRead: false, scopes: SCOPES };

function channelsOf(configuration: Configuration, caller: Caller): Static<typeof ChannelView>[] {
  const keysOf = Map.groupBy(configuration.apiKeyById.values(), ({ channelId }) => channelId);
  const companyOf = ({ companyId }: Channel) => configuration.companies.get(companyId)?.code ?? "";
  const shown = [...configuration.channels.values()].filter((channel) =>
    isTheirs(caller, { companyCode: companyOf(channel), courierCode: null }),
  );
  return shown.map((channel) => ({
    code: channel.code,
    name: channel.name,
    active: channel.active,
    company: companyOf(channel),
    apiKeys: (keysOf.get(channel.id) ?? []).map((key) => keyView(key, channel)),
  }));
}
