/**
 * Looks for alarms every few seconds, opens and ends incidents, and notifies their receivers. One panel at a time does, the one that holds the
 * lock. The state is in the store, so another one can go on.
 *
 * | what happens                               | what follows                                                    |
 * |--------------------------------------------|-----------------------------------------------------------------|
 * | a finding lasts for its time               | an incident opens, and each receiver of its owner is notified   |
 * | it is gone for a minute                    | the incident is over, and those notified before are notified     |
 * | a receiver is new, or it becomes critical  | a receiver not notified of an open incident is notified         |
 * | it is unknown whether it lasts             | the incident stays as it is                                     |
 * | another finding is its cause               | nobody is notified                                              |
 * | a receiver cannot be reached               | again after 1 minute, an hour at most later, 30 times           |
 * | the answer says that it never can be       | dropped, and shown at the receiver                              |
 * | this process dies in the middle            | another one goes on; a receiver may be notified twice           |
 * | the owner has been closed                  | its incidents end, and nobody is notified                       |
 * | no panel runs                              | nothing is judged; what is no incident yet begins again         |
 */
import { randomBytes } from "node:crypto";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Insights } from "#analytics/insights.ts";
import { type Incident, lookAgain, type Seen } from "#core/alarms/rules/incident.ts";
import {
  messageAbout,
  type Notification,
  notificationName,
  waitAfter,
} from "#core/alarms/rules/notification.ts";
import {
  dropNotification,
  NOTIFICATIONS_WAITING,
  readNotifications,
  readOpen,
  saveLook,
  settleNotification,
} from "#core/alarms/store/incidents.ts";
import { allReceivers } from "#core/alarms/store/receivers.ts";
import type { AlarmReceiverEntity } from "#core/configuration/rules/entities.ts";
import { createMailer } from "#core/platform/process/mail.ts";
import { alarmNotifications } from "#core/platform/process/metrics.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { ALARM_KEYS } from "#core/platform/redis/keys.ts";
import { type Lock, takeLock } from "#core/platform/redis/lock.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { createTransport, readCa } from "#core/webhooks/store/transport/transport.ts";
import { silenceByHour } from "#panel/server/operations/silent-couriers.ts";
import { findAlarms } from "./find-alarms.ts";
import { type TellDeps, tellReceiver } from "./tell-receiver.ts";

const LOOK_EVERY_MS = 10_000;
const LOCK = {
  leaseMs: limit(
    30_000,
    "lease of the lock under which one panel looks for alarms",
    "renewed after a third; another panel looks after so long if the holder is killed",
  ),
  waitLimitMs: 0,
};
/** Receivers notified at once. */
const AT_ONCE = 20;

export interface AlarmDeps extends Pick<Runtime, "redis" | "live" | "log" | "config"> {
  readonly telling: TellDeps;
  readonly benchmarks: Benchmarks;
  readonly insights: Pick<Insights, "silence"> | undefined;
}

/** @throws when WEBHOOK_CA_FILE cannot be read or holds no certificate */
export async function openTelling({ config, secrets }: Pick<Runtime, "config" | "secrets">) {
  const transport = createTransport({
    allowed: config.webhookAllowedCidrs,
    ca: await readCa(config.webhookCaFile),
  });
  return { mailer: createMailer(config), transport, vault: secrets.vault };
}

export async function startWatchingAlarms(
  runtime: Runtime,
  benchmarks: Benchmarks,
  insights: Insights,
): Promise<Ticking> {
  const { redis, live, log, config } = runtime;
  const telling = await openTelling(runtime);
  const silence = silenceByHour(insights.silence);
  const deps = { redis, live, log, config, benchmarks, insights: { silence }, telling };
  for (const outcome of ["told", "failed"]) alarmNotifications.inc({ outcome }, 0);
  const ticking = startTickingThroughOutages(log, "alarms", LOOK_EVERY_MS, () => watchOnce(deps));
  return {
    async stop() {
      await ticking.stop();
      telling.mailer.close();
      telling.transport.close();
    },
  };
}

/** One look; with nothing new it changes nothing. Does nothing while another process looks. */
export async function watchOnce(deps: AlarmDeps): Promise<void> {
  const lock = await takeLock(deps.redis, ALARM_KEYS.lock, LOCK);
  if (lock === null) return;
  try {
    await look(deps, lock);
    await tellDue(deps, lock);
  } finally {
    await lock.release();
  }
}

async function look({ redis, live, log, benchmarks, insights }: AlarmDeps, lock: Lock) {
  await live.followTestClock();
  const [{ findings, isUnknown }, known, receivers, waiting] = await Promise.all([
    findAlarms({ redis, live }, benchmarks, insights),
    readOpen(redis),
    allReceivers(redis),
    readNotifications(redis),
  ]);
  const nowMs = live.now();
  const newId = () => `inc_${randomBytes(8).toString("hex")}`;
  const seen = lookAgain({ known, findings, isUnknown, nowMs, newId });
  const room = Math.max(0, NOTIFICATIONS_WAITING - waiting.length);
  const { known: told, notifications } = notify(seen, receivers, room, nowMs);
  await lock.assertHeld();
  await saveLook(redis, known, { ...seen, known: told }, notifications);
  for (const { id, owner, kind, subject } of seen.opened) {
    log.warn({ incident: id, owner, kind, subject }, "an incident has opened");
  }
  for (const { id, owner, kind, subject } of seen.over) {
    log.info({ incident: id, owner, kind, subject }, "an incident is over");
  }
}

interface Notified {
  readonly known: readonly Incident[];
  readonly notifications: readonly Notification[];
}

/** Receivers not notified of an open incident are notified now: a new one too, and one for what has become critical. */
function notify(
  { known, over }: Seen,
  receivers: readonly AlarmReceiverEntity[],
  room: number,
  nowMs: number,
): Notified {
  const notifications: Notification[] = [];
  for (const incident of over) {
    for (const receiverId of incident.told.slice(0, Math.max(0, room - notifications.length))) {
      notifications.push({ incident, receiverId, news: "over", attempts: 0, dueMs: nowMs });
    }
  }
  const after = known.map((incident) => {
    if (incident.openedAtMs === null) return incident;
    const untold = receivers
      .filter((one) => isFor(one, incident) && !incident.told.includes(one.id))
      .slice(0, Math.max(0, room - notifications.length));
    for (const { id } of untold) {
      notifications.push({
        incident,
        receiverId: id,
        news: "opened",
        attempts: 0,
        dueMs: nowMs,
      });
    }
    return { ...incident, told: [...incident.told, ...untold.map(({ id }) => id)] };
  });
  return { known: after, notifications };
}

function isFor({ owner, active, severity }: AlarmReceiverEntity, incident: Incident): boolean {
  const isGrave = severity === "warning" || incident.severity === "critical";
  return active && owner === incident.owner && isGrave;
}

/** A receiver gets its notifications in order: the end of an incident never before its beginning. */
async function tellDue(deps: AlarmDeps, lock: Lock): Promise<void> {
  const waiting = await readNotifications(deps.redis);
  if (waiting.length === 0) return;
  const receivers = new Map((await allReceivers(deps.redis)).map((one) => [one.id, one]));
  const nowMs = deps.live.now();
  const isBehind = ({ incident, receiverId, news }: Notification) =>
    news === "over" &&
    waiting.some(
      (other) =>
        other.news === "opened" &&
        other.receiverId === receiverId &&
        other.incident.id === incident.id,
    );
  const due = waiting.filter((one) => one.dueMs <= nowMs && !isBehind(one)).slice(0, AT_ONCE);
  await lock.assertHeld();
  await Promise.all(due.map((one) => tell(deps, one, receivers.get(one.receiverId))));
}

async function tell(
  { redis, live, log, config, telling }: AlarmDeps,
  notification: Notification,
  receiver: AlarmReceiverEntity | undefined,
): Promise<void> {
  const { incident, news, attempts } = notification;
  if (!receiver?.active || isClosed(live.configuration(), receiver.owner)) {
    await dropNotification(redis, notification);
    return;
  }
  const message = messageAbout(incident, news, receiver.language, config.publicUrl);
  const outcome = await tellReceiver(telling, receiver, message, notificationName(notification));
  const atMs = live.now();
  alarmNotifications.inc({ outcome: outcome.kind });
  if (outcome.kind === "told") {
    await settleNotification(redis, notification, { atMs, error: null }, null);
    return;
  }
  const waitMs = outcome.isFinal ? null : waitAfter(attempts + 1);
  const again =
    waitMs === null ? null : { ...notification, attempts: attempts + 1, dueMs: atMs + waitMs };
  const about = { receiver: receiver.id, incident: incident.id, reason: outcome.error };
  if (again) log.warn(about, "a receiver of alarms could not be notified; retrying");
  else log.error(about, "a receiver of alarms could not be notified; dropped");
  await settleNotification(redis, notification, { atMs, error: outcome.error }, again);
}

type Closable = Pick<ReturnType<Runtime["live"]["configuration"]>, "companies">;

function isClosed({ companies }: Closable, owner: string): boolean {
  const company = [...companies.values()].find(({ code }) => owner === `company ${code}`);
  return (company?.closedAtMs ?? 0) > 0;
}
