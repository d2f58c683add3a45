/** Settings of a channel: its request budget, its sender, its mails. They count at once on every process. */

import { Type } from "@sinclair/typebox";
import type { ChannelEntity } from "#core/configuration/rules/entities.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { described } from "#core/platform/openapi/operation.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { mailSender } from "#core/platform/schema/text-forms.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SetupRateLimit, SetupSender } from "#core/setup/rules/setup.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import { jsonBody, readChecked } from "#panel/server/http/checked-body.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { changeSettings } from "./channel-access.ts";
import { RateLimitView } from "./companies.ts";

const strict = { additionalProperties: false } as const;

export const RateLimitInput = Type.Required(SetupRateLimit);
const rateLimitChecker = compileSchema(RateLimitInput);

export const SenderInput = Type.Object(SetupSender.properties, { ...strict, minProperties: 1 });
/** Answers are checked in UTF-16 units: without the lengths of what was let in by code points. */
const SenderView = Type.Record(Type.String(), Type.String());
const senderChecker = compileSchema(SenderInput);

export const EmailsInput = Type.Object(
  {
    managed: Type.Boolean({ description: "the service sends the channel's transactional mails" }),
    from: Type.Union([mailSender, Type.Null()], {
      description: "null = the service's own address",
    }),
  },
  strict,
);
const Emails = Type.Object({ managed: Type.Boolean(), from: nullableText });
const emailsChecker = compileSchema(EmailsInput);

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
const statusesChecker = compileSchema(StatusNotificationsInput);

export function channelSettingsRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "channel-settings")
    .put(
      "/panel/api/channels/:channelCode/rate-limit",
      async ({ params, request }) => {
        const wanted = await readChecked(request, rateLimitChecker);
        const { before } = await changeSettings(runtime, params.channelCode, () => wanted);
        const { bucketSize, refillRate } = before;
        noteChange(request, { bucketSize, refillRate }, wanted);
        return wanted;
      },
      {
        needs: { can: "channels:write", of: "channel" },
        parse: "none",
        response: RateLimitView,
        ...described({
          summary: "The channel's request budget (document 1, Limits)",
          errors: ["CONFIGURATION_BUSY"],
          body: jsonBody(RateLimitInput, { bucketSize: 300, refillRate: 150 }),
        }),
      },
    )
    .put(
      "/panel/api/channels/:channelCode/sender",
      async ({ params, request }) => {
        const wanted = await readChecked(request, senderChecker);
        const change = { sender: wanted };
        const { before } = await changeSettings(runtime, params.channelCode, () => change);
        noteChange(request, before.sender, wanted);
        return wanted;
      },
      {
        needs: { can: "shipping:write", of: "channel" },
        parse: "none",
        response: SenderView,
        ...described({
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
      },
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
      {
        needs: { can: "shipping:write", of: "channel" },
        ...described({
          summary: "Remove the sender: labels then name the company, benchmarks its seat",
          errors: ["SENDER_NOT_FOUND", "CONFIGURATION_BUSY"],
          answers: { 204: { description: "removed" } },
        }),
      },
    )
    .use(mailSettingsRoutes(runtime));
}

function mailSettingsRoutes(runtime: Runtime) {
  return panelRoutes(runtime, "channel-mails")
    .put(
      "/panel/api/channels/:channelCode/emails",
      async ({ params, request }) => {
        const wanted = await readChecked(request, emailsChecker);
        const { before, after } = await changeSettings(runtime, params.channelCode, (channel) => ({
          emails: { ...channel.emails, ...wanted },
        }));
        const senderIn = ({ emails: { managed = false, from = null } }: ChannelEntity) => ({
          managed,
          from,
        });
        noteChange(request, senderIn(before), senderIn(after));
        return wanted;
      },
      {
        needs: { can: "channels:write", of: "channel" },
        parse: "none",
        response: Emails,
        ...described({
          summary: "Whether the service sends the channel's mails, and in whose name",
          errors: ["CONFIGURATION_BUSY"],
          body: jsonBody(EmailsInput, { managed: true, from: "shop@example.com" }),
        }),
      },
    )
    .put(
      "/panel/api/channels/:channelCode/status-notifications",
      async ({ params, request }) => {
        const { statuses } = await readChecked(request, statusesChecker);
        const statusNotifications = [...new Set(statuses)];
        const { before } = await changeSettings(runtime, params.channelCode, (channel) => ({
          emails: { ...channel.emails, statusNotifications },
        }));
        const known = before.emails.statusNotifications ?? [];
        noteChange(request, { statuses: known }, { statuses: statusNotifications });
        return { statuses: statusNotifications };
      },
      {
        needs: { can: "templates:write", of: "channel" },
        parse: "none",
        response: StatusNotifications,
        ...described({
          summary: "The statuses whose recipients are notified",
          errors: ["CONFIGURATION_BUSY"],
          body: jsonBody(StatusNotificationsInput, {
            statuses: ["OUT_FOR_DELIVERY", "DELIVERED"],
          }),
        }),
      },
    );
}
