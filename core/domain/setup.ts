/** The setup file: couriers, registries, companies and their channels. One schema validates, types and documents it. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { type Fault, listFaults } from "./fault.ts";
import { LANGUAGES } from "./shipment.ts";
import { StatusSchema } from "./status.ts";
import { TriggerSchema } from "./trigger.ts";
import { faultOfWebhookUrl } from "./webhook-url.ts";

/** Document 3, "Limits"; disabled ones count. */
export const ENDPOINTS_PER_CHANNEL = 5;

const strict = { additionalProperties: false } as const;
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const code = Type.String({ minLength: 1, maxLength: 50, pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$" });
const text = Type.String({ minLength: 1, maxLength: 255 });
const language = Type.Union(LANGUAGES.map((name) => Type.Literal(name)));
const postcode = Type.String({ minLength: 1, maxLength: 16 });
const secret = Type.String({ minLength: 8, maxLength: 255 });
/** Couriers' tokens come from existing contracts: any non-empty text. */
const token = Type.String({ minLength: 1, maxLength: 255 });

export const SetupCatalogueEntry = Type.Object(
  {
    code: Type.String({ minLength: 1, maxLength: 64 }),
    description: Type.String({ maxLength: 500 }),
    terminal: Type.Boolean(),
    status: optional(StatusSchema),
    statusDetail: optional(Type.Integer({ minimum: 0 })),
  },
  strict,
);

export const SetupCourier = Type.Object(
  {
    code,
    name: optional(text),
    environment: optional(text),
    acceptingEvents: optional(Type.Boolean()),
    tokens: Type.Array(token, { minItems: 1, maxItems: 10 }),
    signingSecrets: optional(Type.Array(token, { maxItems: 10 })),
    signatureRequired: optional(Type.Boolean()),
    allowedIps: optional(Type.Array(text, { maxItems: 1_000 })),
    rateLimit: optional(
      Type.Object(
        {
          perSecond: Type.Number({ exclusiveMinimum: 0, maximum: 100_000 }),
          burst: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
        },
        strict,
      ),
    ),
    stockRelease: optional(
      Type.Union([Type.Literal("none"), Type.Literal("sync"), Type.Literal("deferred")]),
    ),
    stockReleaseNeedsDate: optional(Type.Boolean()),
    catalogue: optional(Type.Array(SetupCatalogueEntry, { maxItems: 5_000 })),
  },
  strict,
);

export const SetupStatusDetail = Type.Object(
  {
    id: Type.Integer({ minimum: 1 }),
    status: optional(StatusSchema),
    heldInDepot: optional(Type.Boolean()),
    /** By language. */
    description: Type.Record(
      Type.String({ pattern: `^(${LANGUAGES.join("|")})$` }),
      Type.String({ maxLength: 255 }),
      strict,
    ),
  },
  strict,
);

export const SetupWebhook = Type.Object(
  {
    code,
    url: Type.String({ minLength: 1 }),
    trigger: optional(TriggerSchema),
    statuses: optional(Type.Array(StatusSchema)),
    include: optional(Type.Array(Type.Literal("consignee"))),
    alertEmail: Type.String({ maxLength: 255, pattern: "^[^\\s@]+@[^\\s@]+$" }),
    secret: optional(Type.String({ pattern: "^whsec_[0-9a-f]{64}$" })),
  },
  strict,
);

const Box = Type.Object(
  {
    code,
    length: Type.Number({ exclusiveMinimum: 0 }),
    width: Type.Number({ exclusiveMinimum: 0 }),
    height: Type.Number({ exclusiveMinimum: 0 }),
  },
  strict,
);

const Sender = Type.Object({
  code: optional(text),
  businessName: optional(text),
  street: optional(text),
  city: optional(text),
  state: optional(text),
  postcode: optional(postcode),
  country: optional(Type.String({ pattern: "^[A-Z]{2}$" })),
  email: optional(text),
  phone: optional(text),
  referent: optional(text),
});

const Template = Type.Object(
  {
    event: Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{1,24}$" }),
    language,
    subject: Type.String({ maxLength: 998 }),
    body: Type.String({ maxLength: 100_000 }),
  },
  strict,
);

/** Orders and sandbox rows belong to their own resources; the setup file carries them in those resources' shapes. */
const Order = Type.Object({
  source: Type.String({ minLength: 1, maxLength: 50 }),
  reference: Type.String({ minLength: 1, maxLength: 50 }),
  orderId: optional(text),
  createdAt: optional(Type.String({ format: "offset-date-time" })),
  consignee: optional(Type.Object({})),
  parcels: optional(Type.Array(Type.Object({}))),
  items: optional(Type.Array(Type.Object({}))),
});

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
    name: optional(text),
    active: optional(Type.Boolean()),
    language: optional(language),
    rateLimit: optional(
      Type.Object(
        {
          bucketSize: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
          refillRate: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
        },
        strict,
      ),
    ),
    trackingPage: optional(Type.Boolean()),
    addressCheck: optional(Type.Boolean()),
    apiKeys: optional(
      Type.Array(
        Type.Object(
          {
            code,
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
    couriers: optional(
      Type.Array(
        Type.Object(
          {
            code,
            transcodings: optional(Type.Array(text, { maxItems: 100 })),
            senderAccounts: optional(
              Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 100 }),
            ),
            shippingEnabled: optional(Type.Boolean()),
            labelFormat: optional(Type.Union([Type.Literal("PDF"), Type.Literal("ZPL")])),
            errorLabel: optional(Type.Boolean()),
          },
          strict,
        ),
      ),
    ),
    sender: optional(Sender),
    emails: optional(
      Type.Object(
        {
          managed: optional(Type.Boolean()),
          from: optional(text),
          templates: optional(Type.Array(Template, { maxItems: 1_000 })),
          statusNotifications: optional(Type.Array(StatusSchema)),
        },
        strict,
      ),
    ),
    webhooks: optional(Type.Array(SetupWebhook, { maxItems: ENDPOINTS_PER_CHANNEL })),
    webhookV1: optional(
      Type.Object({ url: Type.String({ minLength: 1 }), acknowledgement: Type.String() }, strict),
    ),
    orders: optional(Type.Array(Order)),
    sandbox: optional(Type.Array(SandboxRow)),
  },
  strict,
);

export const SetupCompany = Type.Object(
  {
    code,
    name: optional(text),
    language: optional(language),
    seatPostcode: optional(postcode),
    products: optional(
      Type.Array(Type.Union([Type.Literal("api-parcels"), Type.Literal("checkAddress")])),
    ),
    boxes: optional(Type.Array(Box, { maxItems: 10_000 })),
    channels: optional(Type.Array(SetupChannel)),
  },
  strict,
);

export const SetupFile = Type.Object(
  {
    $schema: optional(Type.String()),
    couriers: optional(Type.Array(SetupCourier)),
    platforms: optional(Type.Array(Type.String({ minLength: 1, maxLength: 50 }))),
    statusDetails: optional(Type.Array(SetupStatusDetail)),
    companies: optional(Type.Array(SetupCompany)),
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

/** Faults listed for one setup file. */
const SETUP_FAULTS_LISTED = 200;

const checker = TypeCompiler.Compile(SetupFile);

/** Every fault of a setup file with its JSON path; empty when it can be applied. */
export function checkSetup(value: unknown): Fault[] {
  if (!checker.Check(value)) return listFaults(checker.Errors(value), SETUP_FAULTS_LISTED);
  return [
    ...repeated("couriers", value.couriers, ({ code: name }) => name),
    ...repeated("platforms", value.platforms, (name) => name),
    ...repeated("statusDetails", value.statusDetails, ({ id }) => String(id)),
    ...repeated("companies", value.companies, ({ code: name }) => name),
    ...repeatedTokens(value.couriers ?? []),
    ...(value.couriers ?? []).flatMap(checkCatalogue),
    ...(value.companies ?? []).flatMap((company, at) => checkCompany(company, `companies[${at}]`)),
    ...repeatedChannels(value.companies ?? []),
  ];
}

function repeated<T>(
  path: string,
  items: readonly T[] | undefined,
  key: (item: T) => string,
): Fault[] {
  const seen = new Set<string>();
  return (items ?? []).flatMap((item, at) => {
    const name = key(item);
    if (seen.has(name)) return [clash(`${path}[${at}]`, `"${name}" stands here twice.`)];
    seen.add(name);
    return [];
  });
}

function clash(path: string, message: string): Fault {
  return { path, code: "NOT_ALLOWED", message };
}

function checkCatalogue(courier: SetupCourier, at: number): Fault[] {
  const path = `couriers[${at}].catalogue`;
  const orphaned = (courier.catalogue ?? []).flatMap((entry, index) =>
    entry.status === undefined && entry.statusDetail !== undefined
      ? [clash(`${path}[${index}].statusDetail`, "A detail needs a status.")]
      : [],
  );
  return [...repeated(path, courier.catalogue, ({ code: name }) => name), ...orphaned];
}

function repeatedTokens(couriers: readonly SetupCourier[]): Fault[] {
  const all = couriers.flatMap(({ tokens }, at) =>
    tokens.map((value, index) => ({ value, path: `couriers[${at}].tokens[${index}]` })),
  );
  return sharedSecrets(all, "A token identifies one courier.");
}

function sharedSecrets(all: ReadonlyArray<{ value: string; path: string }>, why: string): Fault[] {
  const seen = new Set<string>();
  return all.flatMap(({ value, path }) => {
    if (seen.has(value)) return [clash(path, `${why} This one stands in the file twice.`)];
    seen.add(value);
    return [];
  });
}

function repeatedChannels(companies: readonly SetupCompany[]): Fault[] {
  const channels = companies.flatMap(({ channels: own }, at) =>
    (own ?? []).map((channel, index) => ({ channel, path: `companies[${at}].channels[${index}]` })),
  );
  const codes = channels.map(({ channel, path }) => ({
    value: channel.code,
    path: `${path}.code`,
  }));
  const keys = channels.flatMap(({ channel, path }) =>
    (channel.apiKeys ?? []).flatMap(({ key }, index) =>
      key === undefined ? [] : [{ value: key, path: `${path}.apiKeys[${index}].key` }],
    ),
  );
  return [
    ...sharedSecrets(codes, "A channel code is unique across companies."),
    ...sharedSecrets(keys, "An API key identifies one channel."),
  ];
}

function checkCompany(company: SetupCompany, path: string): Fault[] {
  return [
    ...repeated(`${path}.boxes`, company.boxes, ({ code: name }) => name),
    ...(company.channels ?? []).flatMap((channel, position) => {
      const here = `${path}.channels[${position}]`;
      return [
        ...repeated(`${here}.apiKeys`, channel.apiKeys, ({ code: name }) => name),
        ...repeated(`${here}.couriers`, channel.couriers, ({ code: name }) => name),
        ...repeated(`${here}.webhooks`, channel.webhooks, ({ code: name }) => name),
        ...repeated(
          `${here}.orders`,
          channel.orders,
          (order) => `${order.source}|${order.reference}`,
        ),
        ...(channel.webhooks ?? []).flatMap(({ url }, index) => {
          const message = faultOfWebhookUrl(url);
          const at = `${here}.webhooks[${index}].url`;
          return message === null ? [] : [{ path: at, code: "BAD_FORMAT" as const, message }];
        }),
        ...repeated(`${here}.sandbox`, channel.sandbox, ({ id }) => String(id)),
        ...repeated(
          `${here}.emails.templates`,
          channel.emails?.templates,
          (template) => `${template.event}|${template.language}`,
        ),
      ];
    }),
  ];
}
