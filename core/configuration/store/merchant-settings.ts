/**
 * Settings of companies and channels that the panel changes: the channel's own, its templates, the company's boxes. Every
 * write reads, changes and saves under the setup lock. What a setup file has said last is kept apart, so that the same file
 * does not undo the panel's change at the next start (`write-company.ts`).
 */

import type {
  BoxEntity,
  ChannelEntity,
  Entities,
  TemplateEntity,
} from "#core/configuration/rules/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { DELETED_SETTINGS_KEY } from "#core/platform/redis/keys.ts";
import { BOXES_PER_COMPANY, TEMPLATES_PER_CHANNEL } from "#core/setup/rules/setup.ts";
import { refuseStale } from "./change-context.ts";
import {
  bumpVersion,
  entityIds,
  readEntities,
  readEntity,
  removeEntity,
  type Stored,
  saveEntity,
} from "./entities.ts";
import { expectSetupLock, underSetupLock } from "./setup-lock.ts";

type Kind = "box" | "template";

type Fixed = "id" | "companyId" | "code" | "testOf" | "active" | "setupActive" | "setupSaid";
export type ChannelChange = Partial<Omit<ChannelEntity, Fixed>>;

export function templateId({
  channelId,
  event,
  language,
}: Pick<TemplateEntity, "channelId" | "event" | "language">): string {
  return `${channelId}:${event}:${language}`;
}

export function boxId({ companyId, code }: Pick<BoxEntity, "companyId" | "code">): string {
  return `${companyId}:${code}`;
}

/** Field of `DELETED_SETTINGS_KEY`. */
export function deletedSetting(kind: Kind, id: string): string {
  return `${kind}:${id}`;
}

/**
 * @param changeOf may throw to refuse the change
 * @returns what it was and what it is; null if there is no such channel
 */
export function changeChannel(
  redis: Redis,
  channelId: number,
  changeOf: (before: ChannelEntity) => ChannelChange,
): Promise<{ readonly before: ChannelEntity; readonly after: ChannelEntity } | null> {
  return underSetupLock(redis, async () => {
    const before = await readEntity(redis, "channel", String(channelId));
    if (!before) return null;
    const wanted = { ...before, ...changeOf(before) };
    const { entity: after, isWritten } = await saveEntity(
      redis,
      "channel",
      String(channelId),
      wanted,
    );
    if (isWritten) await bumpVersion(redis);
    return { before, after };
  });
}

/** `full`: the company or channel has as many as it may have; `missing`: fields that a new one must be given. */
export type PutOutcome<K extends Kind> =
  | { readonly before: Stored<K> | null; readonly after: Stored<K> }
  | { readonly missing: readonly string[] }
  | "full";

export function putTemplate(
  redis: Redis,
  name: Pick<TemplateEntity, "channelId" | "event" | "language">,
  wanted: Partial<Pick<TemplateEntity, "subject" | "body">>,
): Promise<PutOutcome<"template">> {
  const needed = ["subject", "body"];
  const limit = TEMPLATES_PER_CHANNEL;
  return put(redis, "template", templateId(name), { ...name, ...wanted }, { needed, limit });
}

export function putBox(
  redis: Redis,
  name: Pick<BoxEntity, "companyId" | "code">,
  wanted: Partial<Pick<BoxEntity, "length" | "width" | "height">>,
): Promise<PutOutcome<"box">> {
  const needed = ["length", "width", "height"];
  const limit = BOXES_PER_COMPANY;
  return put(redis, "box", boxId(name), { ...name, ...wanted }, { needed, limit });
}

interface PutTerms {
  /** Fields that a new one must be given. */
  readonly needed: readonly string[];
  /** As many as there may be. */
  readonly limit: number;
}

/** @param wanted a field that is not given is as it was */
function put<K extends Kind>(
  redis: Redis,
  kind: K,
  id: string,
  wanted: object,
  { needed, limit }: PutTerms,
): Promise<PutOutcome<K>> {
  return underSetupLock(redis, async () => {
    const before = await readEntity(redis, kind, id);
    refuseStale(before);
    if (!before && (await idsBeside(redis, kind, id)).length >= limit) return "full";
    const missing = needed.filter((field) => !Object.hasOwn(wanted, field));
    if (!before && missing.length > 0) return { missing };
    const field = deletedSetting(kind, id);
    // Deleted and made again: the file's entry has still been applied.
    const fileEntry = before?.fileEntry ?? (await redis.hGet(DELETED_SETTINGS_KEY, field)) ?? "";
    const made = { ...before, ...wanted, fileEntry };
    const { entity: after, isWritten } = await saveEntity(redis, kind, id, made as Entities[K]);
    if (!isWritten) return { before, after };
    await redis.hDel(DELETED_SETTINGS_KEY, field);
    await bumpVersion(redis);
    return { before, after };
  });
}

/** Templates of a channel. */
export async function templatesOf(redis: Redis, channelId: number): Promise<Stored<"template">[]> {
  const ids = await idsBeside(redis, "template", `${channelId}:`);
  return readEntities(redis, "template", ids);
}

/** Ids begin with the channel or the company. */
async function idsBeside(redis: Redis, kind: Kind, id: string): Promise<string[]> {
  const owner = id.slice(0, id.indexOf(":") + 1);
  return (await entityIds(redis, kind)).filter((one) => one.startsWith(owner));
}

/** The setup file does not bring it back while its entry stays the same. @returns what it was; null if there was none */
export function deleteSetting<K extends Kind>(
  redis: Redis,
  kind: K,
  id: string,
): Promise<Stored<K> | null> {
  return underSetupLock(redis, async () => {
    const before = await readEntity(redis, kind, id);
    refuseStale(before);
    if (!before) return null;
    await expectSetupLock();
    if (before.fileEntry) {
      await redis.hSet(DELETED_SETTINGS_KEY, deletedSetting(kind, id), before.fileEntry);
    }
    await removeEntity(redis, kind, id);
    await bumpVersion(redis);
    return before;
  });
}
