/** The configuration in force: a read-only snapshot of all entities, indexed the way the rooms ask for it. */

import type { DateSupport } from "#core/merchants/rules/stock-release.ts";
import { type Cidr, parseCidr } from "#core/platform/network/cidr.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import type { StoredChannelCourier } from "#core/setup/rules/merge-said.ts";
import type { Scope, SetupChannel, SetupStatusDetail } from "#core/setup/rules/setup.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import { TEST_COURIER, TEST_COURIERS, testCatalogue } from "#core/shipments/rules/test-parcel.ts";
import type { Catalogue, CatalogueEntry } from "#core/statuses/rules/map-status.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import { DEFAULT_MAX_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import type { Trigger } from "#core/webhooks/rules/trigger.ts";
import type { WebhookTarget } from "#core/webhooks/rules/webhook-request.ts";
import {
  type MtlsBinding,
  mtlsOf,
  type OauthClient,
  oauthOf,
  secretsInForce,
  tokensInForce,
} from "./courier-access.ts";
import { type Disabled, earlierTargetsOf } from "./endpoint-entity.ts";
import type {
  ApiKeyEntity,
  BoxEntity,
  ChannelEntity,
  CourierEntity,
  EndpointEntity,
} from "./entities.ts";
import type { ReadEntities } from "./known-entities.ts";
import { withShadows } from "./test-channels.ts";

export interface Courier {
  /** Number of the courier, from 1: `courierId` of document 1. */
  readonly number: number;
  readonly code: string;
  readonly name: string;
  readonly environment: string;
  readonly acceptingEvents: boolean;
  /** In force: of the setup file and of the panel, without revoked ones. */
  readonly tokenHashes: readonly string[];
  /** Sealed; the vault opens them. */
  readonly signingSecrets: readonly string[];
  readonly signatureRequired: boolean;
  /** Empty = any address. */
  readonly allowedIps: readonly Cidr[];
  readonly perSecond: number;
  readonly burst: number;
  readonly catalogue: Catalogue;
  readonly stockRelease: CourierStockRelease;
  /** Null = this courier has no OAuth client. */
  readonly oauth: OauthClient | null;
  /** Null = no client certificate is asked for. */
  readonly mtls: MtlsBinding | null;
}

/** How a courier takes stock releases (document 1). */
export interface CourierStockRelease {
  readonly mode: "none" | "sync" | "deferred";
  readonly date: DateSupport;
  /** Gateway; null = none of its own. */
  readonly url: string | null;
}

/** With `errorLabel` a refused or failed label comes with a sheet that says not to ship. */
export type ChannelCourier = Readonly<StoredChannelCourier>;

export interface Company {
  readonly id: number;
  readonly code: string;
  readonly name: string;
  readonly language: Language;
  readonly seatPostcode: string | null;
  readonly products: readonly string[];
  readonly boxes: ReadonlyMap<string, BoxEntity>;
  readonly channelIds: readonly number[];
}

export interface Channel {
  readonly id: number;
  readonly companyId: number;
  /** The channel whose shadow it is, in test mode; null = it is a live one. */
  readonly testOf: number | null;
  readonly code: string;
  readonly name: string;
  readonly active: boolean;
  readonly language: Language;
  readonly bucketSize: number;
  readonly refillRate: number;
  /** Its shipments have a public tracking page. */
  readonly trackingPage: boolean;
  /** The channel may have addresses checked. */
  readonly addressCheck: boolean;
  readonly emails: ChannelEmails;
  readonly couriers: ReadonlyMap<string, ChannelCourier>;
  readonly sender: NonNullable<SetupChannel["sender"]> | null;
  readonly endpoints: readonly Endpoint[];
  /** The older webhook of the channel, silent while it has an endpoint; null when none is configured. */
  readonly webhookV1: WebhookV1 | null;
}

export interface ChannelEmails {
  /** The service sends the channel's transactional messages. */
  readonly managed: boolean;
  /** Null = the service's own address. */
  readonly from: string | null;
  /** Statuses whose recipients are notified by e-mail and SMS. */
  readonly statusNotifications: readonly Status[];
}

export interface WebhookV1 {
  readonly url: string;
  /** The body a receiver must answer with. */
  readonly acknowledgement: string;
}

export interface ApiKey {
  readonly id: number;
  readonly channelId: number;
  readonly code: string;
  readonly active: boolean;
  readonly companyWideRead: boolean;
  readonly scopes: readonly Scope[];
}

export interface Endpoint {
  readonly id: string;
  readonly channelId: number;
  readonly code: string;
  readonly url: string;
  readonly trigger: Trigger;
  readonly statuses: readonly Status[];
  readonly include: readonly "consignee"[];
  readonly alertEmail: string;
  readonly active: boolean;
  /** Null while it is active, and where an earlier version has disabled it. */
  readonly disabled: Disabled | null;
  /** Sealed. */
  readonly secret: string;
  readonly previousSecret: string | null;
  readonly previousUntilMs: number;
  readonly standardWebhooks: boolean;
  /** Requests under way at once, at most. */
  readonly maxConcurrency: number;
  /** Requests begun in any second, at most; null = no limit. */
  readonly maxPerSecond: number | null;
  /** Where its requests went before, oldest first. */
  readonly earlierTargets: readonly WebhookTarget[];
  readonly createdAtMs: number;
}

export interface Configuration {
  readonly version: number;
  /** Where tracking pages are reachable; without a slash at the end. */
  readonly publicUrl: string;
  readonly couriers: ReadonlyMap<string, Courier>;
  readonly courierByToken: ReadonlyMap<string, Courier>;
  readonly courierByClientId: ReadonlyMap<string, Courier>;
  readonly companies: ReadonlyMap<number, Company>;
  readonly channels: ReadonlyMap<number, Channel>;
  readonly channelByCode: ReadonlyMap<string, Channel>;
  /** By the hash of the key. */
  readonly apiKeys: ReadonlyMap<string, ApiKey>;
  readonly apiKeyById: ReadonlyMap<number, ApiKey>;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly platforms: ReadonlySet<string>;
  readonly statusDetails: ReadonlyMap<number, SetupStatusDetail>;
}

/** The version is read first: a change in between is seen as a newer version and loads everything again. */
export async function loadConfiguration(
  redis: Redis,
  publicUrl: string,
  read: ReadEntities,
): Promise<Configuration> {
  const version = Number((await redis.hGet(SYSTEM_KEY, "version")) ?? 0);
  const [couriers, companies, boxes, channels, apiKeys, endpoints, [registry]] = await Promise.all([
    read("courier"),
    read("company"),
    read("box"),
    read("channel"),
    read("apiKey"),
    read("endpoint"),
    read("registry"),
  ]);
  const details: SetupStatusDetail[] = registry ? JSON.parse(registry.statusDetails) : [];
  const statusDetails = new Map(details.map((detail) => [detail.id, detail]));
  const hasTests = channels.some(({ testOf }) => testOf);
  const allCouriers = [
    ...couriers.map(readCourier),
    ...(hasTests ? testCouriers(statusDetails) : []),
  ];
  const allEndpoints = endpoints.map(readEndpoint);
  const endpointsOf = Map.groupBy(allEndpoints, ({ channelId }) => channelId);
  const allChannels = withShadows(channels).map((channel) =>
    readChannel(channel, endpointsOf.get(channel.id) ?? []),
  );
  const channelsOf = Map.groupBy(allChannels, ({ companyId }) => companyId);
  const boxesOf = Map.groupBy(boxes, ({ companyId }) => companyId);
  const allCompanies = companies.map((company): Company => {
    return {
      id: company.id,
      code: company.code,
      name: company.name,
      language: company.language as Language,
      seatPostcode: company.seatPostcode || null,
      products: JSON.parse(company.products),
      boxes: new Map((boxesOf.get(company.id) ?? []).map((box) => [box.code, box])),
      channelIds: (channelsOf.get(company.id) ?? []).map(({ id }) => id),
    };
  });
  return {
    version,
    publicUrl,
    couriers: new Map(allCouriers.map((courier) => [courier.code, courier])),
    courierByToken: new Map(
      allCouriers.flatMap((courier) => courier.tokenHashes.map((hash) => [hash, courier] as const)),
    ),
    courierByClientId: new Map(
      allCouriers.flatMap((courier) =>
        courier.oauth ? [[courier.oauth.clientId, courier] as const] : [],
      ),
    ),
    companies: new Map(allCompanies.map((company) => [company.id, company])),
    channels: new Map(allChannels.map((channel) => [channel.id, channel])),
    channelByCode: new Map(allChannels.map((channel) => [channel.code, channel])),
    apiKeys: new Map(apiKeys.map((key) => [key.hash, readApiKey(key)])),
    apiKeyById: new Map(apiKeys.map((key) => [key.id, readApiKey(key)])),
    endpoints: new Map(allEndpoints.map((endpoint) => [endpoint.id, endpoint])),
    platforms: new Set(registry ? (JSON.parse(registry.platforms) as string[]) : []),
    statusDetails,
  };
}

/** They exist where a shadow does. No courier can speak for them: they have no tokens. */
function testCouriers(details: ReadonlyMap<number, SetupStatusDetail>): Courier[] {
  const held = [...details.values()].find(({ heldInDepot }) => heldInDepot)?.id ?? 0;
  const catalogue = new Map(testCatalogue(held).map((entry) => [entry.code, entry]));
  return TEST_COURIERS.map((code): Courier => {
    const mode = code === TEST_COURIER ? ("sync" as const) : ("deferred" as const);
    return {
      number: 0,
      code,
      name: "Test courier",
      environment: "test",
      acceptingEvents: false,
      tokenHashes: [],
      signingSecrets: [],
      signatureRequired: false,
      allowedIps: [],
      perSecond: 1,
      burst: 1,
      catalogue,
      oauth: null,
      mtls: null,
      stockRelease: { mode, date: "optional", url: null },
    };
  });
}

function readCourier(entity: CourierEntity): Courier {
  const catalogue: CatalogueEntry[] = JSON.parse(entity.catalogue);
  const allowedIps: string[] = JSON.parse(entity.allowedIps);
  return {
    number: entity.number,
    code: entity.code,
    name: entity.name,
    environment: entity.environment,
    acceptingEvents: entity.acceptingEvents,
    tokenHashes: tokensInForce(entity),
    signingSecrets: secretsInForce(entity),
    signatureRequired: entity.signatureRequired,
    allowedIps: allowedIps.map(parseCidr).filter((cidr) => cidr !== null),
    perSecond: entity.perSecond,
    burst: entity.burst,
    catalogue: new Map(catalogue.map((entry) => [entry.code, entry])),
    stockRelease: {
      mode: entity.stockRelease as CourierStockRelease["mode"],
      date: entity.stockReleaseDate as DateSupport,
      url: entity.stockReleaseUrl || null,
    },
    oauth: oauthOf(entity),
    mtls: mtlsOf(entity),
  };
}

function readChannel(entity: ChannelEntity, endpoints: readonly Endpoint[]): Channel {
  const couriers: ChannelCourier[] = JSON.parse(entity.couriers);
  return {
    id: entity.id,
    companyId: entity.companyId,
    testOf: entity.testOf || null,
    code: entity.code,
    name: entity.name,
    active: entity.active,
    language: entity.language as Language,
    bucketSize: entity.bucketSize,
    refillRate: entity.refillRate,
    trackingPage: entity.trackingPage,
    addressCheck: entity.addressCheck,
    emails: readEmails(entity.emails),
    couriers: new Map(couriers.map((courier) => [courier.code, courier])),
    sender: entity.sender ? JSON.parse(entity.sender) : null,
    endpoints,
    webhookV1: entity.webhookV1 ? JSON.parse(entity.webhookV1) : null,
  };
}

function readEmails(text: string): ChannelEmails {
  const emails = text ? JSON.parse(text) : {};
  const { managed = false, from = null, statusNotifications = [] } = emails;
  return { managed, from, statusNotifications };
}

function readApiKey(entity: ApiKeyEntity): ApiKey {
  const { id, channelId, code, companyWideRead } = entity;
  const active = entity.active && entity.hash !== entity.revokedHash;
  return { id, channelId, code, active, companyWideRead, scopes: JSON.parse(entity.scopes) };
}

function readEndpoint(entity: EndpointEntity): Endpoint {
  return {
    id: entity.id,
    channelId: entity.channelId,
    code: entity.code,
    url: entity.url,
    trigger: entity.trigger as Trigger,
    statuses: JSON.parse(entity.statuses),
    include: JSON.parse(entity.include),
    alertEmail: entity.alertEmail,
    active: entity.active,
    disabled: entity.disabled ? JSON.parse(entity.disabled) : null,
    secret: entity.secret,
    previousSecret: entity.previousSecret || null,
    previousUntilMs: entity.previousUntilMs,
    standardWebhooks: entity.standardWebhooks ?? false,
    maxConcurrency: entity.maxConcurrency ?? DEFAULT_MAX_CONCURRENCY,
    maxPerSecond: entity.maxPerSecond || null,
    earlierTargets: earlierTargetsOf(entity),
    createdAtMs: entity.createdAtMs,
  };
}
