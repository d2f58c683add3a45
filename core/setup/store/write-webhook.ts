/** The webhooks of a setup file (document 3, "Endpoint configuration"). */

import type { EndpointEntity } from "#core/configuration/rules/entities.ts";
import { settingsAfter } from "#core/configuration/rules/entity.ts";
import { ENDPOINT_SETTINGS } from "#core/configuration/rules/settings.ts";
import {
  earlierTargetsAfter,
  newEndpointId,
  newWebhookSecret,
  rotatedSecret,
} from "#core/configuration/store/endpoint-entity.ts";
import { DELETED_WEBHOOKS_KEY } from "#core/platform/redis/keys.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { SetupWebhook } from "#core/setup/rules/setup.ts";
import { sealedHeaders } from "#core/webhooks/rules/custom-headers.ts";
import { fingerprintOf, isRotation } from "./setup-webhooks.ts";
import type { SetupWriter } from "./setup-writer.ts";

export async function writeWebhook(
  writer: SetupWriter,
  webhook: SetupWebhook,
  channelId: number,
  channel: string,
): Promise<void> {
  const { redis, stored, nowMs, save, by, vault } = writer;
  const key = `${channelId}:${webhook.code}`;
  const before = stored.endpoints.get(key);
  const applied = before ? before.fileEntry : stored.deletedWebhooks.get(key);
  const fileEntry = by === "file" ? fingerprintOf(webhook) : (applied ?? "");
  // What the panel has changed or deleted since stays so until the file's entry itself changes.
  if (by === "file" && applied === fileEntry) return;
  const id = before?.id ?? newEndpointId();
  const settings = settingsAfter(ENDPOINT_SETTINGS, webhook, before ?? {});
  const { standardWebhooks, bodyFormat } = settings;
  const target = { url: webhook.url, standardWebhooks, bodyFormat };
  await save("endpoint", id, before, {
    id,
    channelId,
    code: webhook.code,
    url: webhook.url,
    ...settings,
    headers: sealedHeaders(webhook.headers ?? before?.headers ?? {}, before?.headers ?? {}, vault),
    earlierTargets: before ? earlierTargetsAfter(before, target) : [],
    alertEmail: webhook.alertEmail,
    active: before?.active ?? true,
    disabled: before?.disabled ?? null,
    createdAtMs: before?.createdAtMs ?? nowMs,
    fileEntry,
    ...webhookSecret(writer, webhook, before, channel),
  });
  await redis.hDel(DELETED_WEBHOOKS_KEY, key);
}

/** The old secret signs for 24 hours more. */
function webhookSecret(
  { vault, nowMs, generated, by }: SetupWriter,
  { code, secret }: SetupWebhook,
  before: EndpointEntity | undefined,
  channel: string,
): Pick<EndpointEntity, "secret" | "previousSecret" | "previousUntilMs" | "fileSecretHash"> {
  const ofFile = secret === undefined ? "" : hashToken(secret);
  const fileSecretHash = by === "file" ? ofFile : (before?.fileSecretHash ?? "");
  if (before) {
    const { secret: sealed, previousSecret, previousUntilMs } = before;
    return secret !== undefined && isRotation(by, secret, before, vault)
      ? { ...rotatedSecret(sealed, vault.seal(secret), nowMs), fileSecretHash }
      : { secret: sealed, previousSecret, previousUntilMs, fileSecretHash };
  }
  const value = secret ?? newWebhookSecret();
  if (secret === undefined) {
    generated.push({ owner: `channel ${channel}, webhook ${code}`, secret: value });
  }
  return { secret: vault.seal(value), previousSecret: null, previousUntilMs: 0, fileSecretHash };
}
