/**
 * Messages to recipients (e-mail, SMS) on their way, in the company's partition. A message is accepted together with the
 * mark that its topic has been sent, handed out under leases (`work-queue.ts`), and leaves with its outcome.
 */

import type { SentNotification } from "#core/merchants/rules/notification.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { perPartition, type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyTag, shipmentPartition, workKeys } from "#core/platform/redis/keys.ts";
import { shareOf } from "#core/platform/redis/partitions.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import acceptSource from "./accept-messages.lua" with { type: "text" };
import recordSource from "./record-message.lua" with { type: "text" };

const acceptScript = script(acceptSource);
const recordScript = script(recordSource);

/** Over all partitions, in equal shares: each is about 10 KB, at most 200. */
export const MESSAGES_WAITING = limit(
  160_000,
  "messages waiting, in equal shares of the partitions",
  "503 with `Retry-After`; status mails wait in the change log",
);
const NOTIFICATIONS_KEPT = 200;
const MESSAGES_PER_CALL = 50;

export interface Message {
  readonly messageId: string;
  readonly type: "email" | "sms";
  readonly shipmentId: number;
  /** Address or phone. */
  readonly to: string;
  /** Null = the service's own address; SMS have none. */
  readonly from: string | null;
  /** Empty for SMS. */
  readonly subject: string;
  readonly text: string;
  readonly html: string | null;
  /** The merchant's own event that it is about. */
  readonly event?: string;
  /** Of test mode: it goes into the outbox, and to nobody. */
  readonly isTest?: true;
}

export interface NewMessage {
  readonly message: Message;
  /** What the message is about: sent once per `oncePerMs`. */
  readonly topic: string;
  /** Milliseconds; null = ever. */
  readonly oncePerMs: number | null;
}

export type Acceptance = "accepted" | "repeated" | "full";

/** One script call a partition (and 50 messages); outcomes in the order given. */
export async function acceptMessages(
  redis: Redis,
  messages: readonly NewMessage[],
  nowMs: number,
): Promise<Acceptance[]> {
  const outcomes: Acceptance[] = new Array(messages.length);
  const indexed = messages.map((one, at) => ({ ...one, at }));
  const groups = Map.groupBy(indexed, ({ message }) => shipmentPartition(message.shipmentId));
  await perPartition(groups, async (partition, group) => {
    const { waiting, leases } = workKeys(companyTag(partition), "messages");
    const { topics: topicsKey, message: messageKey } = companyKeys(partition);
    const head = [String(nowMs), String(shareOf("k", MESSAGES_WAITING))];
    for (let from = 0; from < group.length; from += MESSAGES_PER_CALL) {
      const part = group.slice(from, from + MESSAGES_PER_CALL);
      const args = part.flatMap(({ message, topic, oncePerMs }) => [
        ...[message.messageId, topic, String(oncePerMs ?? 0), JSON.stringify(message)],
      ]);
      const keys = part.flatMap(({ message: { messageId, shipmentId } }) => [
        ...[topicsKey(shipmentId), messageKey(messageId)],
      ]);
      const all = [waiting, leases, ...keys];
      const reply = await run<number[]>(redis, acceptScript, all, [...head, ...args]);
      part.forEach(({ at }, position) => {
        const code = reply[position];
        outcomes[at] = code === 1 ? "accepted" : code === 0 ? "full" : "repeated";
      });
    }
  });
  if (outcomes.includes("accepted")) announce(redis, "messages");
  return outcomes;
}

/** Null when its outcome has been recorded. */
export async function readMessage(
  redis: Redis,
  partition: number,
  messageId: string,
): Promise<{ readonly message: Message; readonly tries: number } | null> {
  const row = await redis.hGetAll(companyKeys(partition).message(messageId));
  const text = row["m"];
  return text === undefined ? null : { message: JSON.parse(text), tries: Number(row["n"]) };
}

export async function countTry(redis: Redis, partition: number, messageId: string): Promise<void> {
  await redis.hIncrBy(companyKeys(partition).message(messageId), "n", 1);
}

/** @returns false when its outcome was recorded before, or its recipient was erased */
export async function recordMessage(
  redis: Redis,
  { messageId, shipmentId, event }: Message,
  notification: SentNotification,
): Promise<boolean> {
  const keys = companyKeys(shipmentPartition(shipmentId));
  const kept: KeptNotification = { ...notification, messageId, ...(event && { event }) };
  const recorded = await run<number>(
    redis,
    recordScript,
    [keys.message(messageId), keys.notifications(shipmentId)],
    [JSON.stringify(kept), String(NOTIFICATIONS_KEPT)],
  );
  return recorded === 1;
}

/** Topic that says: this shipment's recipient was erased, no message is accepted any more. */
const ERASED = "erased";

export async function isRecipientErased(redis: Redis, shipmentId: number): Promise<boolean> {
  const { topics } = companyKeys(shipmentPartition(shipmentId));
  return (await redis.hExists(topics(shipmentId), ERASED)) === 1;
}

/** Messages about a shipment read at once from the queue. */
const READ_AT_ONCE = 200;

/**
 * Forgets whom messages about a shipment were sent to, and what is still on its way. No message is accepted any more.
 * @returns ids of all its messages that are known
 */
export async function forgetMessages(redis: Redis, shipmentId: number): Promise<string[]> {
  const partition = shipmentPartition(shipmentId);
  const keys = companyKeys(partition);
  // First, so that nothing joins what is forgotten below.
  await redis.hSet(keys.topics(shipmentId), ERASED, "1");
  const { waiting, leases } = workKeys(companyTag(partition), "messages");
  // A message moves between the two while they are read: it is seen in one of three looks.
  const queued = new Set<string>();
  for (const key of [waiting, leases, waiting]) {
    for (const id of await redis.zRange(key, 0, -1)) queued.add(id);
  }
  const own: string[] = [];
  for (const part of chunks([...queued], READ_AT_ONCE)) {
    const found = await Promise.all(part.map((id) => readMessage(redis, partition, id)));
    for (const one of found) {
      if (one?.message.shipmentId === shipmentId) own.push(one.message.messageId);
    }
  }
  for (const id of own) await redis.del(keys.message(id));
  // Nothing is added to the list any more: a message that is gone records no outcome.
  const list = keys.notifications(shipmentId);
  const sent = (await redis.lRange(list, 0, -1)).map((text): KeptNotification => JSON.parse(text));
  for (const [at, one] of sent.entries()) {
    const error = one.error === null ? null : ERASED;
    await redis.lSet(list, at, JSON.stringify({ ...one, recipient: ERASED, error }));
  }
  return [...own, ...sent.flatMap(({ messageId }) => messageId ?? [])];
}

/** As the list of a shipment holds it; older ones have no id. */
export type KeptNotification = SentNotification & Partial<Pick<Message, "messageId" | "event">>;

export type FoundMessage =
  | { readonly kind: "waiting"; readonly message: Message }
  | { readonly kind: "sent"; readonly sent: KeptNotification };

/** A message about a shipment, on its way or with its outcome. */
export async function findMessage(
  redis: Redis,
  shipmentId: number,
  messageId: string,
): Promise<FoundMessage | null> {
  const partition = shipmentPartition(shipmentId);
  // First: it leaves the queue and enters the list in one step.
  const waiting = await readMessage(redis, partition, messageId);
  if (waiting?.message.shipmentId === shipmentId) return { kind: "waiting", ...waiting };
  const list = await redis.lRange(companyKeys(partition).notifications(shipmentId), 0, -1);
  return sentAmong(list, messageId);
}

/** @param list notifications of a shipment, as stored */
export function sentAmong(list: readonly string[], messageId: string): FoundMessage | null {
  const kept = list.map((text): KeptNotification => JSON.parse(text));
  const sent = kept.find((one) => one.messageId === messageId);
  return sent ? { kind: "sent", sent } : null;
}
