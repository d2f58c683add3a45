/** The configuration in force: a read-only snapshot of all entities, indexed the way the roles ask for it. */

import type {
  ApiKeyEntity,
  ChannelEntity,
  CompanyEntity,
  CourierEntity,
  EndpointEntity,
} from "#core/configuration/rules/entities.ts";
import { type Cidr, parseCidr } from "#core/platform/network/cidr.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import {
  type ManagedBy,
  managedBy,
  type StoredChannelCourier,
} from "#core/setup/rules/merge-said.ts";
import type { SetupStatusDetail } from "#core/setup/rules/setup.ts";
import { TEST_COURIER, TEST_COURIERS, testCatalogue } from "#core/shipments/rules/test-parcel.ts";
import type { Catalogue } from "#core/statuses/rules/map-status.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import { asClosed, closedChannels, withoutAccess } from "./closed-entities.ts";
import { secretsInForce, tokensInForce } from "./courier-access.ts";
import type { Stored } from "./entities.ts";
import type { ReadEntities } from "./known-entities.ts";
import { withShadows } from "./test-channels.ts";

export interface Courier
  extends Pick<
    CourierEntity,
    | "number"
    | "code"
    | "name"
    | "environment"
    | "acceptingEvents"
    | "signatureRequired"
    | "perSecond"
    | "burst"
    | "oauth"
    | "mtls"
    | "closedAtMs"
  > {
  readonly version: string;
  /** In force: of the setup file and of the panel, without revoked ones. */
  readonly tokenHashes: readonly string[];
  /** Sealed; the vault opens them. */
  readonly signingSecrets: readonly string[];
  /** Empty = any address. */
  readonly allowedIps: readonly Cidr[];
  readonly catalogue: Catalogue;
  readonly stockRelease: CourierStockRelease;
}

/** How a courier takes stock releases (document 1). */
export interface CourierStockRelease {
  readonly mode: CourierEntity["stockRelease"];
  readonly date: CourierEntity["stockReleaseDate"];
  /** Gateway; null = none of its own. */
  readonly url: string | null;
}

/** With `errorLabel` a refused or failed label comes with a sheet that says not to ship. */
export type ChannelCourier = StoredChannelCourier;

export interface Company extends CompanyEntity {
  readonly version: string;
  readonly boxes: ReadonlyMap<string, Stored<"box">>;
  readonly channelIds: readonly number[];
}

export interface Channel
  extends Omit<ChannelEntity, "couriers" | "emails" | "setupActive" | "setupSaid"> {
  readonly version: string;
  readonly managedBy: ManagedBy;
  readonly emails: ChannelEmails;
  readonly couriers: ReadonlyMap<string, ChannelCourier>;
  readonly endpoints: readonly Endpoint[];
}

export interface ChannelEmails {
  /** The service sends the channel's transactional messages. */
  readonly managed: boolean;
  /** Null = the service's own address. */
  readonly from: string | null;
  /** Statuses whose recipients are notified by e-mail and SMS. */
  readonly statusNotifications: readonly Status[];
}

/** A key that the panel has revoked is not active. */
export type ApiKey = Omit<ApiKeyEntity, "hash" | "revokedHash" | "fileEntry">;

export interface Endpoint extends Omit<EndpointEntity, "fileEntry" | "fileSecretHash"> {
  readonly version: string;
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
  const statusDetails = new Map(registry?.statusDetails.map((detail) => [detail.id, detail]));
  const hasTests = channels.some(({ testOf }) => testOf);
  const allCouriers = [
    ...couriers.map((courier) => readCourier(withoutAccess(courier))),
    ...(hasTests ? testCouriers(statusDetails) : []),
  ];
  const shadowed = withShadows(channels);
  const closed = closedChannels(shadowed, companies);
  const allEndpoints = endpoints.map((endpoint) =>
    readEndpoint(closed.has(endpoint.channelId) ? { ...endpoint, active: false } : endpoint),
  );
  const endpointsOf = Map.groupBy(allEndpoints, ({ channelId }) => channelId);
  const allChannels = shadowed.map((channel) => {
    const read = readChannel(channel, endpointsOf.get(channel.id) ?? []);
    const closedAtMs = closed.get(channel.id);
    return closedAtMs === undefined ? read : asClosed(read, closedAtMs);
  });
  const channelsOf = Map.groupBy(allChannels, ({ companyId }) => companyId);
  const boxesOf = Map.groupBy(boxes, ({ companyId }) => companyId);
  const allCompanies = companies.map((company): Company => {
    return {
      ...company,
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
    platforms: new Set(registry?.platforms),
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
      version: "",
      number: 0,
      closedAtMs: 0,
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

function readCourier(entity: Stored<"courier">): Courier {
  const { number, code, name, environment, acceptingEvents, signatureRequired } = entity;
  const { perSecond, burst, oauth, mtls, version, closedAtMs } = entity;
  return {
    version,
    number,
    closedAtMs,
    code,
    name,
    environment,
    acceptingEvents,
    signatureRequired,
    perSecond,
    burst,
    oauth,
    mtls,
    tokenHashes: tokensInForce(entity),
    signingSecrets: secretsInForce(entity),
    allowedIps: entity.allowedIps.map(parseCidr).filter((cidr) => cidr !== null),
    catalogue: new Map(entity.catalogue.map((entry) => [entry.code, entry])),
    stockRelease: {
      mode: entity.stockRelease,
      date: entity.stockReleaseDate,
      url: entity.stockReleaseUrl || null,
    },
  };
}

function readChannel(entity: Stored<"channel">, endpoints: readonly Endpoint[]): Channel {
  const { setupActive: _, setupSaid, ...own } = entity;
  const { managed = false, from = null, statusNotifications = [] } = entity.emails;
  return {
    ...own,
    managedBy: managedBy(setupSaid),
    endpoints,
    emails: { managed, from, statusNotifications },
    couriers: new Map(entity.couriers.map((courier) => [courier.code, courier])),
  };
}

function readApiKey({ hash, revokedHash, fileEntry: _, ...key }: ApiKeyEntity): ApiKey {
  return { ...key, active: key.active && hash !== revokedHash };
}

function readEndpoint(stored: Stored<"endpoint">): Endpoint {
  const { fileEntry: _, fileSecretHash: __, ...endpoint } = stored;
  return endpoint;
}
