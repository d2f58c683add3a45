/** What a setup file meets in the store: the entities of before, by the names that the file uses for them. */

import type {
  AlarmReceiverEntity,
  ApiKeyEntity,
  BoxEntity,
  ChannelEntity,
  CompanyEntity,
  CourierEntity,
  EndpointEntity,
  Entities,
  TemplateEntity,
} from "#core/configuration/rules/entities.ts";
import { allEntities } from "#core/configuration/store/entities.ts";
import { templateId } from "#core/configuration/store/merchant-settings.ts";
import { receiverName } from "#core/configuration/store/receiver-entity.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { DELETED_SETTINGS_KEY, DELETED_WEBHOOKS_KEY } from "#core/platform/redis/keys.ts";
import type { Remaining, SetupFile, SetupStatusDetail } from "#core/setup/rules/setup.ts";
import { DEFAULT_STATUS_DETAILS } from "#core/statuses/rules/status-details.ts";

export interface Stored {
  readonly couriers: ReadonlyMap<string, CourierEntity>;
  readonly companies: ReadonlyMap<string, CompanyEntity>;
  readonly boxes: ReadonlyMap<string, BoxEntity>;
  readonly channels: ReadonlyMap<string, ChannelEntity>;
  readonly apiKeys: ReadonlyMap<string, ApiKeyEntity>;
  readonly endpoints: ReadonlyMap<string, EndpointEntity>;
  readonly templates: ReadonlyMap<string, TemplateEntity>;
  /** By owner and code. */
  readonly alarmReceivers: ReadonlyMap<string, AlarmReceiverEntity>;
  readonly registry: Entities["registry"] | undefined;
  /** Endpoints that the panel deleted: fingerprint of the file's entry, which does not bring them back. */
  readonly deletedWebhooks: ReadonlyMap<string, string>;
  /** The same of boxes, templates and receivers of alarms. */
  readonly deletedSettings: ReadonlyMap<string, string>;
}

export async function readStored(redis: Redis): Promise<Stored> {
  const [entities, [registry], deletedWebhooks, deletedSettings] = await Promise.all([
    Promise.all([
      allEntities(redis, "courier"),
      allEntities(redis, "company"),
      allEntities(redis, "box"),
      allEntities(redis, "channel"),
      allEntities(redis, "apiKey"),
      allEntities(redis, "endpoint"),
      allEntities(redis, "template"),
      allEntities(redis, "alarmReceiver"),
    ]),
    allEntities(redis, "registry"),
    redis.hGetAll(DELETED_WEBHOOKS_KEY),
    redis.hGetAll(DELETED_SETTINGS_KEY),
  ]);
  const [couriers, companies, boxes, channels, apiKeys, endpoints, templates, receivers] = entities;
  return {
    couriers: new Map(couriers.map((one) => [one.code, one])),
    companies: new Map(companies.map((one) => [one.code, one])),
    boxes: new Map(boxes.map((one) => [`${one.companyId}:${one.code}`, one])),
    channels: new Map(channels.map((one) => [one.code, one])),
    apiKeys: new Map(apiKeys.map((one) => [`${one.channelId}:${one.code}`, one])),
    endpoints: new Map(endpoints.map((one) => [`${one.channelId}:${one.code}`, one])),
    templates: new Map(templates.map((one) => [templateId(one), one])),
    alarmReceivers: new Map(receivers.map((one) => [receiverName(one), one])),
    registry,
    deletedWebhooks: new Map(Object.entries(deletedWebhooks)),
    deletedSettings: new Map(Object.entries(deletedSettings)),
  };
}

export function mergedPlatforms(
  file: Remaining<SetupFile>,
  registry: Entities["registry"] | undefined,
): string[] {
  return [...new Set([...(registry?.platforms ?? []), ...(file.platforms ?? [])])];
}

export function mergedDetails(
  file: SetupFile,
  registry: Entities["registry"] | undefined,
): SetupStatusDetail[] {
  return mergeBy(detailsOf(registry), file.statusDetails ?? [], ({ id }) => String(id));
}

export function detailsOf(
  registry: Entities["registry"] | undefined,
): readonly SetupStatusDetail[] {
  return registry?.statusDetails ?? DEFAULT_STATUS_DETAILS;
}

/** Entries of `after` replace what they name in `before`, member by member; the others stay. */
export function mergeBy<T extends object>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string,
): T[] {
  const merged = new Map(before.map((item) => [key(item), item]));
  // A faulty item leaves a hole in its list, which is passed over.
  after.forEach((item) => void merged.set(key(item), { ...merged.get(key(item)), ...item }));
  return [...merged.values()];
}
