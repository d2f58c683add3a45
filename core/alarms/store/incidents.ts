/**
 * Incidents and notifications that are still to be sent, in one slot: an incident opens, or ends, in the same step that queues them. Only
 * the panel that holds the lock looks and tells (`panel/server/alarms/watch-alarms.ts`).
 */
import { isKnownKind } from "#core/alarms/rules/alarm.ts";
import { type Incident, nameOf, type Seen } from "#core/alarms/rules/incident.ts";
import { type Notification, notificationName } from "#core/alarms/rules/notification.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { ALARM_KEYS } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";

export const INCIDENTS_KEPT = limit(
  200,
  "incidents of an owner that are over",
  "the oldest are forgotten",
);
const KEPT_DAYS = limit(
  90,
  "days that incidents which are over are kept",
  "after so long without another one, all of an owner are forgotten",
);
export const NOTIFICATIONS_WAITING = limit(
  10_000,
  "notifications of alarms on their way",
  "further incidents are not notified until there is room",
);
const KEPT_MS = KEPT_DAYS * 86_400_000;

export async function readOpen(redis: Redis): Promise<Incident[]> {
  return incidentsOf(Object.values(await redis.hGetAll(ALARM_KEYS.open)));
}

/** Newest first. */
export async function readPast(redis: Redis, owner: string): Promise<Incident[]> {
  return incidentsOf(await redis.lRange(ALARM_KEYS.past(owner), 0, INCIDENTS_KEPT - 1));
}

/** Open, or over and kept. */
export async function findIncident(
  redis: Redis,
  owner: string,
  id: string,
): Promise<Incident | null> {
  const [open, past] = await Promise.all([readOpen(redis), readPast(redis, owner)]);
  const own = [...open.filter(isOpened), ...past];
  return own.find((one) => one.id === id && one.owner === owner) ?? null;
}

export function isOpened({ openedAtMs }: Incident): boolean {
  return openedAtMs !== null;
}

/** A later version may have kinds that this one does not know. */
function incidentsOf(texts: readonly string[]): Incident[] {
  return texts.map((text) => JSON.parse(text) as Incident).filter(({ kind }) => isKnownKind(kind));
}

export async function readNotifications(redis: Redis): Promise<Notification[]> {
  const texts = Object.values(await redis.hGetAll(ALARM_KEYS.outbox));
  return texts.map((text) => JSON.parse(text) as Notification);
}

/** What a look has found, and the notifications about it, in one step. */
export async function saveLook(
  redis: Redis,
  before: readonly Incident[],
  { known, over }: Seen,
  notifications: readonly Notification[],
): Promise<void> {
  const kept = new Set(known.map(nameOf));
  const gone = before.map(nameOf).filter((name) => !kept.has(name));
  const step = redis.multi();
  for (const incident of known) {
    step.hSet(ALARM_KEYS.open, nameOf(incident), JSON.stringify(incident));
  }
  if (gone.length > 0) step.hDel(ALARM_KEYS.open, gone);
  for (const incident of over) {
    const past = ALARM_KEYS.past(incident.owner);
    step
      .lPush(past, JSON.stringify(incident))
      .lTrim(past, 0, INCIDENTS_KEPT - 1)
      .pExpire(past, KEPT_MS);
  }
  for (const one of notifications) {
    step.hSet(ALARM_KEYS.outbox, notificationName(one), JSON.stringify(one));
  }
  if (known.length + gone.length + notifications.length > 0) await step.exec();
}

/** When a receiver was last notified, or what went wrong. */
export interface Told {
  readonly atMs: number;
  /** Null = it has arrived. */
  readonly error: string | null;
}

/** @param again the same notification with its next attempt; null = it is off the list */
export async function settleNotification(
  redis: Redis,
  notification: Notification,
  told: Told,
  again: Notification | null,
): Promise<void> {
  const name = notificationName(notification);
  const step = redis.multi().hSet(ALARM_KEYS.told, notification.receiverId, JSON.stringify(told));
  if (again) step.hSet(ALARM_KEYS.outbox, name, JSON.stringify(again));
  else step.hDel(ALARM_KEYS.outbox, name);
  await step.exec();
}

/** Of a receiver that is deleted, off, or no longer concerned. */
export async function dropNotification(redis: Redis, notification: Notification): Promise<void> {
  await redis.hDel(ALARM_KEYS.outbox, notificationName(notification));
}

export async function noteTold(redis: Redis, receiverId: string, told: Told): Promise<void> {
  await redis.hSet(ALARM_KEYS.told, receiverId, JSON.stringify(told));
}

export async function forgetTold(redis: Redis, receiverId: string): Promise<void> {
  await redis.hDel(ALARM_KEYS.told, receiverId);
}

export async function readTold(redis: Redis): Promise<ReadonlyMap<string, Told>> {
  const texts = Object.entries(await redis.hGetAll(ALARM_KEYS.told));
  return new Map(texts.map(([id, text]) => [id, JSON.parse(text) as Told]));
}

export interface Acknowledgement {
  readonly by: string;
  readonly atMs: number;
}

/** The first one counts. */
export async function acknowledge(
  redis: Redis,
  incidentId: string,
  acknowledgement: Acknowledgement,
): Promise<void> {
  const text = JSON.stringify(acknowledgement);
  await redis.set(ALARM_KEYS.acknowledged(incidentId), text, { NX: true, PX: 2 * KEPT_MS });
}

/** In the order of the ids; null = nobody has. */
export async function readAcknowledgements(
  redis: Redis,
  incidentIds: readonly string[],
): Promise<(Acknowledgement | null)[]> {
  if (incidentIds.length === 0) return [];
  const texts = await redis.mGet(incidentIds.map(ALARM_KEYS.acknowledged));
  return texts.map((text) => (text === null ? null : (JSON.parse(text) as Acknowledgement)));
}
