/** The transactional e-mail of a merchant-defined event (document 1, `POST /v2/shipments/{id}/notifications`). */
import { type Static, Type } from "@sinclair/typebox";
import { merchantEvent } from "#core/platform/schema/text-forms.ts";
import { LANGUAGES, type Language } from "#core/shipments/rules/shipment.ts";

/** The fallback template, and the marketplace that mails its customers itself. */
export const RESERVED_EVENTS: readonly string[] = ["default", "amazon"];
const FALLBACK_EVENT = "default";

/** The same event on the same shipment is accepted once in this time. */
export const EVENT_ONCE_PER_MS = 86_400_000;

const variable = Type.Optional(Type.String({ maxLength: 255 }));

export const NotificationBody = Type.Object({
  event: merchantEvent,
  variables: Type.Optional(
    Type.Object(
      { custom1: variable, custom2: variable, custom3: variable },
      { additionalProperties: false },
    ),
  ),
  language: Type.Optional(Type.Union(LANGUAGES.map((name) => Type.Literal(name)))),
});
export type NotificationBody = Static<typeof NotificationBody>;

export interface TemplateChoice {
  readonly event: string;
  readonly language: Language;
}

/** (event, language), (event, English), (fallback, language), (fallback, English). */
export function templateOrder(event: string, language: Language): readonly TemplateChoice[] {
  return [
    { event, language },
    { event, language: "en" },
    { event: FALLBACK_EVENT, language },
    { event: FALLBACK_EVENT, language: "en" },
  ];
}

/** A message to a recipient, or a webhook, that was delivered or has failed. */
export interface SentNotification {
  readonly type: "email" | "sms" | "webhook";
  readonly result: "OK" | "KO";
  readonly sentAtMs: number;
  /** Address, phone or URL. */
  readonly recipient: string;
  /** Status of the shipment at the time. */
  readonly shipmentStatus: string;
  /** What went wrong; null when OK. */
  readonly error: string | null;
}
