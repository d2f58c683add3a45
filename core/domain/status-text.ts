/** Names of the tracking statuses in the recipient's language; English where a language has none. */
import type { SetupStatusDetail } from "./setup.ts";
import type { Language } from "./shipment.ts";
import type { Status } from "./status.ts";

type Texts = Readonly<Record<Status, string>>;

const ENGLISH: Texts = {
  WAITING_TO_COMPUTE: "Waiting to be processed",
  PENDING: "Waiting for the first tracking event",
  INFO_RECEIVED: "Shipment data received by the carrier",
  IN_TRANSIT: "In transit",
  OUT_FOR_DELIVERY: "Out for delivery",
  FAILED_ATTEMPT: "Failed delivery attempt",
  EXCEPTION: "Exception",
  DELAY: "Delayed",
  PICKUP_POINT: "Delivered to a pickup point",
  DEPARTED: "Departed",
  PROCESSING: "Being processed by the carrier",
  RETURNED: "Returned to sender",
  DELIVERED: "Delivered",
};

const ITALIAN: Texts = {
  WAITING_TO_COMPUTE: "In attesa di elaborazione",
  PENDING: "In attesa del primo evento",
  INFO_RECEIVED: "Dati ricevuti dal corriere",
  IN_TRANSIT: "In transito",
  OUT_FOR_DELIVERY: "In consegna",
  FAILED_ATTEMPT: "Tentativo di consegna fallito",
  EXCEPTION: "Anomalia",
  DELAY: "In ritardo",
  PICKUP_POINT: "Consegnata a un punto di ritiro",
  DEPARTED: "Partita",
  PROCESSING: "In lavorazione presso il corriere",
  RETURNED: "Resa al mittente",
  DELIVERED: "Consegnata",
};

const TEXTS: Partial<Record<Language, Texts>> = { it: ITALIAN, en: ENGLISH };

export function statusText(status: Status, language: Language): string {
  return (TEXTS[language] ?? ENGLISH)[status];
}

/** Description of a status detail; null for 0 = none and for an id that is not registered. */
export function statusDetailText(
  detail: SetupStatusDetail | undefined,
  language: Language,
): string | null {
  return detail?.description[language] ?? detail?.description["en"] ?? null;
}
