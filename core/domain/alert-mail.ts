/** What an alert about a failing webhook endpoint says (document 3, "Endpoint"), in Italian or English. */
import { romeDateTime } from "./rome-time.ts";
import type { Language } from "./shipment.ts";
import { urlWithoutSecrets } from "./webhook-url.ts";

export interface AlertFacts {
  /** After 24 hours without success, or after 3 days, when the endpoint has been switched off. */
  readonly kind: "warning" | "disabled";
  readonly channelName: string;
  readonly url: string;
  /** The first failure. */
  readonly sinceMs: number;
}

/** Merchants who do not read Italian are written to in English. */
export function alertMail(
  facts: AlertFacts,
  language: Language,
): { subject: string; text: string } {
  const words = language === "it" ? ITALIAN : ENGLISH;
  const { subject, lines } = words[facts.kind];
  const fields = {
    channel: facts.channelName,
    url: urlWithoutSecrets(facts.url),
    since: romeDateTime(facts.sinceMs),
  };
  return { subject: fill(subject, fields), text: `${fill(lines.join("\n\n"), fields)}\n` };
}

function fill(text: string, fields: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => fields[name] ?? "");
}

type Words = Readonly<
  Record<AlertFacts["kind"], { readonly subject: string; readonly lines: readonly string[] }>
>;

const ITALIAN: Words = {
  warning: {
    subject: "Webhook senza risposta da 24 ore: {channel}",
    lines: [
      "Il ricevitore {url} del canale {channel} non risponde correttamente dalle {since} (ora italiana).",
      "Continuiamo a riprovare. Se entro 3 giorni dal primo errore nessuna consegna riesce, il webhook viene disattivato.",
      "Una risposta 2xx, anche a un evento di prova dal pannello, basta a riportarlo alla normalità.",
    ],
  },
  disabled: {
    subject: "Webhook disattivato: {channel}",
    lines: [
      "Il ricevitore {url} del canale {channel} non risponde correttamente dalle {since} (ora italiana): il webhook è stato disattivato.",
      "Le consegne in attesa sono fallite e restano ripetibili dal pannello per 30 giorni dalla loro creazione. Finché il webhook è disattivato non si generano eventi.",
      "Dopo averlo riattivato dal pannello, recuperare gli aggiornamenti mancati con GET /v2/shipments e updatedAfter.",
    ],
  },
};

const ENGLISH: Words = {
  warning: {
    subject: "Webhook without success for 24 hours: {channel}",
    lines: [
      "The receiver {url} of channel {channel} has not answered as it should since {since} (Italian time).",
      "We go on trying. If no delivery succeeds within 3 days of the first failure, the webhook is switched off.",
      "One 2xx answer, also to a test event from the control panel, makes it healthy again.",
    ],
  },
  disabled: {
    subject: "Webhook switched off: {channel}",
    lines: [
      "The receiver {url} of channel {channel} has not answered as it should since {since} (Italian time): the webhook has been switched off.",
      "Waiting deliveries have failed and can be replayed from the control panel for 30 days from their creation. No events are generated while the webhook is off.",
      "After switching it on again in the control panel, catch up with GET /v2/shipments and updatedAfter.",
    ],
  },
};
