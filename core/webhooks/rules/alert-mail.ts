/** What an alert about a failing webhook endpoint says (document 3, "Endpoint"), in Italian or English. */

import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import { urlWithoutSecrets } from "./webhook-url.ts";

/** `warning` after 24 hours without success; `disabled` after 3 days; `recovered` with the first success after one of them. */
export type AlertKind = "warning" | "disabled" | "recovered";

export interface AlertFacts {
  readonly kind: AlertKind;
  readonly channelName: string;
  /** Code of the endpoint, unique in its channel. */
  readonly code: string;
  readonly url: string;
  /** The first failure. */
  readonly sinceMs: number;
  /** When the alert was raised: of one that has recovered, the success. */
  readonly atMs: number;
  /** A phrase of the delivery log; null when it is not known. */
  readonly lastError: string | null;
  /** The endpoint's page in the control panel. */
  readonly link: string;
}

/** Merchants who do not read Italian are written to in English. */
export function alertMail(
  facts: AlertFacts,
  language: Language,
): { subject: string; text: string } {
  const { kinds, lastError, link } = language === "it" ? ITALIAN : ENGLISH;
  const { subject, about, advice } = kinds[facts.kind];
  const fields = {
    channel: facts.channelName,
    code: facts.code,
    url: urlWithoutSecrets(facts.url),
    since: romeDateTime(facts.sinceMs),
    at: romeDateTime(facts.atMs),
    error: facts.lastError ?? "",
    link: facts.link,
  };
  const lines = [about, ...(facts.lastError === null ? [] : [lastError]), ...advice, link];
  return { subject: fill(subject, fields), text: `${fill(lines.join("\n\n"), fields)}\n` };
}

function fill(text: string, fields: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => fields[name] ?? "");
}

interface KindWords {
  readonly subject: string;
  readonly about: string;
  readonly advice: readonly string[];
}

interface Words {
  readonly kinds: Readonly<Record<AlertKind, KindWords>>;
  readonly lastError: string;
  readonly link: string;
}

const ITALIAN: Words = {
  kinds: {
    warning: {
      subject: "Webhook senza risposta da 24 ore: {channel}, {code}",
      about:
        "Il ricevitore {url} del canale {channel} (webhook {code}) non risponde correttamente dalle {since} (ora italiana).",
      advice: [
        "Continuiamo a riprovare. Se entro 3 giorni dal primo errore nessuna consegna riesce, il webhook viene disattivato.",
        "Una risposta 2xx, anche a un evento di prova dal pannello, basta a riportarlo alla normalità.",
      ],
    },
    disabled: {
      subject: "Webhook disattivato: {channel}, {code}",
      about:
        "Il ricevitore {url} del canale {channel} (webhook {code}) non risponde correttamente dalle {since} (ora italiana): il webhook è stato disattivato.",
      advice: [
        "Le consegne in attesa sono fallite e restano ripetibili dal pannello per 30 giorni dalla loro creazione. Finché il webhook è disattivato non si generano eventi.",
        "Dopo averlo riattivato dal pannello, recuperare gli aggiornamenti mancati con GET /v2/shipments e updatedAfter.",
      ],
    },
    recovered: {
      subject: "Webhook di nuovo funzionante: {channel}, {code}",
      about:
        "Il ricevitore {url} del canale {channel} (webhook {code}) ha risposto di nuovo correttamente alle {at} (ora italiana). Il primo errore era delle {since}.",
      advice: [
        "Le consegne fallite nel frattempo restano ripetibili dal pannello per 30 giorni dalla loro creazione. Se il webhook era disattivato, recuperare gli aggiornamenti mancati con GET /v2/shipments e updatedAfter.",
      ],
    },
  },
  lastError: "Ultimo errore: {error}.",
  link: "Il webhook nel pannello di controllo: {link}",
};

const ENGLISH: Words = {
  kinds: {
    warning: {
      subject: "Webhook without success for 24 hours: {channel}, {code}",
      about:
        "The receiver {url} of channel {channel} (webhook {code}) has not answered as it should since {since} (Italian time).",
      advice: [
        "We go on trying. If no delivery succeeds within 3 days of the first failure, the webhook is switched off.",
        "One 2xx answer, also to a test event from the control panel, makes it healthy again.",
      ],
    },
    disabled: {
      subject: "Webhook switched off: {channel}, {code}",
      about:
        "The receiver {url} of channel {channel} (webhook {code}) has not answered as it should since {since} (Italian time): the webhook has been switched off.",
      advice: [
        "Waiting deliveries have failed and can be replayed from the control panel for 30 days from their creation. No events are generated while the webhook is off.",
        "After switching it on again in the control panel, catch up with GET /v2/shipments and updatedAfter.",
      ],
    },
    recovered: {
      subject: "Webhook works again: {channel}, {code}",
      about:
        "The receiver {url} of channel {channel} (webhook {code}) answered correctly again at {at} (Italian time). The first failure was at {since}.",
      advice: [
        "Deliveries that failed in the meantime can be replayed from the control panel for 30 days from their creation. If the webhook was switched off, catch up with GET /v2/shipments and updatedAfter.",
      ],
    },
  },
  lastError: "Last error: {error}.",
  link: "The webhook in the control panel: {link}",
};
