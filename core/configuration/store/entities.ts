/**
 * Configuration entities and accounts, mapped by redis-om as hashes. A save replaces the whole entity, so they are written only
 * under the setup lock, accounts under a lock of their own (`setup-lock.ts`). Lists and records are kept as JSON text: redis-om joins string lists by
 * `|` and would split values that contain one.
 */
import { EntityId, Repository, Schema } from "redis-om";
import type { Redis } from "#core/platform/redis/client.ts";
import { announceLeftOver, expectSetupLock, markUnannounced } from "./setup-lock.ts";

interface Kind {
  readonly name: string;
  readonly schema: Schema;
}

type FieldType = "string" | "number" | "boolean";

function kind(name: string, fields: Record<string, FieldType>): Kind {
  const definition = Object.fromEntries(
    Object.entries(fields).map(([field, type]) => [field, { type }]),
  );
  return { name, schema: new Schema(`config:${name}`, definition, { dataStructure: "HASH" }) };
}

export interface CourierEntity {
  readonly number: number;
  readonly code: string;
  readonly name: string;
  readonly environment: string;
  readonly acceptingEvents: boolean;
  readonly tokenHashes: string;
  readonly signingSecrets: string;
  readonly signatureRequired: boolean;
  readonly allowedIps: string;
  readonly perSecond: number;
  readonly burst: number;
  readonly stockRelease: string;
  readonly stockReleaseDate: string;
  /** Empty = none. */
  readonly stockReleaseUrl: string;
  readonly catalogue: string;
  /** The catalogue as a setup file said it last; empty = never. Only a change of it counts. */
  readonly setupCatalogue: string;
  /** `{clientId, secretHash}`; empty = no OAuth. */
  readonly oauth: string;
  /** `{subjects, fingerprints}`; empty = no client certificate is asked for. */
  readonly mtls: string;
  /** Issued by the panel, apart from those of the setup file, whose list a file replaces; empty = none. */
  readonly panelTokens: string;
  readonly panelSigningSecrets: string;
  /** Token hashes and sealed secrets of the setup file that the panel has revoked; empty = none. */
  readonly revoked: string;
  /** `acceptingEvents` as a setup file named it last; empty = never. Only a change of it counts. */
  readonly setupAccepting: string;
}

export interface CompanyEntity {
  readonly id: number;
  readonly code: string;
  readonly name: string;
  readonly language: string;
  readonly seatPostcode: string;
  readonly products: string;
}

export interface BoxEntity {
  readonly companyId: number;
  readonly code: string;
  readonly length: number;
  readonly width: number;
  readonly height: number;
  /** Fingerprint of the setup file's entry as last applied; absent when the panel made the box. */
  readonly fileEntry?: string;
}

export interface ChannelEntity {
  readonly id: number;
  readonly companyId: number;
  readonly code: string;
  readonly name: string;
  readonly active: boolean;
  readonly language: string;
  readonly bucketSize: number;
  readonly refillRate: number;
  readonly trackingPage: boolean;
  readonly addressCheck: boolean;
  readonly couriers: string;
  readonly sender: string;
  readonly emails: string;
  readonly webhookV1: string;
  /** `active` as a setup file named it last; empty = never. Only a change of it counts. */
  readonly setupActive: string;
  /** What a setup file has said last of what the panel changes too (JSON of `SaidOfChannel`); empty = nothing. Only changes count. */
  readonly setupSaid: string;
  /** The channel whose shadow it is, in test mode; absent or 0 = it is a live one. */
  readonly testOf?: number;
}

export interface ApiKeyEntity {
  readonly id: number;
  readonly channelId: number;
  readonly code: string;
  readonly hash: string;
  readonly active: boolean;
  readonly companyWideRead: boolean;
  readonly scopes: string;
  /** Hash of the key that the panel has revoked, which no setup file brings back; empty = none. */
  readonly revokedHash: string;
}

export interface EndpointEntity {
  readonly id: string;
  readonly channelId: number;
  readonly code: string;
  readonly url: string;
  readonly trigger: string;
  readonly statuses: string;
  readonly include: string;
  readonly alertEmail: string;
  readonly active: boolean;
  /** Why and since when it is disabled (JSON of `Disabled`); empty = it is active, or an earlier version has disabled it. */
  readonly disabled?: string;
  readonly secret: string;
  /** The secret before the last rotation, which signs until `previousUntilMs`; empty when none. */
  readonly previousSecret: string;
  readonly previousUntilMs: number;
  /** Sends the headers of the Standard Webhooks specification too. */
  readonly standardWebhooks: boolean;
  /** Absent = the default. */
  readonly maxConcurrency?: number;
  /** Absent or 0 = no limit. */
  readonly maxPerSecond?: number;
  readonly createdAtMs: number;
  /** Fingerprint of the setup file's entry as last applied; absent when the panel made the endpoint. */
  readonly fileEntry?: string;
  /** Hash of the secret that entry gave; empty when it gave none. */
  readonly fileSecretHash?: string;
  /** Where its requests went before (JSON); empty = never changed. */
  readonly earlierTargets?: string;
}

export interface TemplateEntity {
  readonly channelId: number;
  readonly event: string;
  readonly language: string;
  readonly subject: string;
  readonly body: string;
  /** Fingerprint of the setup file's entry as last applied; absent when the panel made the template. */
  readonly fileEntry?: string;
}

/** Somebody who uses the control panel (`accounts.ts`). */
export interface AccountEntity {
  readonly id: string;
  /** In small letters; empty = the first admin, who has not said it yet. */
  readonly email: string;
  readonly name: string;
  readonly kind: string;
  readonly role: string;
  /** Of a company's member; else empty. */
  readonly companyCode: string;
  /** Of a courier's member; else empty. */
  readonly courierCode: string;
  readonly active: boolean;
  /** Empty = invited, and not here yet. */
  readonly passwordHash: string;
  /** Sealed; empty = none. */
  readonly totpSecret: string;
  /** False: a secret was made, and no code of it has been shown yet. */
  readonly totpActive: boolean;
  /** Part of every session's credential: a new number ends them. */
  readonly epoch: number;
  /** Hash of the one-time link that gives the account a password; empty = none. */
  readonly linkHash: string;
  readonly linkUntilMs: number;
  readonly createdAtMs: number;
}

/** The registries that are no list of entities: platforms and status details. One record, `all`. */
export interface RegistryEntity {
  readonly platforms: string;
  readonly statusDetails: string;
}

export interface Entities {
  courier: CourierEntity;
  company: CompanyEntity;
  box: BoxEntity;
  channel: ChannelEntity;
  apiKey: ApiKeyEntity;
  endpoint: EndpointEntity;
  template: TemplateEntity;
  registry: RegistryEntity;
  account: AccountEntity;
}
export type EntityKind = keyof Entities;

const KINDS: { readonly [K in EntityKind]: Kind } = {
  courier: kind("courier", {
    number: "number",
    code: "string",
    name: "string",
    environment: "string",
    acceptingEvents: "boolean",
    tokenHashes: "string",
    signingSecrets: "string",
    signatureRequired: "boolean",
    allowedIps: "string",
    perSecond: "number",
    burst: "number",
    stockRelease: "string",
    stockReleaseDate: "string",
    stockReleaseUrl: "string",
    catalogue: "string",
    setupCatalogue: "string",
    oauth: "string",
    mtls: "string",
    panelTokens: "string",
    panelSigningSecrets: "string",
    revoked: "string",
    setupAccepting: "string",
  }),
  company: kind("company", {
    id: "number",
    code: "string",
    name: "string",
    language: "string",
    seatPostcode: "string",
    products: "string",
  }),
  box: kind("box", {
    companyId: "number",
    code: "string",
    length: "number",
    width: "number",
    height: "number",
    fileEntry: "string",
  }),
  channel: kind("channel", {
    id: "number",
    companyId: "number",
    code: "string",
    name: "string",
    active: "boolean",
    language: "string",
    bucketSize: "number",
    refillRate: "number",
    trackingPage: "boolean",
    addressCheck: "boolean",
    couriers: "string",
    sender: "string",
    emails: "string",
    webhookV1: "string",
    setupActive: "string",
    setupSaid: "string",
    testOf: "number",
  }),
  apiKey: kind("apiKey", {
    id: "number",
    channelId: "number",
    code: "string",
    hash: "string",
    active: "boolean",
    companyWideRead: "boolean",
    scopes: "string",
    revokedHash: "string",
  }),
  endpoint: kind("endpoint", {
    id: "string",
    channelId: "number",
    code: "string",
    url: "string",
    trigger: "string",
    statuses: "string",
    include: "string",
    alertEmail: "string",
    active: "boolean",
    disabled: "string",
    secret: "string",
    previousSecret: "string",
    previousUntilMs: "number",
    standardWebhooks: "boolean",
    maxConcurrency: "number",
    maxPerSecond: "number",
    createdAtMs: "number",
    fileEntry: "string",
    fileSecretHash: "string",
    earlierTargets: "string",
  }),
  template: kind("template", {
    channelId: "number",
    event: "string",
    language: "string",
    subject: "string",
    body: "string",
    fileEntry: "string",
  }),
  account: kind("account", {
    id: "string",
    email: "string",
    name: "string",
    kind: "string",
    role: "string",
    companyCode: "string",
    courierCode: "string",
    active: "boolean",
    passwordHash: "string",
    totpSecret: "string",
    totpActive: "boolean",
    epoch: "number",
    linkHash: "string",
    linkUntilMs: "number",
    createdAtMs: "number",
  }),
  registry: kind("registry", { platforms: "string", statusDetails: "string" }),
};

const idsKey = (name: EntityKind) => `config:ids:${name}`;

export const entityKey = (name: EntityKind, id: string) => `config:${name}:${id}`;

/** In a fixed order. */
export async function entityIds(redis: Redis, name: EntityKind): Promise<string[]> {
  return (await redis.sMembers(idsKey(name))).sort();
}

function repository(redis: Redis, name: EntityKind) {
  // redis-om 0.4 types an older client. Hashes need only the commands that have not changed, so package.json gives it ours by
  // an override, and no second client is loaded.
  return new Repository(KINDS[name].schema, redis as never);
}

export async function allEntities<K extends EntityKind>(
  redis: Redis,
  name: K,
): Promise<Entities[K][]> {
  return readEntities(redis, name, await entityIds(redis, name));
}

/** Those of ids that exist. */
export async function readEntities<K extends EntityKind>(
  redis: Redis,
  name: K,
  ids: string[],
): Promise<Entities[K][]> {
  if (ids.length === 0) return [];
  const found = await repository(redis, name).fetch(ids);
  return found.map((entity) => entity as unknown as Entities[K]);
}

/** One entity, null when there is none. */
export async function readEntity<K extends EntityKind>(
  redis: Redis,
  name: K,
  id: string,
): Promise<Entities[K] | null> {
  if ((await redis.sIsMember(idsKey(name), id)) !== 1) return null;
  return (await repository(redis, name).fetch(id)) as unknown as Entities[K];
}

/** Replaces the whole entity; one that is the same already is not written. Processes see it once `bumpVersion` has been called. */
export async function saveEntity<K extends EntityKind>(
  redis: Redis,
  name: K,
  id: string,
  entity: Entities[K],
): Promise<void> {
  await expectSetupLock();
  const known = await readEntity(redis, name, id);
  if (known && isSame(known, entity)) return;
  await markChanged(redis, name);
  await repository(redis, name).save(id, { ...entity, [EntityId]: id } as never);
  await redis.sAdd(idsKey(name), id);
}

export async function removeEntity(redis: Redis, name: EntityKind, id: string): Promise<void> {
  await expectSetupLock();
  await markChanged(redis, name);
  await redis.sRem(idsKey(name), id);
  await repository(redis, name).remove(id);
}

/** Accounts are read whenever they are used: nobody has to be told of their changes. */
async function markChanged(redis: Redis, name: EntityKind): Promise<void> {
  if (name !== "account") await markUnannounced(redis);
}

/** redis-om drops an empty text on the way. */
function isSame(one: object, other: object): boolean {
  const [known, next] = [new Map(Object.entries(one)), new Map(Object.entries(other))];
  const fields = new Set([...known.keys(), ...next.keys()]);
  return [...fields].every((field) => isSameValue(known.get(field) || "", next.get(field) || ""));
}

/** Lists and records are the same in whatever order their members are written. */
function isSameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "string" || typeof other !== "string") return false;
  const [first, second] = [recordOf(one), recordOf(other)];
  return first !== null && second !== null && Bun.deepEquals(first, second);
}

/** Null = it is no JSON text of a list or a record. */
function recordOf(text: string): object | null {
  if (!text.startsWith("{") && !text.startsWith("[")) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A new number for an entity of this kind, from 1. */
export function nextId(redis: Redis, name: EntityKind): Promise<number> {
  return redis.incr(`config:next:${name}`);
}

/**
 * Raises the version that every process compares before it uses the configuration (`live.ts`), unless nothing has been written.
 * @returns the version in force
 */
export async function bumpVersion(redis: Redis): Promise<number> {
  await expectSetupLock();
  return announceLeftOver(redis);
}
