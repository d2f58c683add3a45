/**
 * Takes alerts out of their outbox and mails them. An alert leaves the outbox after the mail server has taken it: a crash
 * in between sends the same message, under the same Message-ID, once more, and loses none.
 *
 * | what happens                        | what follows                                                |
 * |-------------------------------------|-------------------------------------------------------------|
 * | the mail server has taken it        | out of the outbox                                           |
 * | it has not                          | again after 1 minute, an hour at most later, for 7 days     |
 * | still not after 7 days              | dropped, with an error in the log                           |
 * | the endpoint is gone                | dropped: nobody is left to be told                          |
 * | this process dies with it           | another one takes it once its claim has expired             |
 * | the store is unavailable            | nothing is mailed; what was is remembered, and taken out    |
 * | an internal error                   | retried after 1 minute; the others continue                 |
 */
import { type AlertFacts, alertMail } from "#core/domain/alert-mail.ts";
import type { Log } from "#core/log.ts";
import type { Mail, Mailer } from "#core/mail.ts";
import { internalErrors, webhookAlertMails } from "#core/metrics.ts";
import { type Alert, claimAlert, readAlerts, removeAlert } from "#core/redis/alerts.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Configuration } from "#core/redis/configuration.ts";
import type { Live } from "#core/redis/live.ts";
import { describeFailure, isStoreUnavailable } from "#core/redis/store-unavailable.ts";
import { startTicking, type Ticking } from "#core/tick.ts";

const TICK_MS = 1_000;
/** Alerts looked at of each partition: two of each endpoint at most stand there. */
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

/** Alerts that the mail server has accepted but that are still in the outbox. */
type Mailed = Set<string>;

export function startAlertMailer(deps: AlertMailerDeps): Ticking {
  const mailed: Mailed = new Set();
  return startTicking(
    TICK_MS,
    (isStopping) => mailAlerts(deps, mailed, isStopping),
    (error) => deps.log.warn({ reason: describeFailure(error) }, "webhook alerts are delayed"),
  );
}

async function mailAlerts(
  deps: AlertMailerDeps,
  mailed: Mailed,
  isStopping: () => boolean,
): Promise<void> {
  const { redis, live, log } = deps;
  const alerts = await readAlerts(redis, AT_ONCE);
  if (alerts.length === 0) return;
  const configuration = await live.refresh();
  for (const alert of alerts) {
    if (isStopping()) return;
    if (mailed.has(nameOf(alert))) {
      await takeOut(redis, mailed, alert);
      continue;
    }
    const claim = await claimAlert(redis, alert);
    if (claim === null) continue;
    try {
      const againMs = await mailAlert(deps, mailed, alert, configuration);
      await (againMs === null ? claim.release() : claim.releaseAfter(againMs));
    } catch (error) {
      // The mail may have been sent: nobody else may claim the alert before this process has had time to remove it.
      await claim.releaseAfter(FIRST_WAIT_MS);
      if (isStoreUnavailable(error, redis)) throw error;
      internalErrors.inc({ part: "webhook alerts" });
      log.error({ err: error, endpoint: alert.endpointId }, "a webhook alert is delayed");
    }
  }
}

function nameOf({ partition, id }: Alert): string {
  return `${partition} ${id}`;
}

async function takeOut(redis: Redis, mailed: Mailed, alert: Alert): Promise<void> {
  await removeAlert(redis, alert);
  mailed.delete(nameOf(alert));
}

/** @returns milliseconds until the next attempt; null = the alert is out of the outbox */
async function mailAlert(
  { redis, live, log, mailer }: AlertMailerDeps,
  mailed: Mailed,
  alert: Alert,
  configuration: Configuration,
): Promise<number | null> {
  const mail = mailOf(alert, configuration);
  try {
    if (mail !== null) await mailer.send(mail);
  } catch (error) {
    const ageMs = live.now() - alert.atMs;
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

function mailOf({ partition, id, ...alert }: Alert, configuration: Configuration): Mail | null {
  const endpoint = configuration.endpoints.get(alert.endpointId);
  const channel = endpoint && configuration.channels.get(endpoint.channelId);
  if (!channel) return null;
  const { kind, sinceMs } = alert;
  const facts: AlertFacts = { kind, sinceMs, channelName: channel.name, url: endpoint.url };
  return {
    messageId: `webhook-alert.${alert.endpointId}.${partition}.${id}@waybill.invalid`,
    to: endpoint.alertEmail,
    ...alertMail(facts, channel.language),
  };
}
