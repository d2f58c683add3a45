/** Receivers of alarms, made, changed and deleted by the panel. A setup file names them too (`core/setup/store/write-receiver.ts`). */
import type { AlarmReceiverEntity } from "#core/configuration/rules/entities.ts";
import { refuseStale } from "#core/configuration/store/change-context.ts";
import {
  allEntities,
  bumpVersion,
  readEntity,
  removeEntity,
  type Stored,
  saveEntity,
} from "#core/configuration/store/entities.ts";
import {
  deletedReceiver,
  RECEIVERS_PER_OWNER,
  receiverName,
} from "#core/configuration/store/receiver-entity.ts";
import { expectSetupLock, underSetupLock } from "#core/configuration/store/setup-lock.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { DELETED_SETTINGS_KEY } from "#core/platform/redis/keys.ts";
import { forgetTold } from "./incidents.ts";

export function allReceivers(redis: Redis): Promise<Stored<"alarmReceiver">[]> {
  return allEntities(redis, "alarmReceiver");
}

export function readReceiver(redis: Redis, id: string): Promise<Stored<"alarmReceiver"> | null> {
  return readEntity(redis, "alarmReceiver", id);
}

/** @returns null when its owner has as many as there may be */
export function createReceiver(
  redis: Redis,
  receiver: AlarmReceiverEntity,
): Promise<Stored<"alarmReceiver"> | null> {
  return underSetupLock(redis, async () => {
    const own = (await allReceivers(redis)).filter(({ owner }) => owner === receiver.owner);
    if (own.length >= RECEIVERS_PER_OWNER) return null;
    const { entity } = await saveEntity(redis, "alarmReceiver", receiver.id, receiver);
    await bumpVersion(redis);
    return entity;
  });
}

/** @param changeOf may throw to refuse the change @returns what it was and what it is; null if there is none */
export function changeReceiver(
  redis: Redis,
  id: string,
  changeOf: (before: AlarmReceiverEntity) => Partial<AlarmReceiverEntity>,
) {
  return underSetupLock(redis, async () => {
    const before = await readEntity(redis, "alarmReceiver", id);
    if (!before) return null;
    const wanted = { ...before, ...changeOf(before) };
    const { entity: after, isWritten } = await saveEntity(redis, "alarmReceiver", id, wanted);
    if (isWritten) await bumpVersion(redis);
    return { before, after };
  });
}

/** A setup file does not bring it back while its entry stays the same. @returns what it was; null if there was none */
export function deleteReceiver(redis: Redis, id: string): Promise<Stored<"alarmReceiver"> | null> {
  return underSetupLock(redis, async () => {
    const before = await readEntity(redis, "alarmReceiver", id);
    refuseStale(before);
    if (!before) return null;
    await expectSetupLock();
    if (before.fileEntry) {
      const field = deletedReceiver(receiverName(before));
      await redis.hSet(DELETED_SETTINGS_KEY, field, before.fileEntry);
    }
    await removeEntity(redis, "alarmReceiver", id);
    await bumpVersion(redis);
    await forgetTold(redis, id);
    return before;
  });
}
