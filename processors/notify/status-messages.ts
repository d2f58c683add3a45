/**
 * From changes of shipments to messages for their recipients: channels name the statuses that are notified, by e-mail and SMS
 * where the shipment has an address and a phone. News that a later change has overtaken is not sent.
 */
import { createHash } from "node:crypto";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import {
  composeSms,
  composeStatus,
  composeTemplate,
} from "#core/merchants/rules/compose-message.ts";
import { messageValues } from "#core/merchants/rules/message-values.ts";
import { acceptMessages, type Message, type NewMessage } from "#core/merchants/store/messages.ts";
import { findTemplate } from "#core/merchants/store/templates.ts";
import type { Failure, Handler, LogItem } from "#core/platform/log/consumer.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import {
  type ChangeSummary,
  decodeChangeEntry,
  ownerOfChange,
} from "#core/shipments/store/change-log.ts";
import { readShipments, type StoredShipment } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";

export interface StatusMessagesDeps {
  readonly redis: Redis;
  readonly live: Live;
  /** Text messages can be sent. */
  readonly hasSms: boolean;
}

interface News {
  readonly shipmentId: number;
  readonly change: ChangeSummary;
}

/** For the group `notify` of the change log. */
export function statusMessagesHandler(deps: StatusMessagesDeps): Handler {
  const { live } = deps;
  return async (entries) => {
    const failures: Failure[] = [];
    const configuration = await live.refresh();
    const news: News[] = [];
    for (const entry of entries) {
      try {
        if (concernsNobody(entry, configuration)) continue;
        const decoded = decodeChangeEntry(entry.fields);
        if (decoded.type !== "changed" || !isNotified(decoded.change, configuration)) continue;
        news.push({ shipmentId: decoded.shipmentId, change: decoded.change });
      } catch (error) {
        failures.push({ entry, reason: (error as Error).message });
      }
    }
    if (news.length > 0) await tell(deps, configuration, news);
    return failures;
  };
}

/** Most entries, recognised without decoding them: creations, and changes of channels that notify no status. */
function concernsNobody({ fields }: LogItem, { channels }: Configuration): boolean {
  const { created, change = "" } = fields;
  if (created !== undefined) return true;
  const emails = channels.get(ownerOfChange(change).channelId)?.emails;
  return !emails?.managed || emails.statusNotifications.length === 0;
}

function isNotified(
  { changed, channelId, fact }: ChangeSummary,
  { channels }: Configuration,
): boolean {
  const emails = channels.get(channelId)?.emails;
  if (!changed || !emails?.managed || fact.status === null) return false;
  return emails.statusNotifications.includes(fact.status);
}

/** @throws {Unavailable} while the queue is full: the changes wait */
async function tell(
  deps: StatusMessagesDeps,
  configuration: Configuration,
  news: readonly News[],
): Promise<void> {
  const { redis, live } = deps;
  const ids = [...new Set(news.map(({ shipmentId }) => shipmentId))];
  const shipments = new Map(
    (await readShipments(redis, ids)).map((shipment) => [shipment.record.id, shipment]),
  );
  const messages: NewMessage[] = [];
  for (const { shipmentId, change } of news) {
    const shipment = shipments.get(shipmentId);
    const channel = configuration.channels.get(change.channelId);
    if (!shipment || !channel || shipment.state.pair.status !== change.fact.status) continue;
    messages.push(...(await messagesOf(deps, configuration, channel, shipment, change)));
  }
  const outcomes = await acceptMessages(redis, messages, live.now());
  if (outcomes.includes("full")) throw new Unavailable("the queue of messages is full");
}

async function messagesOf(
  { redis, hasSms }: StatusMessagesDeps,
  configuration: Configuration,
  channel: Channel,
  shipment: StoredShipment,
  { fact }: ChangeSummary,
): Promise<NewMessage[]> {
  const { record } = shipment;
  const { email, phone } = record.consignee ?? {};
  const summary = summaryOf(shipment, configuration);
  const isTest = channel.testOf !== null;
  const about = (type: Message["type"]) => {
    const topic = `${type}:${fact.status}:${fact.key}`;
    const ids = { ...idsOf(record.id, topic), type, ...(isTest && { isTest: true as const }) };
    return { topic, oncePerMs: null, ids };
  };
  const messages: NewMessage[] = [];
  if (email) {
    const { ids, ...once } = about("email");
    const composed = await composeMail(redis, channel, summary, shipment);
    const message = { ...ids, to: email, from: channel.emails.from, ...composed };
    messages.push({ message, ...once });
  }
  if (phone && hasSms) {
    const { ids, ...once } = about("sms");
    const text = composeSms(summary, channel.name);
    messages.push({
      message: { ...ids, to: phone, from: null, subject: "", text, html: null },
      ...once,
    });
  }
  return messages;
}

/** The same for every repetition. */
function idsOf(shipmentId: number, topic: string) {
  const digest = createHash("sha256").update(`${shipmentId} ${topic}`).digest("hex");
  return { messageId: digest.slice(0, 32), shipmentId };
}

/** The template named as the status in small letters, or the fallback; our own words where the channel has neither. */
async function composeMail(
  redis: Redis,
  channel: Channel,
  summary: ShipmentSummary,
  { record: { language } }: StoredShipment,
) {
  const event = summary.status.toLowerCase();
  const template = await findTemplate(redis, channel.testOf ?? channel.id, event, language);
  return template
    ? composeTemplate(template, messageValues(summary, channel.name, null))
    : composeStatus(summary, channel.name, language);
}
