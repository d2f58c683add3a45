/**
 * Sends messages to recipients and records what became of them.
 *
 * | what happens                                | what follows                                                       |
 * |---------------------------------------------|--------------------------------------------------------------------|
 * | the server has taken it                     | OK in the shipment's notifications                                 |
 * | it refuses it for good (SMTP 5xx, HTTP 4xx) | KO in the shipment's notifications                                 |
 * | the address is not one mailbox              | the same                                                           |
 * | it is unavailable or says later                    | again after 10 s, 1, 5, 30 min, 2, 6 h; then KO                     |
 * | the store is unavailable after the sending  | the outcome is kept here until it can be recorded                  |
 * | this process dies in between                | sent again under the same Message-ID, recorded once                |
 * | an internal error                           | no outcome: retried (`worker.ts`)                                  |
 */

import type { Live } from "#core/configuration/store/live.ts";
import type { SentNotification } from "#core/merchants/rules/notification.ts";
import {
  countTry,
  isRecipientErased,
  type Message,
  readMessage,
  recordMessage,
} from "#core/merchants/store/messages.ts";
import type { Log } from "#core/platform/process/log.ts";
import { type Mailer, RecipientRefused } from "#core/platform/process/mail.ts";
import { recipientMessages } from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import type { WorkerOptions } from "#processors/jobs/worker.ts";
import { type SmsGateway, SmsRefused } from "./sms-gateway.ts";

export interface MessageDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly live: Live;
  readonly mailer: Mailer;
  /** Takes what test mode sends. */
  readonly outbox: Mailer;
  /** Null = none is configured. */
  readonly sms: SmsGateway | null;
  /** Right part of our Message-IDs. */
  readonly host: string;
}

const MINUTE_MS = 60_000;
const WAITS_MS = [10_000, ...[1, 5, 30, 120, 360].map((minutes) => minutes * MINUTE_MS)];
const ERROR_LENGTH = 200;

export function messageWork(deps: MessageDeps): WorkerOptions["work"] {
  const { redis, log, live } = deps;
  return async ({ partition, id }, holding) => {
    const found = await readMessage(redis, partition, id);
    if (!found) return null;
    const { message, tries } = found;
    const error = await send(deps, message);
    const waitMs = WAITS_MS[tries];
    if (error !== null && !isFinal(error) && waitMs !== undefined) {
      await countTry(redis, partition, id);
      log.info({ message: id, tries: tries + 1, code: codeOf(error) }, "message failed; retrying");
      return live.now() + waitMs;
    }
    const { type, to } = message;
    const notification = {
      type,
      result: error === null ? ("OK" as const) : ("KO" as const),
      sentAtMs: live.now(),
      recipient: to,
      error: error?.message.slice(0, ERROR_LENGTH) ?? null,
    };
    await holding.untilAvailable(() => record(deps, message, notification));
    recipientMessages.inc({ type, result: error === null ? "OK" : "KO" });
    return null;
  };
}

async function record(
  deps: MessageDeps,
  message: Message,
  notification: Omit<SentNotification, "shipmentStatus">,
): Promise<void> {
  const { redis, host } = deps;
  const { shipmentId, messageId, type } = message;
  const shipment = (await readHotShipments(redis, [shipmentId])).get(shipmentId);
  const shipmentStatus = shipment?.state.pair.status ?? "";
  if (await recordMessage(redis, message, { ...notification, shipmentStatus })) return;
  // Erased while it was being sent: the file has come after the erasure.
  if (type === "email" && (await isRecipientErased(redis, shipmentId))) {
    await mailerOf(deps, message).remove(`${messageId}@${host}`);
  }
}

/**
 * Why the message was refused; null = it was accepted.
 * @throws an internal error, which says nothing about the message
 */
async function send(deps: MessageDeps, message: Message): Promise<Error | null> {
  const { sms, host } = deps;
  const { messageId, type, to, from, subject, text, html, isTest } = message;
  try {
    if (type === "sms" && isTest) {
      const mail = { to: addressOfPhone(to), subject: "SMS", text };
      await deps.outbox.send({ messageId: `${messageId}@${host}`, ...mail });
    } else if (type === "email") {
      await mailerOf(deps, message).send({
        messageId: `${messageId}@${host}`,
        to,
        subject,
        text,
        ...(from !== null && { from }),
        ...(html !== null && { html }),
      });
    } else if (sms) {
      await sms.send({ id: messageId, to, text });
    } else {
      return new SmsRefused("no SMS gateway is configured");
    }
    return null;
  } catch (error) {
    if (isOwnFault(error)) throw error;
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** A number may be written with anything between its digits. */
function addressOfPhone(phone: string): string {
  return `${phone.replace(/[^+\d]/g, "") || "unknown"}@sms.invalid`;
}

function mailerOf({ mailer, outbox }: MessageDeps, { isTest }: Message): Mailer {
  return isTest ? outbox : mailer;
}

/** Errors thrown by the language, not by the network or a server. */
function isOwnFault(error: unknown): boolean {
  const kinds = [TypeError, RangeError, ReferenceError, SyntaxError];
  const { code } = error as { code?: unknown };
  return code === undefined && kinds.some((kind) => error instanceof kind);
}

/** 5xx of an SMTP server is its last word, 4xx is not (RFC 5321). */
function isFinal(error: Error): boolean {
  const { responseCode } = error as { responseCode?: unknown };
  if (error instanceof SmsRefused || error instanceof RecipientRefused) return true;
  return typeof responseCode === "number" && responseCode >= 500;
}

/** The text of a server may carry the address; its code does not. */
function codeOf(error: Error): unknown {
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
  return responseCode ?? code ?? "failed";
}
