/** The companies of a setup file, with their channels. */
import {
  SCOPES,
  type SetupApiKey,
  type SetupChannel,
  type SetupCompany,
} from "#core/domain/setup/setup.ts";
import {
  type ApiKeyEntity,
  type ChannelEntity,
  type CompanyEntity,
  nextId,
  type TemplateEntity,
} from "#core/redis/config/entities.ts";
import { putOrders } from "#core/redis/merchant/orders.ts";
import { putSandbox } from "#core/redis/merchant/sandbox.ts";
import { hashToken, newToken } from "#core/secrets.ts";
import { fingerprintOf } from "./setup-webhooks.ts";
import { listOf, type SetupWriter } from "./setup-writer.ts";
import { mergeBy, parseStored, templateId } from "./stored-setup.ts";
import { writeWebhook } from "./write-webhook.ts";

export async function writeCompany(writer: SetupWriter, company: SetupCompany): Promise<void> {
  const { redis, stored, save } = writer;
  const before = stored.companies.get(company.code);
  const id = before?.id ?? (await nextId(redis, "company"));
  await save("company", String(id), before, {
    id,
    code: company.code,
    name: company.name ?? before?.name ?? company.code,
    language: company.language ?? before?.language ?? "it",
    seatPostcode: company.seatPostcode ?? before?.seatPostcode ?? "",
    products: listOf(company.products, before?.products),
  } satisfies CompanyEntity);
  for (const box of company.boxes ?? []) {
    const boxId = `${id}:${box.code}`;
    await save("box", boxId, stored.boxes.get(boxId), { companyId: id, ...box });
  }
  for (const channel of company.channels ?? []) await writeChannel(writer, channel, id);
}

async function writeChannel(
  writer: SetupWriter,
  channel: SetupChannel,
  companyId: number,
): Promise<void> {
  const { redis, stored, save } = writer;
  const before = stored.channels.get(channel.code);
  const id = before?.id ?? (await nextId(redis, "channel"));
  const couriers = mergeBy(
    before ? parseStored<object[]>(before.couriers) : [],
    (channel.couriers ?? []).map((courier) => courier as object),
    (courier) => (courier as { code: string }).code,
  );
  const { templates, ...emails } = channel.emails ?? {};
  await save("channel", String(id), before, {
    id,
    companyId,
    code: channel.code,
    name: channel.name ?? before?.name ?? channel.code,
    ...activation(channel.active, before),
    language: channel.language ?? before?.language ?? "it",
    bucketSize: channel.rateLimit?.bucketSize ?? before?.bucketSize ?? 300,
    refillRate: channel.rateLimit?.refillRate ?? before?.refillRate ?? 150,
    trackingPage: channel.trackingPage ?? before?.trackingPage ?? false,
    addressCheck: channel.addressCheck ?? before?.addressCheck ?? false,
    couriers: JSON.stringify(couriers.map(withCourierDefaults)),
    sender: channel.sender ? JSON.stringify(channel.sender) : (before?.sender ?? ""),
    emails: channel.emails
      ? JSON.stringify({ ...(before?.emails ? parseStored<object>(before.emails) : {}), ...emails })
      : (before?.emails ?? ""),
    webhookV1: channel.webhookV1 ? JSON.stringify(channel.webhookV1) : (before?.webhookV1 ?? ""),
  } satisfies ChannelEntity);
  await writeContents(writer, channel, { companyId, channelId: id });
}

/** What belongs to the channel and stands in entities of its own. */
async function writeContents(
  writer: SetupWriter,
  channel: SetupChannel,
  owner: { readonly companyId: number; readonly channelId: number },
): Promise<void> {
  const { redis, stored, nowMs, save } = writer;
  const { channelId } = owner;
  for (const key of channel.apiKeys ?? []) await writeApiKey(writer, key, channelId, channel.code);
  for (const webhook of channel.webhooks ?? []) {
    await writeWebhook(writer, webhook, channelId, channel.code);
  }
  for (const template of channel.emails?.templates ?? []) {
    const entity: TemplateEntity = { channelId, ...template };
    const templateKey = templateId(entity);
    await save("template", templateKey, stored.templates.get(templateKey), entity);
  }
  const orders = await putOrders(redis, owner, channel.orders ?? [], nowMs);
  writer.written += orders.filter(({ outcome }) => outcome !== "unchanged").length;
  for (const row of channel.sandbox ?? []) {
    if (await putSandbox(redis, owner, row, fingerprintOf(row), nowMs)) writer.written += 1;
  }
}

async function writeApiKey(
  writer: SetupWriter,
  key: SetupApiKey,
  channelId: number,
  channel: string,
): Promise<void> {
  const { redis, stored, save } = writer;
  const before = stored.apiKeys.get(`${channelId}:${key.code}`);
  const id = before?.id ?? (await nextId(redis, "apiKey"));
  await save("apiKey", String(id), before, {
    id,
    channelId,
    code: key.code,
    hash: key.key ? hashToken(key.key) : (before?.hash ?? newKeyHash(writer, channel, key.code)),
    active: key.active ?? before?.active ?? true,
    companyWideRead: key.companyWideRead ?? before?.companyWideRead ?? false,
    scopes: listOf(key.scopes, before?.scopes ?? JSON.stringify(SCOPES)),
    revokedHash: before?.revokedHash ?? "",
  } satisfies ApiKeyEntity);
}

function newKeyHash({ generated }: SetupWriter, channel: string, code: string): string {
  const secret = newToken("key_");
  generated.push({ owner: `channel ${channel}, API key ${code}`, secret });
  return hashToken(secret);
}

/** The panel's word stands until a file says something else than the file before it. */
function activation(given: boolean | undefined, before: ChannelEntity | undefined) {
  const last = before?.setupActive ?? "";
  const current = before?.active ?? true;
  if (given === undefined) return { active: current, setupActive: last };
  return { active: last === String(given) ? current : given, setupActive: String(given) };
}

function withCourierDefaults(courier: object): object {
  const defaults = { transcodings: [], senderAccounts: [], shippingEnabled: true };
  return { ...defaults, labelFormat: "PDF", errorLabel: false, ...courier };
}
