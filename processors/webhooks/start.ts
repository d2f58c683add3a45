/** The webhook part of the processors: decisions from the change log, deliveries, test events, health clocks, replays, alerts. */

import { startConsumer } from "#core/platform/log/consumer.ts";
import { createMailer } from "#core/platform/process/mail.ts";
import type { Running, Runtime } from "#core/runtime/runtime.ts";
import { createTransport, readCa } from "#core/webhooks/store/transport/transport.ts";
import { startAlertMailer } from "./alert-mailer.ts";
import { decideHandler } from "./decide.ts";
import { startDeliverer } from "./deliver.ts";
import { startHealthClock } from "./health-clock.ts";
import { startReplayJobs } from "./replay-jobs.ts";
import { startTestSender } from "./test-events.ts";

/** Changes decided at once. */
const BATCH = 1_600;

/** @throws when WEBHOOK_CA_FILE cannot be read or holds no certificate. */
export async function startWebhooks(runtime: Runtime): Promise<Running> {
  const { redis, log, live, config, secrets } = runtime;
  const transport = createTransport({
    allowed: config.webhookAllowedCidrs,
    ca: await readCa(config.webhookCaFile),
  });
  const sending = { redis, log, live, transport, vault: secrets.vault, random: Math.random };
  const consumer = startConsumer({
    redis,
    log,
    batch: BATCH,
    source: "change",
    group: "webhooks",
    handler: decideHandler({ redis, live }),
  });
  const parts = [
    startDeliverer(sending),
    startTestSender(sending),
    startHealthClock(sending),
    startReplayJobs(sending),
  ];
  return {
    name: "webhooks",
    url: null,
    isRunning: consumer.isRunning,
    async stop() {
      await consumer.stop();
      await Promise.all(parts.map((part) => part.stop()));
      transport.close();
    },
  };
}

/** Mails the alerts about failing endpoints. */
export async function startAlertMails({ redis, log, live, config }: Runtime): Promise<Running> {
  const mailer = createMailer(config);
  const alerts = startAlertMailer({ redis, log, live, mailer });
  return {
    name: "webhook alerts",
    url: null,
    async stop() {
      await alerts.stop();
      mailer.close();
    },
  };
}
