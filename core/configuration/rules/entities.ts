/** Every entity of the configuration, and the panel's accounts, with all fields that are stored. What is absent: `entity.ts`. */
import { type TSchema, Type } from "@sinclair/typebox";
import type {
  SaidMembers,
  SaidOfChannel,
  StoredChannelCourier,
} from "#core/setup/rules/merge-said.ts";
import type {
  Scope,
  SetupCatalogueEntry,
  SetupChannel,
  SetupStatusDetail,
} from "#core/setup/rules/setup.ts";
import type { CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import type { WebhookTarget } from "#core/webhooks/rules/webhook-request.ts";
import { type Entity, entity, type ValuesOf } from "./entity.ts";
import {
  ALARM_RECEIVER_SETTINGS,
  CHANNEL_SETTINGS,
  COMPANY_SETTINGS,
  COURIER_SETTINGS,
  ENDPOINT_SETTINGS,
} from "./settings.ts";

const text = Type.String();
const number = Type.Number();
const flag = Type.Boolean();
const optional = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const list = <T>() => Type.Unsafe<readonly T[]>({ type: "array" });
const optionalRecord = <T>() => Type.Unsafe<T | null>({ type: "object", default: null });
const record = <T extends object>(whenAbsent: T) =>
  Type.Unsafe<T>({ type: "object", default: whenAbsent });
/** Fingerprint of the setup file's entry as last applied; empty where the panel made the entity. */
const fileEntry = text;
/** Service clock, UTC milliseconds; 0 = it is open. */
const closedAtMs = number;

/** A token or signing secret issued by the panel. */
export interface Issued {
  readonly id: string;
  /** Hash of a token, sealed text of a signing secret. */
  readonly value: string;
  readonly createdAtMs: number;
}

export interface OauthClient {
  readonly clientId: string;
  readonly secretHash: string;
}

export interface MtlsBinding {
  readonly subjects: readonly string[];
  readonly fingerprints: readonly string[];
}

export interface StoredEmails {
  readonly managed?: boolean | undefined;
  readonly from?: string | null | undefined;
  readonly statusNotifications?: readonly Status[] | undefined;
}

export interface Disabled {
  /** `failing`: 3 days without success. */
  readonly reason: "manual" | "failing";
  /** UTC milliseconds. */
  readonly sinceMs: number;
  /** The first failure, where failing is the reason. */
  readonly failingSinceMs: number | null;
}

const courier = entity(COURIER_SETTINGS, {
  /** From 1: `courierId` of document 1. */
  number,
  code: text,
  perSecond: number,
  burst: number,
  acceptingEvents: flag,
  /** `acceptingEvents` as a setup file named it last; empty = never. Only a change of it counts. */
  setupAccepting: text,
  tokenHashes: list<string>(),
  /** Sealed. */
  signingSecrets: list<string>(),
  /** Issued by the panel, apart from those of the setup file, whose list a file replaces. */
  panelTokens: list<Issued>(),
  panelSigningSecrets: list<Issued>(),
  /** Token hashes and sealed secrets of the setup file that the panel has revoked. */
  revoked: list<string>(),
  oauth: optionalRecord<OauthClient>(),
  /** Null = no client certificate is asked for. */
  mtls: optionalRecord<MtlsBinding>(),
  catalogue: list<CatalogueEntry>(),
  /** The catalogue as a setup file said it last. Only a change of it counts. */
  setupCatalogue: list<SetupCatalogueEntry>(),
  setupSaid: record<SaidMembers>({}),
  closedAtMs,
});

const channel = entity(CHANNEL_SETTINGS, {
  id: number,
  companyId: number,
  code: text,
  active: flag,
  bucketSize: number,
  refillRate: number,
  couriers: list<StoredChannelCourier>(),
  sender: optionalRecord<NonNullable<SetupChannel["sender"]>>(),
  emails: record<StoredEmails>({}),
  /** `active` as a setup file named it last; empty = never. Only a change of it counts. */
  setupActive: text,
  /** What a setup file has said last of what the panel changes too. Only changes count. */
  setupSaid: record<SaidOfChannel>({}),
  /** The channel whose shadow it is, in test mode; null = it is a live one. */
  testOf: optional(number),
  closedAtMs,
});

const endpoint = entity(ENDPOINT_SETTINGS, {
  id: text,
  channelId: number,
  code: text,
  url: text,
  alertEmail: text,
  active: flag,
  /** Null while it is active, and where an earlier version has disabled it. */
  disabled: optionalRecord<Disabled>(),
  /** Sealed. */
  secret: text,
  /** The secret before the last rotation, which signs until `previousUntilMs`. */
  previousSecret: optional(text),
  previousUntilMs: number,
  createdAtMs: number,
  fileEntry,
  /** Hash of the secret that the setup file's entry gave; empty when it gave none. */
  fileSecretHash: text,
  /** Where its requests went before, oldest first. */
  earlierTargets: list<WebhookTarget>(),
});

const alarmReceiver = entity(ALARM_RECEIVER_SETTINGS, {
  id: text,
  /** `operators`, `company <code>` or `courier <code>`: whose alarms it receives. */
  owner: text,
  /** Unique among those of its owner. */
  code: text,
  /** Sealed, since such URLs are credentials; empty = it has an address for mails. */
  url: text,
  createdAtMs: number,
  fileEntry,
});

const account = entity(
  {},
  {
    id: text,
    /** In small letters; empty = the first admin, who has not said it yet. */
    email: text,
    name: text,
    kind: text,
    role: text,
    /** Of a company's member; else empty. */
    companyCode: text,
    /** Of a courier's member; else empty. */
    courierCode: text,
    active: flag,
    /** Empty = invited, and not here yet. */
    passwordHash: text,
    /** Sealed; empty = none. */
    totpSecret: text,
    /** False: a secret was made, and no code of it has been shown yet. */
    totpActive: flag,
    /** Part of every session's credential: a new number ends them. */
    epoch: number,
    /** Hash of the one-time link that gives the account a password; empty = none. */
    linkHash: text,
    linkUntilMs: number,
    createdAtMs: number,
  },
);

const CATALOGUE = {
  courier,
  company: entity(COMPANY_SETTINGS, {
    id: number,
    code: text,
    setupSaid: record<SaidMembers>({}),
    closedAtMs,
  }),
  box: entity(
    {},
    { companyId: number, code: text, length: number, width: number, height: number, fileEntry },
  ),
  channel,
  apiKey: entity(
    {},
    {
      id: number,
      channelId: number,
      code: text,
      hash: text,
      active: flag,
      companyWideRead: flag,
      scopes: list<Scope>(),
      /** Hash of the key that the panel has revoked, which no setup file brings back; empty = none. */
      revokedHash: text,
      fileEntry,
    },
  ),
  endpoint,
  template: entity(
    {},
    { channelId: number, event: text, language: text, subject: text, body: text, fileEntry },
  ),
  /** The registries that are no list of entities. One record, `all`. */
  registry: entity({}, { platforms: list<string>(), statusDetails: list<SetupStatusDetail>() }),
  account,
  alarmReceiver,
};

export type EntityKind = keyof typeof CATALOGUE;
export type Entities = { [K in EntityKind]: ValuesOf<(typeof CATALOGUE)[K]["fields"]> };
export const ENTITIES: Readonly<Record<EntityKind, Entity>> = CATALOGUE;

export type CourierEntity = Entities["courier"];
export type CompanyEntity = Entities["company"];
export type BoxEntity = Entities["box"];
export type ChannelEntity = Entities["channel"];
export type ApiKeyEntity = Entities["apiKey"];
export type EndpointEntity = Entities["endpoint"];
export type TemplateEntity = Entities["template"];
export type AlarmReceiverEntity = Entities["alarmReceiver"];
/** Somebody who uses the control panel (`accounts.ts`). */
export type AccountEntity = Entities["account"];
