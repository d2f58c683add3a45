/** Mail templates of a channel, by event and language, with a preview and a test mail (document 1, "Notifications"). */

import { randomUUID } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import type { Channel } from "#core/configuration/store/configuration.ts";
import {
  deleteSetting,
  putTemplate,
  templateId,
} from "#core/configuration/store/merchant-settings.ts";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { type Composed, composeTemplate } from "#core/merchants/rules/compose-message.ts";
import { unknownPlaceholders } from "#core/merchants/rules/render-template.ts";
import { sampleValues } from "#core/merchants/rules/sample-values.ts";
import { findTemplate } from "#core/merchants/store/templates.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Mailer } from "#core/platform/process/mail.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { limit, rate } from "#core/platform/schema/limit.ts";
import { emailAddress } from "#core/platform/schema/text-forms.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { SetupTemplate, TEMPLATES_PER_CHANNEL } from "#core/setup/rules/setup.ts";
import { checkedPath, jsonBody, missingFields } from "#panel/server/http/checked-body.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";
import {
  channelOf,
  refuseFaults,
  settingsChannelOf,
} from "#panel/server/webhooks/webhook-access.ts";
import { TemplateView, templateView } from "./companies.ts";

/** A body of 100,000 characters, each of them an escape of two parts. */
export const TEMPLATE_BODY_BYTES = limit(2 * 1024 * 1024, "body of a mail template's call", "413");
const BOUNDED = { limitBytes: TEMPLATE_BODY_BYTES };
/** Test mails of a channel: a template is tried some times in a row, and nobody is flooded. */
export const TEST_MAIL_RATE = rate(10, 1 / 60, "test mails of a channel", "429 with `Retry-After`");

const strict = { additionalProperties: false } as const;
const { event, language, subject, body } = SetupTemplate.properties;

/** The example of the document. */
const DRAFT = { subject: "How was it?", body: "Hello {{consignee.name}}, {{trackingUrl}}" };

export const TemplateInput = Type.Partial(Type.Object({ subject, body }), {
  additionalProperties: false,
  minProperties: 1,
  description: "absent = as it is; a new template needs both",
});
const pathChecker = compileSchema(Type.Object({ event, language }));

export const PreviewInput = Type.Object({ subject, body, language }, strict);

export const Preview = Type.Object({
  subject: Type.String(),
  html: Type.String(),
  text: Type.String({ description: "the plain part of the same mail" }),
  unknown: Type.Array(Type.String(), { description: "placeholders that stand for nothing" }),
  placeholders: Type.Array(Type.String(), { description: "every name that a template may use" }),
});

export const TestMailInput = Type.Object(
  {
    event,
    language,
    to: emailAddress,
    subject: Type.Optional(subject),
    body: Type.Optional(body),
  },
  {
    ...strict,
    description:
      "with subject and body that draft, else the template that a notification would use",
  },
);

export const TestMail = Type.Object({
  to: Type.String(),
  event: Type.String({ description: "of the template used: default is the fallback" }),
  language: Type.String(),
  subject: Type.String(),
});

type Draft = Omit<Static<typeof TemplateView>, "version">;

export function templateRoutes(runtime: Runtime, mailer: Mailer) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "templates")
    .put(
      "/panel/api/channels/:channelCode/templates/:event/:language",
      async ({ params, body: wanted, request }) => {
        const named = checkedPath(params, pathChecker);
        const { id: channelId } = settingsChannelOf(await live.refresh(), params.channelCode);
        const { event, language } = named;
        const outcome = await putTemplate(redis, { channelId, event, language }, wanted);
        if (outcome === "full") throw tooMany();
        if ("missing" in outcome) throw missingFields(outcome.missing);
        const { before, after } = outcome;
        noteChange(request, before && templateView(before), templateView(after));
        return templateView(after);
      },
      route({
        access: { can: "templates:write", of: "channel" },
        response: TemplateView,
        summary: "Make or change the mail of an event in a language",
        errors: ["TOO_MANY_TEMPLATES", "INVALID_PATH", "CONFIGURATION_BUSY"],
        body: jsonBody(TemplateInput, DRAFT, BOUNDED),
      }),
    )
    .delete(
      "/panel/api/channels/:channelCode/templates/:event/:language",
      async ({ params, request, set }) => {
        const { id: channelId } = settingsChannelOf(await live.refresh(), params.channelCode);
        const deleted = await deleteSetting(
          redis,
          "template",
          templateId({ channelId, ...params }),
        );
        if (!deleted) {
          throw new Problem(404, "TEMPLATE_NOT_FOUND", "The channel has no such template.");
        }
        noteChange(request, templateView(deleted), null);
        set.status = 204;
      },
      route({
        access: { can: "templates:write", of: "channel" },
        summary: "Delete a template; another language or the fallback takes its place",
        errors: ["TEMPLATE_NOT_FOUND", "CONFIGURATION_BUSY"],
        answers: { 204: { description: "deleted" } },
      }),
    )
    .use(trialRoutes(runtime, mailer));
}

function trialRoutes(runtime: Runtime, mailer: Mailer) {
  const { live, config } = runtime;
  return panelRoutes(runtime, "template-trials")
    .post(
      "/panel/api/channels/:channelCode/templates/preview",
      async ({ params, body: draft, request }) => {
        noteNoChange(request);
        const { name } = channelOf(await live.refresh(), params.channelCode);
        const values = sampleValues(draft.language, name, config.publicUrl);
        return {
          ...composeTemplate(draft, values),
          unknown: unknownPlaceholders([draft.subject, draft.body], values),
          placeholders: Object.keys(values),
        };
      },
      route({
        access: { can: "channels:read", of: "channel" },
        reads: true,
        response: Preview,
        summary: "A template as a recipient would read it, about a sample shipment",
        body: jsonBody(PreviewInput, { ...DRAFT, language: "it" }, BOUNDED),
      }),
    )
    .post(
      "/panel/api/channels/:channelCode/templates/test",
      async ({ params, body: input, set }) => {
        const channel = settingsChannelOf(await live.refresh(), params.channelCode);
        const draft = await draftOf(runtime, channel, input);
        await takeTurn(runtime, channel);
        const values = sampleValues(input.language, channel.name, config.publicUrl);
        const composed = composeTemplate(draft, values);
        await send(runtime, mailer, channel, input.to, composed);
        set.status = 202;
        const { event, language } = draft;
        return { to: input.to, event, language, subject: composed.subject };
      },
      route({
        access: { can: "templates:write", of: "channel" },
        response: { 202: TestMail },
        summary: "Send the mail of an event about a sample shipment to an address",
        errors: ["TOO_MANY_TEST_MAILS", "MAIL_NOT_SENT"],
        body: jsonBody(
          TestMailInput,
          { event: "review-request", language: "it", to: "dev@example.com", ...DRAFT },
          BOUNDED,
        ),
      }),
    );
}

/** @throws {Problem} 422 */
async function draftOf(
  { redis }: Runtime,
  channel: Channel,
  { event, language, subject, body }: Static<typeof TestMailInput>,
): Promise<Draft> {
  if (subject !== undefined && body !== undefined) return { event, language, subject, body };
  const message = "A draft has both.";
  if (subject !== undefined) refuseFaults([{ path: "body", code: "REQUIRED", message }]);
  if (body !== undefined) refuseFaults([{ path: "subject", code: "REQUIRED", message }]);
  const template = await findTemplate(redis, channel.id, event, language);
  if (template) return template;
  const none = "There is no usable template.";
  refuseFaults([{ path: "event", code: "NOT_ALLOWED", message: none }]);
  throw new Error("a fault was not refused");
}

/** @throws {Problem} 429 */
async function takeTurn({ redis, live }: Runtime, { id }: Channel): Promise<void> {
  const turn = await takeCourierRate(redis, `test mail ${id}`, TEST_MAIL_RATE, live.now());
  if (turn.allowed) return;
  const detail = "The channel has sent many test mails; wait a little.";
  throw new Problem(429, "TOO_MANY_TEST_MAILS", detail, {
    headers: { "retry-after": String(Math.ceil(turn.retryAfterMs / 1_000)) },
  });
}

/** At once, so that whoever tries a template reads what the mail server says. @throws {Problem} 502 */
async function send(
  { log }: Runtime,
  mailer: Mailer,
  { code, emails }: Channel,
  to: string,
  composed: Composed,
): Promise<void> {
  const messageId = `test-${randomUUID()}@waybill`;
  try {
    await mailer.send({
      messageId,
      to,
      ...composed,
      ...(emails.from !== null && { from: emails.from }),
    });
  } catch (error) {
    const { response, responseCode } = error as { response?: string; responseCode?: number };
    log.info({ channel: code, responseCode }, "a test mail was not sent");
    const reason = response
      ? `The mail server refuses the message: ${response.replaceAll(to, "…")}`
      : "The mail server cannot be reached.";
    throw new Problem(502, "MAIL_NOT_SENT", reason);
  }
}

function tooMany(): Problem {
  const detail = `At most ${TEMPLATES_PER_CHANNEL} templates a channel.`;
  return new Problem(409, "TOO_MANY_TEMPLATES", detail);
}
