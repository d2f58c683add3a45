/** Mails with the one-time link of an account, in Italian or English. */

import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";

export interface AccountMailFacts {
  /** `invitation` opens a new account, `reset` gives an existing one another password. */
  readonly kind: "invitation" | "reset";
  readonly name: string;
  readonly link: string;
  readonly untilMs: number;
}

export function accountMail(
  { kind, name, link, untilMs }: AccountMailFacts,
  language: Language,
): { subject: string; text: string } {
  const { greeting, until, ...words } = language === "it" ? ITALIAN : ENGLISH;
  const { subject, about, ignore } = words[kind];
  const lines = [`${greeting} ${name},`, about, link, `${until} ${romeDateTime(untilMs)}.`, ignore];
  return { subject, text: `${lines.join("\n\n")}\n` };
}

const ENGLISH = {
  greeting: "Hello",
  until: "The link works once, until",
  invitation: {
    subject: "Your invitation to Waybill",
    about: "You have been invited to the control panel of Waybill. Choose your password here:",
    ignore: "If you did not expect this invitation, ignore this message.",
  },
  reset: {
    subject: "A new password for Waybill",
    about: "A new password was asked for your account of Waybill. Choose it here:",
    ignore: "If you did not ask for it, ignore this message: your password stays as it is.",
  },
} as const;

const ITALIAN = {
  greeting: "Ciao",
  until: "Il link funziona una sola volta, fino al",
  invitation: {
    subject: "Il tuo invito a Waybill",
    about: "Sei stato invitato al pannello di controllo di Waybill. Scegli qui la tua password:",
    ignore: "Se non aspettavi questo invito, ignora questo messaggio.",
  },
  reset: {
    subject: "Una nuova password per Waybill",
    about: "È stata richiesta una nuova password per il tuo account di Waybill. Sceglila qui:",
    ignore:
      "Se non l'hai richiesta tu, ignora questo messaggio: la tua password resta quella di prima.",
  },
} as const;
