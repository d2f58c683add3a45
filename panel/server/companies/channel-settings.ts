/** Settings of a channel: its request budget, its sender, its mails. They count at once on every process. */

import { Type } from "@sinclair/typebox";
import type { ChannelEntity } from "#core/configuration/rules/entities.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { mailSender } from "#core/platform/schema/text-forms.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SetupRateLimit, SetupSender } from "#core/setup/rules/setup.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { changeSettings } from "./channel-access.ts";
import { RateLimitView } from "./companies.ts";

const strict = { additionalProperties: false } as const;

/** What is not given is as it was. */
const PATCH = {
  additionalProperties: false,
  minProperties: 1,
  description: "absent = as it is",
} as const;
export const RateLimitInput = Type.Partial(SetupRateLimit, PATCH);

export const SenderInput = Type.Object(SetupSender.properties, { ...strict, minProperties: 1 });
/** Answers are checked in UTF-16 units: without the lengths of what was let in by code points. */
const SenderView = Type.Record(Type.String(), Type.String());

export const EmailsInput = Type.Partial(
  Type.Object({
    managed: Type.Boolean({ description: "the service sends the channel's transactional mails" }),
    from: Type.Union([mailSender, Type.Null()], {
      description: "null = the service's own address",
    }),
  }),
  PATCH,
);
const Emails = Type.Object({ managed: Type.Boolean(), from: nullableText });

export const StatusNotificationsInput = Type.Object(
  {
    statuses: Type.Array(StatusSchema, {
      maxItems: 100,
      description: "whose recipients are notified by mail and text message",
    }),
  },
  strict,
);
const StatusNotifications = Type.Object({ statuses: Type.Array(Type.String()) });

export function channelSettingsRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "channel-settings")
    .put(
      "/panel/api/channels/:channelCode/rate-limit",
      async ({ params, body: wanted, request }) => {
        const { before, after } = await changeSettings(runtime, params.channelCode, () => wanted);
        noteChange(request, rateLimitOf(before), rateLimitOf(after));
        return rateLimitOf(after);
      },
      route({
        access: { can: "channels:write", of: "channel" },
        response: RateLimitView,
        summary: "The channel's request budget (document 1, Limits)",
        errors: ["CONFIGURATION_BUSY"],
        body: jsonBody(RateLimitInput, { bucketSize: 300, refillRate: 150 }),
      }),
    )
    .put(
      "/panel/api/channels/:channelCode/sender",
      async ({ params, body: wanted, request }) => {
        const change = { sender: wanted };
        const { before } = await changeSettings(runtime, params.channelCode, () => change);
        noteChange(request, before.sender, wanted);
        return wanted;
      },
      route({
        access: { can: "shipping:write", of: "channel" },
        response: SenderView,
        summary: "The sender of labels, whose postal code is the origin of benchmarks",
        errors: ["CONFIGURATION_BUSY"],
        body: jsonBody(SenderInput, {
          businessName: "Acme S.p.A.",
          street: "Via Roma 1",
          city: "Milano",
          state: "MI",
          postcode: "20121",
          country: "IT",
        }),
      }),
    )
    .delete(
      "/panel/api/channels/:channelCode/sender",
      async ({ params, request, set }) => {
        const { before } = await changeSettings(runtime, params.channelCode, (channel) => {
          if (channel.sender) return { sender: null };
          throw new Problem(404, "SENDER_NOT_FOUND", "The channel has no sender.");
        });
        noteChange(request, before.sender, null);
        set.status = 204;
      },
      route({
        access: { can: "shipping:write", of: "channel" },
        summary: "Remove the sender: labels then name the company, benchmarks its seat",
        errors: ["SENDER_NOT_FOUND", "CONFIGURATION_BUSY"],
        answers: { 204: { description: "removed" } },
      }),
    )
    .use(mailSettingsRoutes(runtime));
}

function mailSettingsRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "channel-mails")
    .put(
      "/panel/api/channels/:channelCode/emails",
      async ({ params, body: wanted, request }) => {
        const { before, after } = await changeSettings(runtime, params.channelCode, (channel) => ({
          emails: { ...channel.emails, ...wanted },
        }));
        noteChange(request, sendingOf(before), sendingOf(after));
        return sendingOf(after);
      },
      route({
        access: { can: "channels:write", of: "channel" },
        response: Emails,
        summary: "Whether the service sends the channel's mails, and in whose name",
        errors: ["CONFIGURATION_BUSY"],
        body: jsonBody(EmailsInput, { managed: true, from: "shop@example.com" }),
      }),
    )
    .put(
      "/panel/api/channels/:channelCode/status-notifications",
      async ({ params, body, request }) => {
        const { statuses } = body;
        const statusNotifications = [...new Set(statuses)];
        const { before } = await changeSettings(runtime, params.channelCode, (channel) => ({
          emails: { ...channel.emails, statusNotifications },
        }));
        const known = before.emails.statusNotifications ?? [];
        noteChange(request, { statuses: known }, { statuses: statusNotifications });
        return { statuses: statusNotifications };
      },
      route({
        access: { can: "templates:write", of: "channel" },
        response: StatusNotifications,
        summary: "The statuses whose recipients are notified",
        errors: ["CONFIGURATION_BUSY"],
        body: jsonBody(StatusNotificationsInput, {
          statuses: ["OUT_FOR_DELIVERY", "DELIVERED"],
        }),
      }),
    );
}

function rateLimitOf({ bucketSize, refillRate }: ChannelEntity) {
  return { bucketSize, refillRate };
}

function sendingOf({ emails: { managed = false, from = null } }: ChannelEntity) {
  return { managed, from };
}
