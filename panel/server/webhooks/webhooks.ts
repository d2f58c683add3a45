/** Webhook endpoints of the panel's HTTP API (document 3; setup-file.md, "The panel's HTTP API"). */

import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { EndpointEntity } from "#core/configuration/rules/entities.ts";
import { settingsAfter } from "#core/configuration/rules/entity.ts";
import { ENDPOINT_SETTINGS } from "#core/configuration/rules/settings.ts";
import type { Configuration, Endpoint } from "#core/configuration/store/configuration.ts";
import { newEndpointId, newWebhookSecret } from "#core/configuration/store/endpoint-entity.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { sealedHeaders } from "#core/webhooks/rules/custom-headers.ts";
import {
  EndpointInput,
  EndpointPatch,
  faultsOfEndpoint,
  faultsOfPatch,
} from "#core/webhooks/rules/webhook-endpoint.ts";
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  disableEndpoint,
  enableEndpoint,
  rotateEndpointSecret,
} from "#core/webhooks/store/endpoints.ts";
import { jsonBody, uncheckedBody } from "#panel/server/http/checked-body.ts";
import { notFound } from "#panel/server/not-found.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { channelOf, endpointOf, readHealth, refuseEndpointFaults } from "./webhook-access.ts";
import { EndpointView, endpointView, NewEndpointView } from "./webhook-view.ts";

type View = Static<typeof EndpointView>;

const EndpointList = Type.Object({ total: Type.Integer(), items: Type.Array(EndpointView) });
const Rotated = Type.Object({
  secret: Type.String({ description: "shown this once; the old one signs for 24 hours more" }),
});
const RotationInput = Type.Object(
  {
    revokePrevious: Type.Optional(
      Type.Boolean({
        description:
          "ends a secret of an earlier rotation that still signs; the one replaced now signs for 24 hours more in any case",
      }),
    ),
  },
  { additionalProperties: false },
);
export function webhookRoutes(runtime: Runtime) {
  return new Elysia({ name: "webhooks" })
    .use(channelWebhookRoutes(runtime))
    .use(endpointRoutes(runtime))
    .use(endpointActionRoutes(runtime));
}

function channelWebhookRoutes(runtime: Runtime) {
  const { redis, live, config } = runtime;
  return panelRoutes(runtime, "webhooks-of-channel")
    .get(
      "/panel/api/channels/:channelCode/webhooks",
      async ({ params }) => {
        const configuration = await live.refresh();
        const { endpoints } = channelOf(configuration, params.channelCode);
        const items = await Promise.all(
          endpoints.map(({ id }) => viewOf(runtime, configuration, id)),
        );
        return { total: items.length, items };
      },
      route({
        access: { can: "webhooks:read", of: "channel" },
        response: EndpointList,
        summary: "Webhook endpoints of a channel",
      }),
    )
    .post(
      "/panel/api/channels/:channelCode/webhooks",
      async ({ params, body, set }) => {
        const channel = channelOf(await live.refresh(), params.channelCode);
        await refuseEndpointFaults(faultsOfEndpoint(body), urlOf(body), config);
        const input = body as EndpointInput;
        const secret = newWebhookSecret();
        const endpoint = newEntity(input, channel.id, secret, runtime);
        if (!(await createEndpoint(redis, endpoint))) throw tooMany();
        set.status = 201;
        return { ...(await viewOf(runtime, await live.refresh(), endpoint.id)), secret };
      },
      route({
        access: { can: "webhooks:write", of: "channel" },
        response: { 201: NewEndpointView },
        summary: "Make an endpoint; its secret is shown this once",
        errors: ["TOO_MANY_ENDPOINTS"],
        body: uncheckedBody(EndpointInput, {
          url: "https://merchant.example/hook",
          alertEmail: "ops@merchant.example",
          trigger: "status_change",
          statuses: ["DELIVERED", "EXCEPTION"],
        }),
      }),
    );
}

function endpointRoutes(runtime: Runtime) {
  const { redis, live, config, secrets } = runtime;
  return panelRoutes(runtime, "webhook-endpoint")
    .get(
      "/panel/api/webhooks/:endpointId",
      async ({ params }) => viewOf(runtime, await live.refresh(), params.endpointId),
      route({
        access: { can: "webhooks:read", of: "endpoint" },
        response: EndpointView,
        summary: "One endpoint",
      }),
    )
    .patch(
      "/panel/api/webhooks/:endpointId",
      async ({ params, body, request }) => {
        const known = await live.refresh();
        const before = await viewOf(runtime, known, params.endpointId);
        await refuseEndpointFaults(
          faultsOfPatch(body, Object.keys(before.headers)),
          urlOf(body),
          config,
        );
        const patch = body as EndpointPatch;
        const { events: _, headers, ...change } = patch;
        const found = await changeEndpoint(redis, params.endpointId, (stored) => ({
          ...change,
          ...(headers && { headers: sealedHeaders(headers, stored.headers, secrets.vault) }),
        }));
        if (!found) throw notFound("endpoint");
        const changed = await live.refresh();
        const after = await viewOf(runtime, changed, params.endpointId);
        // How the endpoint fares is in both views, and no change of ours.
        const [old, now] = [known, changed].map(({ endpoints }) => endpoints.get(after.endpointId));
        if (Bun.deepEquals(old, now)) noteNoChange(request);
        // A value of a header is in neither view.
        else noteChange(request, withHash(before, old), withHash(after, now));
        return after;
      },
      route({
        access: { can: "webhooks:write", of: "endpoint" },
        response: EndpointView,
        summary: "Change what is given",
        body: uncheckedBody(EndpointPatch, { include: ["consignee"] }),
      }),
    )
    .delete(
      "/panel/api/webhooks/:endpointId",
      async ({ params, request, set }) => {
        const configuration = await live.refresh();
        const before = await viewOf(runtime, configuration, params.endpointId);
        await deleteEndpoint(redis, configuration, params.endpointId);
        noteChange(request, before, null);
        await live.refresh();
        set.status = 204;
      },
      route({
        access: { can: "webhooks:write", of: "endpoint" },
        summary: "Delete an endpoint; the channel's last one brings webhooks v1 back",
        answers: { 204: { description: "deleted" } },
      }),
    );
}

function endpointActionRoutes(runtime: Runtime) {
  const { live } = runtime;
  return panelRoutes(runtime, "webhook-actions")
    .post(
      "/panel/api/webhooks/:endpointId/rotate-secret",
      async ({ params, body: { revokePrevious = false } }) => {
        const { endpoint } = endpointOf(await live.refresh(), params.endpointId);
        return { secret: await rotate(runtime, endpoint, revokePrevious) };
      },
      route({
        access: { can: "webhooks:write", of: "endpoint" },
        response: Rotated,
        summary: "A new secret, shown this once; 409 while an earlier rotation's 24 hours run",
        errors: ["ROTATION_RUNNING", "SECRET_REPLACED"],
        body: jsonBody(RotationInput, { revokePrevious: true }, { optional: true }),
      }),
    )
    .post(
      "/panel/api/webhooks/:endpointId/disable",
      ({ params, request }) => switchTo(runtime, request, params.endpointId, false),
      route({
        access: { can: "webhooks:write", of: "endpoint" },
        response: EndpointView,
        summary: "Switch off: what waits fails, replayable",
      }),
    )
    .post(
      "/panel/api/webhooks/:endpointId/enable",
      ({ params, request }) => switchTo(runtime, request, params.endpointId, true),
      route({
        access: { can: "webhooks:write", of: "endpoint" },
        response: EndpointView,
        summary: "Reactivate: clean, without old events",
      }),
    );
}

/** For the audit log, which masks hashes: another one once the value of a header is. */
function withHash(view: View, endpoint: Endpoint | undefined) {
  return { ...view, headersHash: hashToken(JSON.stringify(endpoint?.headers ?? {})) };
}

async function viewOf(
  runtime: Runtime,
  configuration: Configuration,
  endpointId: string,
): Promise<View> {
  const { endpoint, channel } = endpointOf(configuration, endpointId);
  const health = await readHealth(runtime, configuration, endpoint);
  return endpointView(endpoint, channel.code, health, runtime.live.now());
}

/**
 * An endpoint that has the state already is left alone: enabling an active one would fail the deliveries that wait for it, and one that
 * was disabled for its failures keeps the reason.
 */
async function switchTo(
  runtime: Runtime,
  request: Request,
  endpointId: string,
  active: boolean,
): Promise<View> {
  const { redis, live } = runtime;
  const configuration = await live.refresh();
  const { endpoint } = endpointOf(configuration, endpointId);
  if (endpoint.active && !active) {
    await disableEndpoint(redis, configuration, endpointId, live.now());
  }
  if (active && !endpoint.active) await enableEndpoint(redis, configuration, endpointId);
  noteChange(request, { active: endpoint.active }, { active });
  return viewOf(runtime, await live.refresh(), endpointId);
}

/**
 * @returns the new secret
 * @throws {Problem} 404, 409
 */
async function rotate(
  { redis, live, secrets }: Runtime,
  endpoint: Endpoint,
  revokePrevious: boolean,
): Promise<string> {
  const secret = newWebhookSecret();
  const outcome = await rotateEndpointSecret(redis, endpoint.id, {
    sealed: secrets.vault.seal(secret),
    replaces: endpoint.secret,
    revokePrevious,
    nowMs: live.now(),
  });
  if (outcome === "rotated") return secret;
  throw outcome === "gone" ? notFound("endpoint") : notRotated(outcome);
}

function newEntity(
  input: EndpointInput,
  channelId: number,
  secret: string,
  { secrets: { vault }, live }: Runtime,
): EndpointEntity {
  const id = newEndpointId();
  const nowMs = live.now();
  return {
    id,
    channelId,
    // Of its own, so that no entry of the setup file is taken for it.
    code: `panel-${id.slice("ep_".length)}`,
    url: input.url,
    alertEmail: input.alertEmail,
    ...settingsAfter(ENDPOINT_SETTINGS, input, {}),
    headers: sealedHeaders(input.headers ?? {}, {}, vault),
    active: input.active ?? true,
    disabled:
      input.active === false ? { reason: "manual", sinceMs: nowMs, failingSinceMs: null } : null,
    secret: vault.seal(secret),
    previousSecret: null,
    previousUntilMs: 0,
    createdAtMs: nowMs,
    fileEntry: "",
    fileSecretHash: "",
    earlierTargets: [],
  };
}

function urlOf(body: unknown): unknown {
  return (body as { url?: unknown } | null | undefined)?.url;
}

function tooMany(): Problem {
  const detail = "A channel has at most 5 endpoints, disabled ones included.";
  return new Problem(409, "TOO_MANY_ENDPOINTS", detail);
}

function notRotated(outcome: "overlapping" | "replaced"): Problem {
  return outcome === "replaced"
    ? new Problem(409, "SECRET_REPLACED", "Somebody else has rotated the secret at the same time.")
    : new Problem(
        409,
        "ROTATION_RUNNING",
        "The secret of an earlier rotation still signs, until previousSecretUntil; revokePrevious ends it.",
      );
}
