/** The settings of couriers, companies, channels, endpoints and receivers of alarms that are one value each (`entity.ts`), in the order in which forms show them. */
import { Type } from "@sinclair/typebox";
import { DATE_SUPPORTS } from "#core/merchants/rules/stock-release.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nameText } from "#core/platform/schema/name-text.ts";
import { emailAddressOrEmpty } from "#core/platform/schema/text-forms.ts";
import { LANGUAGES } from "#core/shipments/rules/shipment.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import {
  DEFAULT_MAX_CONCURRENCY,
  MAX_CONCURRENCY_LIMIT,
  MAX_PER_SECOND_LIMIT,
} from "#core/webhooks/rules/concurrency.ts";
import { CustomHeaders } from "#core/webhooks/rules/custom-headers.ts";
import { type Trigger, TriggerSchema } from "#core/webhooks/rules/trigger.ts";
import { BodyFormat } from "#core/webhooks/rules/webhook-request.ts";
import { formOf, settingsAfter } from "./entity.ts";

/** Less than what is read of a receiver's answer. */
const ACKNOWLEDGEMENT_LENGTH = 4_096;

const DESCRIPTION_LENGTH = limit(
  200,
  "characters of the description of an endpoint or receiver",
  "422",
);

const text = Type.String({ minLength: 1, maxLength: 255 });
/** Of a new entity: its code. */
const name = nameText(255);
const languageOf = (description: string) =>
  Type.Union(
    LANGUAGES.map((one) => Type.Literal(one)),
    { default: "it", description },
  );

const webhookV1 = Type.Object(
  {
    url: Type.String({ minLength: 1 }),
    acknowledgement: Type.String({ maxLength: ACKNOWLEDGEMENT_LENGTH }),
  },
  { additionalProperties: false },
);

/** What the panel changes too: of a setup file only what it says otherwise than the last time counts. */
export const CHANNEL_SETTINGS = {
  name,
  language: languageOf("of the mails about its webhooks"),
  trackingPage: Type.Boolean({
    default: false,
    description: "its shipments have a public tracking page",
  }),
  addressCheck: Type.Boolean({
    default: false,
    description: "it may have addresses checked, which its company is billed for",
  }),
  webhookV1: Type.Union([webhookV1, Type.Null()], {
    default: null,
    description: "null = none. It is silent while the channel has an endpoint",
  }),
};

export const COMPANY_SETTINGS = {
  name,
  language: languageOf("of its labels, slips and invitations"),
  seatPostcode: Type.Union([Type.String({ minLength: 1, maxLength: 16 }), Type.Null()], {
    default: null,
    description: "origin of benchmarks where a channel has no sender",
  }),
  products: Type.Array(Type.Union([Type.Literal("api-parcels"), Type.Literal("checkAddress")])),
};

export const COURIER_SETTINGS = {
  name,
  environment: Type.String({ ...text, default: "production" }),
  signatureRequired: Type.Boolean({ default: false }),
  allowedIps: Type.Array(text, {
    maxItems: 1_000,
    description: "addresses or networks; empty = any",
  }),
  stockRelease: Type.Union([Type.Literal("none"), Type.Literal("sync"), Type.Literal("deferred")], {
    default: "none",
  }),
  stockReleaseDate: Type.Union(
    DATE_SUPPORTS.map((one) => Type.Literal(one)),
    {
      default: "optional",
      description:
        "whether the carrier requires, supports or ignores a redelivery date; default optional",
    },
  ),
  stockReleaseUrl: Type.String({
    pattern: "^(https?://.+)?$",
    maxLength: 2_048,
    description: "http or https address of the gateway for stock releases; empty = none",
  }),
};

/** What an endpoint may be given beside its URL and its alert address. */
export const ENDPOINT_SETTINGS = {
  description: Type.String({
    maxLength: DESCRIPTION_LENGTH,
    description: "what the endpoint is for, shown in the panel",
  }),
  trigger: Type.Unsafe<Trigger>({ ...TriggerSchema, default: "status_change" }),
  statuses: Type.Array(StatusSchema, { maxItems: 100, description: "empty = all" }),
  include: Type.Array(Type.Literal("consignee"), { maxItems: 10, description: "default none" }),
  standardWebhooks: Type.Boolean({
    default: false,
    description: "send the headers of the Standard Webhooks specification too",
  }),
  bodyFormat: Type.Unsafe<BodyFormat>({
    ...BodyFormat,
    default: "waybill",
    description:
      "`waybill`, the default: the payload as documented; `cloudevents`: the same data in the JSON format of CloudEvents 1.0",
  }),
  maxConcurrency: Type.Integer({
    minimum: 1,
    maximum: MAX_CONCURRENCY_LIMIT,
    default: DEFAULT_MAX_CONCURRENCY,
    description: `requests under way at once, at most; default ${DEFAULT_MAX_CONCURRENCY}. Below that, concurrency adapts: it grows while answers are good and quick, and falls on 429, 503, timeouts and slower answers`,
  }),
  maxPerSecond: Type.Union(
    [Type.Number({ exclusiveMinimum: 0, maximum: MAX_PER_SECOND_LIMIT }), Type.Null()],
    {
      default: null,
      description: "requests begun in any second, at most; null, the default, for no such limit",
    },
  ),
  headers: CustomHeaders,
};

/** A receiver of alarms, beside the URL of a webhook. */
export const ALARM_RECEIVER_SETTINGS = {
  description: Type.String({
    maxLength: DESCRIPTION_LENGTH,
    description: "whom it reaches, shown in the panel",
  }),
  email: emailAddressOrEmpty,
  severity: Type.Union([Type.Literal("warning"), Type.Literal("critical")], {
    default: "warning",
    description: "critical: only critical alarms; warning, the default: all",
  }),
  language: Type.Union([Type.Literal("it"), Type.Literal("en")], {
    default: "it",
    description: "which alarms it receives",
  }),
  active: Type.Boolean({ default: true, description: "false: it receives nothing" }),
};

/** Called by the bundler: the panel's application gets the result, and no schema. */
export const channelForm = () => formOf(CHANNEL_SETTINGS);
export const courierForm = () => formOf(COURIER_SETTINGS);
export const companyForm = () => formOf(COMPANY_SETTINGS);
export const alarmReceiverForm = () => formOf(ALARM_RECEIVER_SETTINGS);
export const alarmReceiverDefaults = () => settingsAfter(ALARM_RECEIVER_SETTINGS, {}, {});
export const endpointForm = () => formOf(ENDPOINT_SETTINGS);
/** Of a new one. */
export const endpointDefaults = () => settingsAfter(ENDPOINT_SETTINGS, {}, {});
