/**
 * Takes alerts out of their outbox and mails them. An alert leaves the outbox after the mail server has taken it: a crash
 * in between sends the same message, under the same Message-ID, once more, and loses none.
 *
 * | what happens                        | what follows                                                |
 * |-------------------------------------|-------------------------------------------------------------|
 * | the mail server has taken it        | out of the outbox                                           |
 * | it has not                          | again after 1 minute, an hour at most later, for 7 days     |
 * | still not after 7 days in which     | dropped, with an error in the log                           |
 * | processors were running             |                                                             |
 * | an earlier one of the endpoint waits| it waits behind that one: "works again" is never first      |
 * | the endpoint is gone                | dropped: nobody is left to notify                           |
 * | it works again, but has been        | taken back: its next success raises it again                |
 * | switched off since                  |                                                             |
 * | this process dies with it           | another one takes it once its claim has expired             |
 * | the store is unavailable            | nothing is mailed; what was is remembered, and taken out    |
 * | an error of ours                    | again after 1 minute; the others go on                      |
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import { createRunningTime, type RunningTime } from "#core/platform/log/running-time.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Mail, Mailer } from "#core/platform/process/mail.ts";
import { internalErrors, webhookAlertMails } from "#core/platform/process/metrics.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { type AlertFacts, alertMail } from "#core/webhooks/rules/alert-mail.ts";
import { endpointPage } from "#core/webhooks/rules/panel-link.ts";
import {
  type Alert,
  claimAlert,
  readAlerts,
  removeAlert,
  withdrawRecovery,
} from "#core/webhooks/store/alerts.ts";
import { forgetAlerted } from "#core/webhooks/store/endpoints.ts";
import { readLastFailure } from "#core/webhooks/store/last-failures.ts";

const TICK_MS = 2_000;
/** Alerts looked at of each partition, the oldest. */
const AT_ONCE = 1_000;
const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 3_600_000;
const KEPT_MS = 7 * 86_400_000;

export interface AlertMailerDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
  readonly mailer: Mailer;
}

/** Alerts that the mail server has taken and that are not out of the outbox yet. */
type Mailed = Set<string>;

/** One alert, and how long it has waited while processors were running. */
interface Waiting {
  readonly alert: Alert;
  readonly ageMs: number;
}

export function startAlertMailer(deps: AlertMailerDeps): Ticking {
  const mailed: Mailed = new Set();
  for (const outcome of ["sent", "failed"]) webhookAlertMails.inc({ outcome }, 0);
  const running = createRunningTime(deps.redis);
  const ticking = startTickingThroughOutages(deps.log, "webhook alerts", TICK_MS, (isStopping) =>
    mailAlerts(deps, mailed, running, isStopping),
  );
  return {
    async stop() {
      await ticking.stop();
      await deps.live.followTestClock().catch(() => {});
      await running.end(deps.live.now());
    },
  };
}

async function mailAlerts(
  deps: AlertMailerDeps,
  mailed: Mailed,
  running: RunningTime,
  isStopping: () => boolean,
): Promise<void> {
  const alerts = await readAlerts(deps.redis, AT_ONCE);
  if (alerts.length === 0) return;
  const configuration = await deps.live.refresh();
  const nowMs = deps.live.now();
  const runningMs = await running.note(nowMs);
  /** Endpoints with an alert that is still to be mailed. */
  const waiting = new Set<string>();
  for (const alert of alerts) {
    if (isStopping()) return;
    if (waiting.has(alert.endpointId)) continue;
    const ageMs = runningMs(alert.atMs, nowMs);
    const isDone = await handleAlert(deps, mailed, { alert, ageMs }, configuration);
    if (!isDone) waiting.add(alert.endpointId);
  }
}

/** @returns whether it is out of the outbox */
async function handleAlert(
  deps: AlertMailerDeps,
  mailed: Mailed,
  waiting: Waiting,
  configuration: Configuration,
): Promise<boolean> {
  const { redis, log } = deps;
  const { alert } = waiting;
  if (mailed.has(nameOf(alert))) {
    await takeOut(redis, mailed, alert);
    return true;
  }
  const claim = await claimAlert(redis, alert);
  if (claim === null) return false;
  try {
    const againMs = await mailAlert(deps, mailed, waiting, configuration);
    await (againMs === null ? claim.release() : claim.releaseAfter(againMs));
    return againMs === null;
  } catch (error) {
    // The mail may have gone out: nobody else takes the alert before this process has had time to take it out.
    await claim.releaseAfter(FIRST_WAIT_MS);
    if (isStoreUnavailable(error, redis)) throw error;
    internalErrors.inc({ part: "webhook alerts" });
    log.error({ err: error, endpoint: alert.endpointId }, "webhook alert failed; retrying");
    return false;
  }
}

function nameOf({ partition, id }: Alert): string {
  return `${partition} ${id}`;
}

async function takeOut(redis: Redis, mailed: Mailed, alert: Alert): Promise<void> {
  await removeAlert(redis, alert);
  mailed.delete(nameOf(alert));
}

/** @returns milliseconds until it is tried again; null = it is out of the outbox */
async function mailAlert(
  { redis, live, log, mailer }: AlertMailerDeps,
  mailed: Mailed,
  { alert, ageMs }: Waiting,
  configuration: Configuration,
): Promise<number | null> {
  const endpoint = configuration.endpoints.get(alert.endpointId);
  if (alert.kind === "recovered" && endpoint && !endpoint.active) {
    await withdrawRecovery(redis, alert);
    return null;
  }
  const { partition, endpointId } = alert;
  const isFailing = alert.kind !== "recovered";
  const failure = isFailing
    ? await readLastFailure(redis, partition, endpointId, live.now())
    : null;
  const mail = mailOf(alert, configuration, failure?.error ?? null);
  try {
    if (mail === null) await forgetAlerted(redis, partition, endpointId);
    else await mailer.send(mail);
  } catch (error) {
    // Never the server's own words: they may repeat the address.
    const { code = "failed" } = error as { code?: string };
    const about = { endpoint: alert.endpointId, kind: alert.kind, reason: code };
    webhookAlertMails.inc({ outcome: "failed" });
    if (ageMs <= KEPT_MS) {
      log.warn(about, "webhook alert could not be mailed; retrying");
      return waitMs(ageMs);
    }
    log.error(about, "webhook alert could not be mailed; dropped");
    await removeAlert(redis, alert);
    return null;
  }
  if (mail !== null) webhookAlertMails.inc({ outcome: "sent" });
  mailed.add(nameOf(alert));
  await takeOut(redis, mailed, alert);
  return null;
}

/** As long again as the alert has waited already. */
function waitMs(ageMs: number): number {
  return Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, ageMs));
}

function mailOf(
  { partition, id, ...alert }: Alert,
  configuration: Configuration,
  lastError: string | null,
): Mail | null {
  const endpoint = configuration.endpoints.get(alert.endpointId);
  const channel = endpoint && configuration.channels.get(endpoint.channelId);
  if (!channel) return null;
  const { kind, sinceMs, atMs } = alert;
  const { code, url } = endpoint;
  const link = endpointPage(configuration.publicUrl, endpoint.id);
  const channelName = channel.name;
  const facts: AlertFacts = { kind, sinceMs, atMs, channelName, code, url, lastError, link };
  return {
    messageId: `webhook-alert.${alert.endpointId}.${partition}.${id}@waybill.invalid`,
    to: endpoint.alertEmail,
    ...alertMail(facts, channel.language),
  };
}
