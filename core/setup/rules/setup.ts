/** The setup file: couriers, registries, companies and their channels, receivers of alarms. One schema validates, types and documents it. */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { fileMembers, optionalMembers } from "#core/configuration/rules/entity.ts";
import {
  ALARM_RECEIVER_SETTINGS,
  CHANNEL_SETTINGS,
  COMPANY_SETTINGS,
  COURIER_SETTINGS,
  ENDPOINT_SETTINGS,
} from "#core/configuration/rules/settings.ts";
import { DeliveredTo } from "#core/events/rules/event.ts";
import { referenceText } from "#core/events/rules/reference.ts";
import { naturalKey, OrderInput, withoutNullMembers } from "#core/merchants/rules/order.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nameText } from "#core/platform/schema/name-text.ts";
import {
  countryCode,
  emailAddress,
  emailAddressOrEmpty,
  entityCode,
  mailSender,
  merchantEvent,
} from "#core/platform/schema/text-forms.ts";
import { LANGUAGES } from "#core/shipments/rules/shipment.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import { faultsOfHeaders } from "#core/webhooks/rules/custom-headers.ts";
import { faultOfWebhookUrl, WEBHOOK_V1_PROTOCOLS } from "#core/webhooks/rules/webhook-url.ts";

/** Document 3, "Limits"; disabled ones count. */
export const ENDPOINTS_PER_CHANNEL = limit(
  5,
  "endpoints of a channel, disabled ones included",
  "an error of the setup file; 409 in the panel",
);

const strict = { additionalProperties: false } as const;
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const code = entityCode;
const text = Type.String({ minLength: 1, maxLength: 255 });
const language = Type.Union(LANGUAGES.map((name) => Type.Literal(name)));
const postcode = Type.String({ minLength: 1, maxLength: 16 });
/** At least eight characters, in a form that counts whole ones with and without the flag `u`. */
const secret = Type.String({
  maxLength: 255,
  pattern: "^(?:[^\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]){8,}$",
  description: "at least 8 characters",
});
/** Couriers' tokens come from existing contracts: any non-empty text. */
const token = Type.String({ minLength: 1, maxLength: 255 });

export const CATALOGUE_LIMIT = limit(
  5_000,
  "codes of a courier's catalogue",
  "an error of the setup file; 409 in the panel",
);
export const RULES_PER_CODE = limit(
  50,
  "rules of a code",
  "an error of the setup file; 422 in the panel",
);
/** Document 2, "Status mapping": a code has at most 64 characters. */
export const STATUS_CODE_LENGTH = 64;

export const SetupMappingRule = Type.Object(
  {
    reasonCode: optional(Type.String({ minLength: 1, maxLength: 64 })),
    isReturn: optional(Type.Boolean({ description: "an event that does not say so is no return" })),
    deliveredTo: optional(DeliveredTo),
    status: StatusSchema,
    statusDetail: optional(Type.Integer({ minimum: 0 })),
    terminal: optional(Type.Boolean({ description: "absent = as the entry says" })),
  },
  { ...strict, description: "met when all of its conditions are; it has one at least" },
);
export type SetupMappingRule = Static<typeof SetupMappingRule>;

export const SetupCatalogueEntry = Type.Object(
  {
    code: Type.String({ minLength: 1, maxLength: STATUS_CODE_LENGTH }),
    description: optional(Type.String({ maxLength: 500, description: "default empty" })),
    terminal: optional(Type.Boolean({ description: "default false" })),
    status: optional(StatusSchema),
    statusDetail: optional(Type.Integer({ minimum: 0 })),
    rules: optional(
      Type.Array(SetupMappingRule, {
        maxItems: RULES_PER_CODE,
        description: "narrower mappings: the first one met wins, else the entry's own",
      }),
    ),
  },
  strict,
);
export type SetupCatalogueEntry = Static<typeof SetupCatalogueEntry>;

/** SHA-256 of a certificate in hex, with or without colons. */
const fingerprint = Type.String({
  pattern: "^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$",
  description: "64 hexadecimal digits, in pairs with or without colons",
});
/** A distinguished name such as `CN=push.gls.example,O=GLS,C=IT`; the order of its parts does not count. */
const subject = Type.String({
  maxLength: 500,
  pattern: "[^=]=.",
  description: "a distinguished name such as CN=push.gls.example,O=GLS,C=IT",
});
/** More than one during a change of certificates. */
const oneOrMore = <T extends TSchema>(schema: T) =>
  Type.Union([schema, Type.Array(schema, { minItems: 1, maxItems: 10 })]);

export const SetupCourier = Type.Object(
  {
    code,
    ...fileMembers(COURIER_SETTINGS),
    acceptingEvents: optional(Type.Boolean()),
    tokens: Type.Union([
      Type.Array(token, { minItems: 1, maxItems: 10 }),
      Type.Literal("generated", {
        description: "those that it has; a new courier gets one, which is shown once",
      }),
    ]),
    signingSecrets: optional(Type.Array(token, { maxItems: 10 })),
    /** OAuth 2.0 client credentials, beside the tokens; null switches them off. */
    oauth: optional(
      Type.Union([
        Type.Object({ clientId: text, clientSecret: optional(secret) }, strict),
        Type.Null(),
      ]),
    ),
    /** Client certificates one of which every request must come with; null switches it off. */
    mtls: optional(
      Type.Union([
        Type.Object(
          { subject: optional(oneOrMore(subject)), fingerprint: optional(oneOrMore(fingerprint)) },
          { ...strict, minProperties: 1 },
        ),
        Type.Null(),
      ]),
    ),
    rateLimit: optional(
      Type.Object(
        {
          perSecond: optional(Type.Number({ exclusiveMinimum: 0, maximum: 100_000 })),
          burst: optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
        },
        strict,
      ),
    ),
    stockReleaseNeedsDate: optional(
      Type.Boolean({ description: "deprecated: true means stockReleaseDate required" }),
    ),
    catalogue: optional(Type.Array(SetupCatalogueEntry, { maxItems: CATALOGUE_LIMIT })),
  },
  strict,
);

/** Of a courier whose tokens a file leaves to Waybill: none. */
export function tokensGiven({ tokens = [] }: Remaining<SetupCourier>): readonly string[] {
  return typeof tokens === "string" ? [] : tokens;
}

export const SetupStatusDetail = Type.Object(
  {
    id: Type.Integer({ minimum: 1 }),
    status: optional(StatusSchema),
    heldInDepot: optional(Type.Boolean()),
    /** By language. */
    description: optional(
      Type.Record(
        Type.String({ pattern: `^(${LANGUAGES.join("|")})$`, description: "a language code" }),
        Type.String({ maxLength: 255 }),
        strict,
      ),
    ),
  },
  strict,
);

export const AlertEmail = emailAddress;

/** Of keys and webhooks. */
const mode = Type.Union([Type.Literal("live"), Type.Literal("test")], {
  description: "test: of the channel's shadow, whose parcels live scripted lives; default live",
});

export const SetupWebhook = Type.Object(
  {
    code,
    mode: optional(mode),
    url: Type.String({ minLength: 1 }),
    alertEmail: AlertEmail,
    ...optionalMembers(ENDPOINT_SETTINGS),
    secret: optional(
      Type.String({
        pattern: "^whsec_[0-9a-f]{64}$",
        description: "whsec_ and 64 hexadecimal digits in small letters",
      }),
    ),
    revokePrevious: optional(
      Type.Boolean({
        description:
          "a new secret takes effect even while one of an earlier rotation still signs, and ends that one",
      }),
    ),
  },
  strict,
);

/** Settings of a file that is taken whole and that nothing reads yet. */
export function settingsWithoutEffect(file: SetupFile): readonly string[] {
  const webhooks = (file.companies ?? []).flatMap(({ channels = [] }) =>
    channels.flatMap((channel) => channel.webhooks ?? []),
  );
  return (["maxConcurrency", "maxPerSecond"] as const).filter((name) =>
    webhooks.some((webhook) => (webhook[name] ?? null) !== null),
  );
}

export const BOXES_PER_COMPANY = limit(
  10_000,
  "boxes of a company",
  "409 in the panel; an error of the setup file",
);
export const TEMPLATES_PER_CHANNEL = limit(
  1_000,
  "mail templates of a channel",
  "409 in the panel; an error of the setup file",
);
export const COURIERS_PER_CHANNEL = limit(1_000, "couriers of a channel", "409 in the panel");
/** Merchant's names of a courier, and its accounts there. */
const NAMES_PER_COURIER = 100;

export const SetupBox = Type.Object(
  {
    code,
    length: Type.Number({ exclusiveMinimum: 0 }),
    width: Type.Number({ exclusiveMinimum: 0 }),
    height: Type.Number({ exclusiveMinimum: 0 }),
  },
  strict,
);

export const SetupSender = Type.Object({
  code: optional(text),
  businessName: optional(text),
  street: optional(text),
  city: optional(text),
  state: optional(text),
  postcode: optional(postcode),
  country: optional(countryCode),
  email: optional(emailAddressOrEmpty),
  phone: optional(text),
  referent: optional(text),
});

export const SetupTemplate = Type.Object(
  {
    event: merchantEvent,
    language,
    subject: Type.String({ maxLength: 998 }),
    body: Type.String({ maxLength: 100_000 }),
  },
  strict,
);

/** Of the request budget (document 1, "Limits"). */
const budget = Type.Integer({ minimum: 1, maximum: 10_000_000 });
export const SetupRateLimit = Type.Object(
  { bucketSize: optional(budget), refillRate: optional(budget) },
  strict,
);

export const SetupChannelCourier = Type.Object(
  {
    code,
    transcodings: optional(Type.Array(text, { maxItems: NAMES_PER_COURIER })),
    senderAccounts: optional(Type.Array(referenceText(64), { maxItems: NAMES_PER_COURIER })),
    shippingEnabled: optional(Type.Boolean()),
    labelFormat: optional(Type.Union([Type.Literal("PDF"), Type.Literal("ZPL")])),
    errorLabel: optional(Type.Boolean()),
  },
  strict,
);
export type SetupChannelCourier = Static<typeof SetupChannelCourier>;

/** Sandbox rows belong to their own resource; the setup file carries them in its shape. */
const SandboxRow = Type.Object(
  {
    id: Type.Integer({ minimum: 1 }),
    stringValue: optional(Type.String()),
    intValue: optional(Type.Integer()),
    boolValue: optional(Type.Boolean()),
    floatValue: optional(Type.Number()),
    dateTimeValue: optional(Type.Union([Type.Null(), Type.String({ format: "offset-date-time" })])),
  },
  strict,
);

export const SCOPES = [
  "parcels:create",
  "parcels:read",
  "parcels:update",
  "parcels:delete",
  "sandbox:read",
  "sandbox:write",
  "orders:read",
  "orders:write",
  "labels:read",
  "labels:write",
  "jobs:read",
  "shipments:create",
  "shipments:read",
  "shipments:write",
  "delivery-times:read",
  "efficiency-index:read",
] as const;
export type Scope = (typeof SCOPES)[number];

export const SetupChannel = Type.Object(
  {
    code,
    ...fileMembers(CHANNEL_SETTINGS),
    active: optional(Type.Boolean()),
    rateLimit: optional(SetupRateLimit),
    apiKeys: optional(
      Type.Array(
        Type.Object(
          {
            code,
            mode: optional(mode),
            key: optional(secret),
            active: optional(Type.Boolean()),
            companyWideRead: optional(Type.Boolean()),
            scopes: optional(Type.Array(Type.Union(SCOPES.map((name) => Type.Literal(name))))),
          },
          strict,
        ),
        { maxItems: 100 },
      ),
    ),
    couriers: optional(Type.Array(SetupChannelCourier)),
    sender: optional(SetupSender),
    emails: optional(
      Type.Object(
        {
          managed: optional(Type.Boolean()),
          from: optional(mailSender),
          templates: optional(Type.Array(SetupTemplate, { maxItems: TEMPLATES_PER_CHANNEL })),
          statusNotifications: optional(Type.Array(StatusSchema)),
        },
        strict,
      ),
    ),
    webhooks: optional(Type.Array(SetupWebhook, { maxItems: ENDPOINTS_PER_CHANNEL })),
    orders: optional(Type.Array({ ...OrderInput, nullIsAbsent: true })),
    sandbox: optional(Type.Array(SandboxRow)),
  },
  strict,
);

export const SetupCompany = Type.Object(
  {
    code,
    ...fileMembers(COMPANY_SETTINGS),
    boxes: optional(Type.Array(SetupBox, { maxItems: BOXES_PER_COMPANY })),
    channels: optional(Type.Array(SetupChannel)),
  },
  strict,
);

export const SetupAlarmReceiver = Type.Object(
  {
    code,
    company: optional(code),
    courier: optional(code),
    url: optional(
      Type.String({
        minLength: 1,
        description:
          "https:// address of a webhook of Slack or a compatible service, in place of email; kept encrypted",
      }),
    ),
    ...optionalMembers(ALARM_RECEIVER_SETTINGS),
  },
  {
    ...strict,
    description: "it receives the alarms of that company or courier, else those of the operators",
  },
);
export type SetupAlarmReceiver = Static<typeof SetupAlarmReceiver>;

export const SetupFile = Type.Object(
  {
    $schema: optional(Type.String()),
    couriers: optional(Type.Array(SetupCourier)),
    platforms: optional(Type.Array(nameText(50))),
    statusDetails: optional(Type.Array(SetupStatusDetail)),
    companies: optional(Type.Array(SetupCompany)),
    alarmReceivers: optional(Type.Array(SetupAlarmReceiver)),
  },
  { ...strict, title: "Waybill setup file" },
);
export type SetupFile = Static<typeof SetupFile>;
export type SetupCourier = Static<typeof SetupCourier>;
export type SetupCompany = Static<typeof SetupCompany>;
export type SetupChannel = Static<typeof SetupChannel>;
export type SetupWebhook = Static<typeof SetupWebhook>;
export type SetupStatusDetail = Static<typeof SetupStatusDetail>;
export type SetupApiKey = NonNullable<SetupChannel["apiKeys"]>[number];

const SETUP_FAULTS_LISTED = limit(200, "errors listed of a setup file", "the rest is not listed");

export const setupSchema = compileSchema(SetupFile);

/** Null members of orders count as absent; whatever has another shape is left to the check. */
export function withoutOrderNulls(value: unknown): unknown {
  if (!isRecord(value)) return value;
  return mapList(value, "companies", (company) =>
    mapList(company, "channels", (channel) => mapList(channel, "orders", withoutNullMembers)),
  );
}

type Members = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function mapList(owner: Members, name: string, change: (item: Members) => Members): Members {
  const list = owner[name];
  if (!Array.isArray(list)) return owner;
  return { ...owner, [name]: list.map((item) => (isRecord(item) ? change(item) : item)) };
}

/** A file of which faulty parts have been cut out: any member may be missing, required ones too. */
export type Remaining<T> = T extends readonly (infer Item)[]
  ? readonly Remaining<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]?: Remaining<T[Name]> | undefined }
    : T;

/** Every fault of a setup file with its JSON path; empty when it can be applied. */
export function checkSetup(value: unknown): Fault[] {
  const faults = setupSchema.check(value)
    ? []
    : listFaults(setupSchema.errors(value), SETUP_FAULTS_LISTED);
  const file = wellFormedPart(value, faults);
  return file === null ? faults : [...faults, ...checkNames(file)];
}

/**
 * A file without the members and list items that are faulty, so that the rest can be judged too. Items leave holes in their
 * lists, so that the paths of the others do not move. Null where nothing can be judged: the file is no object, or it has
 * more faults than are listed.
 */
export function wellFormedPart(
  value: unknown,
  faults: readonly Fault[],
): Remaining<SetupFile> | null {
  if (faults.length >= SETUP_FAULTS_LISTED || faults.some(({ path }) => path === "")) return null;
  const file = structuredClone(value) as Remaining<SetupFile>;
  for (const { path, code } of faults) {
    // A list of the wrong length holds what it should.
    if (code !== "TOO_MANY" && code !== "TOO_FEW") cutOut(file, path.match(/[^.[\]]+/g) ?? []);
  }
  return file;
}

/** Lists whose items mean nothing without one of their members: a rule without its condition would be met by everything. */
const CHECKED_WHOLE = new Set(["catalogue", "rules"]);

/** Deletes the last thing on a path; of an item that is judged whole the innermost list item. */
function cutOut(file: object, path: readonly string[]): void {
  let at: unknown = file;
  let isWhole = false;
  let cut: { readonly from: object; readonly key: string } | null = null;
  for (const [depth, key] of path.entries()) {
    if (typeof at !== "object" || at === null) break;
    const isList = Array.isArray(at);
    if (isList) isWhole = CHECKED_WHOLE.has(path[depth - 1] ?? "");
    if (isList || !isWhole) cut = { from: at, key };
    at = (at as Record<string, unknown>)[key];
  }
  if (cut) delete (cut.from as Record<string, unknown>)[cut.key];
}

function checkNames(value: Remaining<SetupFile>): Fault[] {
  return [
    ...repeated("couriers", value.couriers, ({ code: name }) => name),
    ...repeated("platforms", value.platforms, (name) => name),
    ...repeated("statusDetails", value.statusDetails, ({ id }) => id?.toString()),
    ...repeated("companies", value.companies, ({ code: name }) => name),
    ...repeatedTokens(value.couriers ?? []),
    ...repeatedClients(value.couriers ?? []),
    ...(value.couriers ?? []).flatMap(checkCatalogue),
    ...(value.companies ?? []).flatMap((company, at) => checkCompany(company, `companies[${at}]`)),
    ...repeatedChannels(value.companies ?? []),
    ...repeated(
      "alarmReceivers",
      value.alarmReceivers,
      (one) => one.code && `${ownerOfReceiver(one)}:${one.code}`,
    ),
    ...(value.alarmReceivers ?? []).flatMap((one, at) =>
      checkReceiver(one, `alarmReceivers[${at}]`),
    ),
  ];
}

/** As in the audit log. */
export function ownerOfReceiver({ company, courier }: Remaining<SetupAlarmReceiver>): string {
  if (company !== undefined) return `company ${company}`;
  return courier === undefined ? "operators" : `courier ${courier}`;
}

function checkReceiver(receiver: Remaining<SetupAlarmReceiver>, path: string): Fault[] {
  const { company, courier, url, email = "" } = receiver;
  return [
    ...(company !== undefined && courier !== undefined
      ? [clash(`${path}.courier`, "It receives the alarms of one company or courier.")]
      : []),
    ...(url !== undefined && email !== ""
      ? [clash(`${path}.url`, "It has an e-mail address or a URL, not both.")]
      : []),
    ...checkUrl(url, `${path}.url`),
  ];
}

function repeated<T>(
  path: string,
  items: readonly T[] | undefined,
  key: (item: T) => string | undefined,
): Fault[] {
  const seen = new Set<string>();
  return (items ?? []).flatMap((item, at) => {
    const name = key(item);
    if (name === undefined) return [];
    if (seen.has(name)) return [clash(`${path}[${at}]`, `"${name}" appears twice.`)];
    seen.add(name);
    return [];
  });
}

function clash(path: string, message: string): Fault {
  return { path, code: "NOT_ALLOWED", message };
}

/** Merchants name couriers by them in any case: one text must mean one courier of the channel. */
function repeatedTranscodings(channel: Remaining<SetupChannel>, path: string): Fault[] {
  const all = (channel.couriers ?? []).flatMap(({ transcodings = [] }, at) =>
    transcodings.map((text, index) => ({
      value: text.toLowerCase(),
      path: `${path}.couriers[${at}].transcodings[${index}]`,
    })),
  );
  return sharedTexts(all, "A transcoding means one courier.");
}

function checkCatalogue(courier: Remaining<SetupCourier>, at: number): Fault[] {
  const path = `couriers[${at}].catalogue`;
  const orphaned = (courier.catalogue ?? []).flatMap((entry, index) =>
    entry.status === undefined && entry.statusDetail !== undefined
      ? [clash(`${path}[${index}].statusDetail`, "A detail needs a status.")]
      : [],
  );
  const rules = (courier.catalogue ?? []).flatMap((entry, index) =>
    checkRules(entry.rules ?? [], `${path}[${index}].rules`),
  );
  return [...repeated(path, courier.catalogue, ({ code: name }) => name), ...orphaned, ...rules];
}

/** A rule without a condition, or with those of an earlier one, could never take effect. */
export function checkRules(rules: readonly Remaining<SetupMappingRule>[], path: string): Fault[] {
  const seen = new Set<string>();
  return rules.flatMap(({ reasonCode, isReturn, deliveredTo }, at) => {
    const conditions = [reasonCode, isReturn, deliveredTo];
    if (conditions.every((one) => one === undefined)) {
      return [clash(`${path}[${at}]`, "A rule needs a reasonCode, isReturn or deliveredTo.")];
    }
    const text = JSON.stringify(conditions);
    if (seen.has(text)) return [clash(`${path}[${at}]`, "An earlier rule has these conditions.")];
    seen.add(text);
    return [];
  });
}

function repeatedTokens(couriers: readonly Remaining<SetupCourier>[]): Fault[] {
  const all = couriers.flatMap((courier, at) =>
    tokensGiven(courier).map((value, index) => ({
      value,
      path: `couriers[${at}].tokens[${index}]`,
    })),
  );
  return sharedTexts(all, "A token identifies one courier.");
}

function repeatedClients(couriers: readonly Remaining<SetupCourier>[]): Fault[] {
  const all = couriers.flatMap(({ oauth }, at) =>
    oauth?.clientId !== undefined
      ? [{ value: oauth.clientId, path: `couriers[${at}].oauth.clientId` }]
      : [],
  );
  return sharedTexts(all, "A client id identifies one courier.");
}

function sharedTexts(all: ReadonlyArray<{ value: string; path: string }>, why: string): Fault[] {
  const seen = new Set<string>();
  return all.flatMap(({ value, path }) => {
    if (seen.has(value)) return [clash(path, `${why} It is in the file twice.`)];
    seen.add(value);
    return [];
  });
}

function repeatedChannels(companies: readonly Remaining<SetupCompany>[]): Fault[] {
  const channels = companies.flatMap(({ channels: own }, at) =>
    (own ?? []).map((channel, index) => ({ channel, path: `companies[${at}].channels[${index}]` })),
  );
  const codes = channels.flatMap(({ channel, path }) =>
    channel.code === undefined ? [] : [{ value: channel.code, path: `${path}.code` }],
  );
  const keys = channels.flatMap(({ channel, path }) =>
    (channel.apiKeys ?? []).flatMap(({ key }, index) =>
      key === undefined ? [] : [{ value: key, path: `${path}.apiKeys[${index}].key` }],
    ),
  );
  return [
    ...sharedTexts(codes, "A channel code is unique across companies."),
    ...sharedTexts(keys, "An API key identifies one channel."),
  ];
}

function checkUrl(url: string | undefined, path: string, protocols?: readonly string[]): Fault[] {
  const message = url === undefined ? null : faultOfWebhookUrl(url, protocols);
  return message === null ? [] : [{ path, code: "BAD_FORMAT", message }];
}

function checkCompany(company: Remaining<SetupCompany>, path: string): Fault[] {
  return [
    ...repeated(`${path}.boxes`, company.boxes, ({ code: name }) => name),
    ...(company.channels ?? []).flatMap((channel, position) => {
      const here = `${path}.channels[${position}]`;
      return [
        ...repeated(`${here}.apiKeys`, channel.apiKeys, ({ code: name }) => name),
        ...repeated(`${here}.couriers`, channel.couriers, ({ code: name }) => name),
        ...repeatedTranscodings(channel, here),
        ...repeated(`${here}.webhooks`, channel.webhooks, ({ code: name }) => name),
        ...repeated(`${here}.orders`, channel.orders, ({ source, reference }) =>
          source !== undefined && reference !== undefined
            ? naturalKey(source, reference)
            : undefined,
        ),
        ...checkUrl(channel.webhookV1?.url, `${here}.webhookV1.url`, WEBHOOK_V1_PROTOCOLS),
        ...(channel.webhooks ?? []).flatMap(({ url, headers }, index) => [
          ...checkUrl(url, `${here}.webhooks[${index}].url`),
          ...faultsOfHeaders(headers).map((fault) => ({
            ...fault,
            path: `${here}.webhooks[${index}].${fault.path}`,
          })),
        ]),
        ...repeated(`${here}.sandbox`, channel.sandbox, ({ id }) => id?.toString()),
        ...repeated(
          `${here}.emails.templates`,
          channel.emails?.templates,
          (template) =>
            template.event && template.language && `${template.event}|${template.language}`,
        ),
      ];
    }),
  ];
}
