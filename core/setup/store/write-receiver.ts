/** The receivers of alarms of a setup file. */
import { settingsAfter } from "#core/configuration/rules/entity.ts";
import { ALARM_RECEIVER_SETTINGS } from "#core/configuration/rules/settings.ts";
import {
  deletedReceiver,
  newReceiverId,
  receiverName,
} from "#core/configuration/store/receiver-entity.ts";
import { DELETED_SETTINGS_KEY } from "#core/platform/redis/keys.ts";
import { ownerOfReceiver, type SetupAlarmReceiver } from "#core/setup/rules/setup.ts";
import { fingerprintOf } from "./setup-webhooks.ts";
import type { SetupWriter } from "./setup-writer.ts";

export async function writeReceiver(
  { redis, stored, vault, nowMs, save }: SetupWriter,
  receiver: SetupAlarmReceiver,
): Promise<void> {
  const { code, url } = receiver;
  const owner = ownerOfReceiver(receiver);
  const name = receiverName({ owner, code });
  const field = deletedReceiver(name);
  const before = stored.alarmReceivers.get(name);
  const fileEntry = fingerprintOf(receiver);
  const applied = before ? before.fileEntry : stored.deletedSettings.get(field);
  // What the panel has changed or deleted since stays so until the file's entry itself changes.
  if (applied === fileEntry) return;
  const settings = settingsAfter(ALARM_RECEIVER_SETTINGS, receiver, before ?? {});
  const hasMail = (receiver.email ?? "") !== "";
  const id = before?.id ?? newReceiverId();
  await save("alarmReceiver", id, before, {
    ...settings,
    id,
    owner,
    code,
    email: url === undefined ? settings.email : "",
    url: url === undefined ? (hasMail ? "" : (before?.url ?? "")) : vault.seal(url),
    createdAtMs: before?.createdAtMs ?? nowMs,
    fileEntry,
  });
  await redis.hDel(DELETED_SETTINGS_KEY, field);
}
