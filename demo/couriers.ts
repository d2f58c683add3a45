/** The demo's four couriers: how each names the steps of a parcel's journey, and how it sends its events. */
import type { SetupCourier } from "#core/setup/rules/setup.ts";
import type { Status } from "#core/statuses/rules/status.ts";

/** What can happen to a parcel, in nobody's code. */
export type Step =
  | "awaited"
  | "announced"
  | "accepted"
  | "departed"
  | "hub"
  | "measured"
  | "delayed"
  | "branch"
  | "out"
  | "absent"
  | "wrongAddress"
  | "refused"
  | "held"
  | "rebooked"
  | "damaged"
  | "lost"
  | "atPoint"
  | "collected"
  | "delivered"
  | "returning"
  | "returned";

interface Meaning {
  readonly status: Status;
  readonly statusDetail?: number;
  readonly terminal?: true;
}

/** Details are those of the built-in list. `measured` is left unmapped on purpose: the panel shows it as such. */
const MEANINGS: Readonly<Record<Step, Meaning | null>> = {
  awaited: { status: "PENDING" },
  announced: { status: "INFO_RECEIVED" },
  accepted: { status: "PROCESSING" },
  departed: { status: "DEPARTED" },
  hub: { status: "IN_TRANSIT" },
  measured: null,
  delayed: { status: "DELAY", statusDetail: 7 },
  branch: { status: "IN_TRANSIT" },
  out: { status: "OUT_FOR_DELIVERY" },
  absent: { status: "FAILED_ATTEMPT", statusDetail: 2 },
  wrongAddress: { status: "EXCEPTION", statusDetail: 1 },
  refused: { status: "EXCEPTION", statusDetail: 3 },
  held: { status: "EXCEPTION", statusDetail: 4 },
  rebooked: { status: "IN_TRANSIT" },
  damaged: { status: "EXCEPTION", statusDetail: 5 },
  lost: { status: "EXCEPTION", statusDetail: 6, terminal: true },
  atPoint: { status: "PICKUP_POINT" },
  collected: { status: "DELIVERED", terminal: true },
  delivered: { status: "DELIVERED", terminal: true },
  returning: { status: "IN_TRANSIT" },
  returned: { status: "RETURNED", terminal: true },
};

/** Code and description, in the courier's own words. */
type Vocabulary = Readonly<Record<Step, readonly [code: string, description: string]>>;

export interface DemoCourier {
  readonly code: string;
  readonly name: string;
  readonly token: string;
  readonly signingSecret: string;
  readonly signs: boolean;
  readonly zips: boolean;
  /** Working days from departure to delivery; one is drawn. */
  readonly daysUnderway: readonly number[];
  /** Text before the 11 digits of a tracking number. */
  readonly numberPrefix: string;
  readonly pickupPoint: string;
  readonly vocabulary: Vocabulary;
}

export const DEMO_COURIERS: readonly [DemoCourier, ...DemoCourier[]] = [
  {
    code: "BRT_ITA",
    name: "BRT",
    token: "demo_token_brt",
    signingSecret: "demo_signing_brt",
    signs: false,
    zips: true,
    daysUnderway: [1, 1, 2, 2, 2, 3],
    numberPrefix: "0845",
    pickupPoint: "BRT-Fermopoint",
    vocabulary: {
      awaited: ["698", "In attesa di affidamento dal mittente"],
      announced: ["699", "Dati spedizione trasmessi a BRT"],
      accepted: ["700", "Ritirata"],
      departed: ["701", "Partita dalla filiale mittente"],
      hub: ["702", "Transitata in hub"],
      measured: ["790", "Rilevati peso e volume"],
      delayed: ["720", "Spedizione in ritardo"],
      branch: ["702A", "Arrivata in filiale di consegna"],
      out: ["703", "In consegna"],
      absent: ["705", "Destinatario assente: lasciato avviso"],
      wrongAddress: ["706", "Indirizzo errato o incompleto"],
      refused: ["707", "Rifiutata dal destinatario"],
      held: ["708", "In giacenza"],
      rebooked: ["709", "Svincolo giacenza: disposta riconsegna"],
      damaged: ["711", "Collo danneggiato"],
      lost: ["712", "Collo smarrito"],
      atPoint: ["715", "Disponibile presso BRT-Fermopoint"],
      collected: ["716", "Ritirata presso BRT-Fermopoint"],
      delivered: ["704", "Consegnata"],
      returning: ["717", "In rientro al mittente"],
      returned: ["718", "Resa al mittente"],
    },
  },
  {
    code: "GLS_ITA",
    name: "GLS Italy",
    token: "demo_token_gls",
    signingSecret: "demo_signing_gls",
    signs: true,
    zips: false,
    daysUnderway: [1, 1, 1, 2, 2],
    numberPrefix: "MI",
    pickupPoint: "GLS Shop",
    vocabulary: {
      awaited: ["ATT", "Spedizione non ancora affidata a GLS"],
      announced: ["PRE", "GLS ha ricevuto i dati della spedizione"],
      accepted: ["RIT", "Ritirata presso il mittente"],
      departed: ["PAR", "Partita dalla sede mittente"],
      hub: ["CTR", "In transito presso il centro di smistamento"],
      measured: ["PVL", "Rilevazione peso volumetrico"],
      delayed: ["RTD", "Consegna riprogrammata per ritardo"],
      branch: ["ARR", "Arrivata nella sede GLS locale"],
      out: ["OUT", "Consegna prevista nel corso della giornata odierna"],
      absent: ["ASS", "Mancata consegna: destinatario assente"],
      wrongAddress: ["IND", "Mancata consegna: indirizzo errato"],
      refused: ["RIF", "Mancata consegna: spedizione rifiutata"],
      held: ["GIA", "In giacenza presso la sede GLS"],
      rebooked: ["SVN", "Svincolata: nuova consegna disposta"],
      damaged: ["DAN", "Spedizione danneggiata"],
      lost: ["SMA", "Spedizione smarrita"],
      atPoint: ["SHP", "Disponibile per il ritiro presso GLS Shop"],
      collected: ["SHR", "Ritirata presso GLS Shop"],
      delivered: ["DLV", "Consegnata"],
      returning: ["RSM", "In reso al mittente"],
      returned: ["RSC", "Reso consegnato al mittente"],
    },
  },
  {
    code: "POSTE_ITA",
    name: "Poste Italiane SDA",
    token: "demo_token_poste",
    signingSecret: "demo_signing_poste",
    signs: false,
    zips: false,
    daysUnderway: [2, 2, 3, 3, 4],
    numberPrefix: "3UW",
    pickupPoint: "PuntoPoste",
    vocabulary: {
      awaited: ["PI-00", "In attesa di accettazione"],
      announced: ["PI-01", "Pre-avviso di spedizione ricevuto"],
      accepted: ["PI-02", "Presa in carico"],
      departed: ["PI-03", "Partita dal centro operativo postale"],
      hub: ["PI-04", "In lavorazione presso il Centro Operativo"],
      measured: ["PI-19", "Verifica peso e dimensioni"],
      delayed: ["PI-05", "Consegna in ritardo"],
      branch: ["PI-06", "Arrivata al Centro Operativo di consegna"],
      out: ["PI-07", "In consegna"],
      absent: ["PI-08", "Tentata consegna: destinatario assente"],
      wrongAddress: ["PI-09", "Non consegnabile: indirizzo inesatto"],
      refused: ["PI-10", "Rifiutata dal destinatario"],
      held: ["PI-11", "In giacenza presso ufficio postale"],
      rebooked: ["PI-12", "Nuovo tentativo di consegna programmato"],
      damaged: ["PI-13", "Spedizione danneggiata"],
      lost: ["PI-14", "Spedizione dichiarata smarrita"],
      atPoint: ["PI-15", "Disponibile presso PuntoPoste"],
      collected: ["PI-16", "Ritirata presso PuntoPoste"],
      delivered: ["PI-17", "Consegnata"],
      returning: ["PI-18", "In restituzione al mittente"],
      returned: ["PI-20", "Restituita al mittente"],
    },
  },
  {
    code: "DHL_ITA",
    name: "DHL Express Italy",
    token: "demo_token_dhl",
    signingSecret: "demo_signing_dhl",
    signs: true,
    zips: true,
    daysUnderway: [1, 1, 1, 1, 2],
    numberPrefix: "JD",
    pickupPoint: "DHL ServicePoint",
    vocabulary: {
      awaited: ["SA", "In attesa di ritiro"],
      announced: ["RD", "Informazioni sulla spedizione ricevute"],
      accepted: ["PU", "Spedizione ritirata"],
      departed: ["DF", "Partita dalla struttura DHL"],
      hub: ["AF", "Arrivata alla struttura DHL"],
      measured: ["RW", "Spedizione ripesata"],
      delayed: ["TD", "Trasporto in ritardo"],
      branch: ["AR", "Arrivata alla struttura di consegna"],
      out: ["WC", "Spedizione in consegna con il corriere"],
      absent: ["NH", "Tentativo di consegna: destinatario assente"],
      wrongAddress: ["BA", "Indirizzo da verificare"],
      refused: ["RF", "Consegna rifiutata"],
      held: ["OH", "Spedizione in attesa presso DHL"],
      rebooked: ["CD", "Consegna concordata con il destinatario"],
      damaged: ["DM", "Spedizione danneggiata"],
      lost: ["LX", "Spedizione non rintracciata"],
      atPoint: ["SP", "Disponibile presso DHL ServicePoint"],
      collected: ["SC", "Ritirata presso DHL ServicePoint"],
      delivered: ["OK", "Consegnata"],
      returning: ["RT", "In rientro al mittente"],
      returned: ["RR", "Resa al mittente"],
    },
  },
];

/** @param depotUrl where the courier takes stock releases of a kind */
export function demoCourierSetup(
  courier: DemoCourier,
  depotUrl: (mode: "sync" | "deferred") => string,
): SetupCourier {
  const stockRelease = courier.code === "POSTE_ITA" ? "deferred" : "sync";
  const steps = Object.entries(courier.vocabulary) as [Step, readonly [string, string]][];
  return {
    code: courier.code,
    name: courier.name,
    tokens: [courier.token],
    signingSecrets: [courier.signingSecret],
    signatureRequired: courier.signs,
    stockRelease,
    stockReleaseUrl: depotUrl(stockRelease),
    catalogue: steps.map(([step, [code, description]]) => {
      const { terminal = false, ...mapped } = MEANINGS[step] ?? {};
      return { code, description, terminal, ...mapped };
    }),
  };
}

/** What a courier says of a parcel that its depot has released. */
export function releasedWords(code: string, action: string): { code: string; description: string } {
  const { vocabulary } = DEMO_COURIERS.find((one) => one.code === code) ?? DEMO_COURIERS[0];
  const [word, description] = vocabulary[action === "return_to_sender" ? "returning" : "rebooked"];
  return { code: word, description };
}
