/** Notifies one receiver: by mail, or as a POST to the webhook of a chat, which goes where webhooks of merchants may go and nowhere else. */
import type { Message } from "#core/alarms/rules/notification.ts";
import { webhookBody } from "#core/alarms/rules/notification.ts";
import type { AlarmReceiverEntity } from "#core/configuration/rules/entities.ts";
import type { Mailer } from "#core/platform/process/mail.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { errorOf, meaningOf } from "#core/webhooks/rules/delivery-outcome.ts";
import type { Transport } from "#core/webhooks/store/transport/transport.ts";

export interface TellDeps {
  readonly mailer: Mailer;
  readonly transport: Transport;
  readonly vault: Vault;
}

export type Outcome =
  | { readonly kind: "told" }
  /** @param isFinal it would be refused again */
  | { readonly kind: "failed"; readonly error: string; readonly isFinal: boolean };

const HEADERS = { "Content-Type": "application/json", "User-Agent": "Service-Webhooks/2" } as const;

/** @param messageId the same of each repetition, without its domain */
export async function tellReceiver(
  { mailer, transport, vault }: TellDeps,
  receiver: Pick<AlarmReceiverEntity, "email" | "url">,
  message: Message,
  messageId: string,
): Promise<Outcome> {
  if (receiver.url === "") return mail(mailer, receiver.email, message, messageId);
  const sent = await transport.post(vault.open(receiver.url), HEADERS, webhookBody(message));
  const meaning = meaningOf(sent);
  if (meaning === "delivered") return { kind: "told" };
  return { kind: "failed", error: errorOf(sent) ?? "refused", isFinal: meaning === "failed" };
}

async function mail(
  mailer: Mailer,
  to: string,
  { subject, text }: Message,
  messageId: string,
): Promise<Outcome> {
  try {
    await mailer.send({ messageId: `alarm.${messageId}@waybill.invalid`, to, subject, text });
    return { kind: "told" };
  } catch (error) {
    // Never the server's own words: they may repeat the address.
    const { code = "failed" } = error as { code?: string };
    return { kind: "failed", error: `mail server: ${code}`, isFinal: false };
  }
}
