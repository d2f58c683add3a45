/** The companies of a setup file, with their channels. */

import type { ChannelEntity, Entities } from "#core/configuration/rules/entities.ts";
import { settingsAfter } from "#core/configuration/rules/entity.ts";
import { CHANNEL_SETTINGS, COMPANY_SETTINGS } from "#core/configuration/rules/settings.ts";
import { nextId } from "#core/configuration/store/entities.ts";
import { deletedSetting, templateId } from "#core/configuration/store/merchant-settings.ts";
import { newShadow, testCodeOf } from "#core/configuration/store/test-channels.ts";
import { putOrders } from "#core/merchants/store/orders.ts";
import { putSandbox } from "#core/merchants/store/sandbox.ts";
import { DELETED_SETTINGS_KEY } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken, newToken } from "#core/platform/secrets/secrets.ts";
import {
  mergeChannelCouriers,
  newlySaid,
  ownSettingsOf,
  saidAfter,
} from "#core/setup/rules/merge-said.ts";
import {
  SCOPES,
  type SetupApiKey,
  type SetupChannel,
  type SetupCompany,
} from "#core/setup/rules/setup.ts";
import { newsOf, saidAfterEntry } from "./said-members.ts";
import { fingerprintOf } from "./setup-webhooks.ts";
import type { SetupAuthor, SetupWriter } from "./setup-writer.ts";
import { writeWebhook } from "./write-webhook.ts";

/** Requests of a channel at once, and again in a minute, unless it is given others. */
const DEFAULT_BUCKET_SIZE = limit(
  300,
  "requests of a channel at once, unless it is given others",
  "429",
);
const DEFAULT_REFILL_RATE = limit(
  150,
  "requests of a channel each minute, unless it is given others",
  "429",
);

/** Members that are compared with the last file's. */
const COMPARED = [
  "code",
  ...(Object.keys(COMPANY_SETTINGS) as (keyof typeof COMPANY_SETTINGS)[]),
] as const satisfies readonly (keyof SetupCompany)[];

export async function writeCompany(writer: SetupWriter, company: SetupCompany): Promise<void> {
  const { redis, stored, save, by } = writer;
  const before = stored.companies.get(company.code);
  if (before && before.closedAtMs > 0) {
    writer.passedOver.push(`company ${company.code}`);
    return;
  }
  const id = before?.id ?? (await nextId(redis, "company"));
  const compared = { entry: company, names: COMPARED, said: before?.setupSaid };
  const given = { ...newsOf(by, compared), ...writer.nullsOf("company") };
  await save("company", String(id), before, {
    id,
    code: company.code,
    ...settingsAfter(COMPANY_SETTINGS, given, before ?? { name: company.code }),
    setupSaid: saidAfterEntry(by, compared),
    closedAtMs: before?.closedAtMs ?? 0,
  });
  for (const box of company.boxes ?? []) {
    const boxId = `${id}:${box.code}`;
    const entity = { companyId: id, ...box, fileEntry: fingerprintOf(box) };
    await saveEntry(writer, "box", boxId, stored.boxes.get(boxId), entity);
  }
  for (const channel of company.channels ?? []) await writeChannel(writer, channel, id);
}

async function writeChannel(
  writer: SetupWriter,
  channel: SetupChannel,
  companyId: number,
): Promise<void> {
  const { redis, stored, save, by } = writer;
  const before = stored.channels.get(channel.code);
  if (before && before.closedAtMs > 0) {
    writer.passedOver.push(`channel ${channel.code}`);
    return;
  }
  const id = before?.id ?? (await nextId(redis, "channel"));
  const said = by === "panel" ? {} : (before?.setupSaid ?? {});
  const after = saidAfter(said, channel);
  const nulls = writer.nullsOf("channel");
  const own = { ...newlySaid(ownSettingsOf(channel), said.own), ...nulls };
  const rateLimit = newlySaid(channel.rateLimit, said.rateLimit);
  const isNewSender = JSON.stringify(channel.sender) !== JSON.stringify(said.sender);
  const sender = isNewSender ? channel.sender : undefined;
  const emails = channel.emails && newlySaid(after.emails, said.emails);
  const entity: ChannelEntity = {
    id,
    companyId,
    testOf: null,
    code: channel.code,
    ...settingsAfter(CHANNEL_SETTINGS, own, before ?? { name: channel.code }),
    ...activation(by, channel.active, before),
    bucketSize: rateLimit.bucketSize ?? before?.bucketSize ?? DEFAULT_BUCKET_SIZE,
    refillRate: rateLimit.refillRate ?? before?.refillRate ?? DEFAULT_REFILL_RATE,
    couriers: mergeChannelCouriers(before?.couriers ?? [], said.couriers, channel.couriers),
    sender: "sender" in nulls ? null : (sender ?? before?.sender ?? null),
    emails: { ...before?.emails, ...emails },
    setupSaid: by === "panel" ? (before?.setupSaid ?? {}) : after,
    closedAtMs: before?.closedAtMs ?? 0,
  };
  await save("channel", String(id), before, entity);
  const isTest = ({ mode }: { readonly mode?: string }) => mode === "test";
  const wantsTest = [...(channel.apiKeys ?? []), ...(channel.webhooks ?? [])].some(isTest);
  const testId = wantsTest ? await shadowOf(writer, entity) : id;
  await writeContents(writer, channel, { companyId, channelId: id }, testId);
}

/** @returns its id */
async function shadowOf(
  { redis, stored, save }: SetupWriter,
  live: ChannelEntity,
): Promise<number> {
  const known = stored.channels.get(testCodeOf(live.code));
  if (known) return known.id;
  const shadow = await newShadow(redis, live);
  await save("channel", String(shadow.id), undefined, shadow);
  return shadow.id;
}

/** What belongs to the channel and stands in entities of its own. */
async function writeContents(
  writer: SetupWriter,
  channel: SetupChannel,
  owner: { readonly companyId: number; readonly channelId: number },
  testId: number,
): Promise<void> {
  const { redis, stored, nowMs } = writer;
  const { channelId } = owner;
  const idOf = ({ mode }: { readonly mode?: string }) => (mode === "test" ? testId : channelId);
  for (const key of channel.apiKeys ?? []) await writeApiKey(writer, key, idOf(key), channel.code);
  for (const webhook of channel.webhooks ?? []) {
    await writeWebhook(writer, webhook, idOf(webhook), channel.code);
  }
  for (const template of channel.emails?.templates ?? []) {
    const entity = { channelId, ...template, fileEntry: fingerprintOf(template) };
    const templateKey = templateId(entity);
    await saveEntry(writer, "template", templateKey, stored.templates.get(templateKey), entity);
  }
  const orders = await putOrders(redis, owner, channel.orders ?? [], nowMs);
  writer.written += orders.filter(({ outcome }) => outcome !== "unchanged").length;
  for (const row of channel.sandbox ?? []) {
    if (await putSandbox(redis, owner, row, fingerprintOf(row), nowMs)) writer.written += 1;
  }
}

/** An entity that is one entry of the file: what the panel has changed or deleted since stays so until the entry changes. */
async function saveEntry<K extends "box" | "template">(
  { redis, stored, save, by }: SetupWriter,
  kind: K,
  id: string,
  before: Entities[K] | undefined,
  after: Entities[K],
): Promise<void> {
  const deleted = deletedSetting(kind, id);
  const applied = before ? before.fileEntry : stored.deletedSettings.get(deleted);
  if (by === "file" && applied === after.fileEntry) return;
  const fileEntry = by === "file" ? after.fileEntry : (applied ?? "");
  await save(kind, id, before, { ...after, fileEntry });
  await redis.hDel(DELETED_SETTINGS_KEY, deleted);
}

async function writeApiKey(
  writer: SetupWriter,
  key: SetupApiKey,
  channelId: number,
  channel: string,
): Promise<void> {
  const { redis, stored, save, by } = writer;
  const before = stored.apiKeys.get(`${channelId}:${key.code}`);
  const fileEntry = by === "file" ? fingerprintOf(key) : (before?.fileEntry ?? "");
  // What the panel has changed since stays so until the file's entry itself changes.
  if (by === "file" && before?.fileEntry === fileEntry) return;
  const id = before?.id ?? (await nextId(redis, "apiKey"));
  await save("apiKey", String(id), before, {
    id,
    channelId,
    code: key.code,
    hash: key.key ? hashToken(key.key) : (before?.hash ?? newKeyHash(writer, channel, key.code)),
    active: key.active ?? before?.active ?? true,
    companyWideRead: key.companyWideRead ?? before?.companyWideRead ?? false,
    scopes: key.scopes ?? before?.scopes ?? SCOPES,
    revokedHash: before?.revokedHash ?? "",
    fileEntry,
  });
}

function newKeyHash({ generated }: SetupWriter, channel: string, code: string): string {
  const secret = newToken("key_");
  generated.push({ owner: `channel ${channel}, API key ${code}`, secret });
  return hashToken(secret);
}

/** The panel's word stands until a file says something else than the file before it. */
function activation(
  by: SetupAuthor,
  given: boolean | undefined,
  before: ChannelEntity | undefined,
) {
  const last = before?.setupActive ?? "";
  const current = before?.active ?? true;
  if (by === "panel") return { active: given ?? current, setupActive: last };
  if (given === undefined) return { active: current, setupActive: last };
  return { active: last === String(given) ? current : given, setupActive: String(given) };
}
