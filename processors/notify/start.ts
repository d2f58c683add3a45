/** The notify part of the processors: messages to recipients, made from changes and sent by e-mail and SMS. */

import { startConsumer } from "#core/platform/log/consumer.ts";
import { createMailer } from "#core/platform/process/mail.ts";
import type { Running, Runtime } from "#core/runtime/runtime.ts";
import { startWorker } from "#processors/jobs/worker.ts";
import { messageWork } from "./message-work.ts";
import { createSmsGateway } from "./sms-gateway.ts";
import { statusMessagesHandler } from "./status-messages.ts";

/** Changes in one batch. */
const BATCH = 1_600;
/** Nobody waits for a message to the millisecond: changes are looked at together. */
const LINGER_MS = 200;
const MESSAGES_AT_ONCE = 10;

export async function startNotify({ redis, log, live, config }: Runtime): Promise<Running> {
  const mailer = createMailer(config);
  const outbox = createMailer({ ...config, smtpUrl: null });
  const sms = config.smsGatewayUrl === null ? null : createSmsGateway(config.smsGatewayUrl);
  const consumer = startConsumer({
    redis,
    log,
    source: "change",
    group: "notify",
    handler: statusMessagesHandler({ redis, live, hasSms: sms !== null }),
    batch: BATCH,
    lingerMs: LINGER_MS,
    gatherMs: LINGER_MS,
  });
  const host = new URL(config.publicUrl).hostname;
  const worker = startWorker({
    redis,
    log,
    live,
    queue: "messages",
    atOnce: MESSAGES_AT_ONCE,
    work: messageWork({ redis, log, live, mailer, outbox, sms, host }),
  });
  return {
    name: "notify",
    url: null,
    isRunning: consumer.isRunning,
    async stop() {
      await Promise.all([consumer.stop(), worker.stop()]);
      mailer.close();
    },
  };
}
