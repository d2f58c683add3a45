/**
 * Every alarm of the panel, defined once: how grave it is, what it says, where its thing is, what the documents say of it, when it
 * becomes an incident, and which rule of Prometheus watches the same from outside (`deploy/prometheus/rules.yaml`).
 */
import { limit } from "#core/platform/schema/limit.ts";

/** Of the panel and of notifications. */
export type AlarmLanguage = "en" | "it";

export type Severity = "warning" | "critical";

/** What the words of an alarm are filled with. */
export type Facts = Readonly<Record<string, string>>;

/** Something that somebody should look at, as it is now. */
export interface Finding {
  readonly kind: AlarmKind;
  /** What it is about, where there may be several: a group, a courier, an endpoint. Else empty. */
  readonly subject: string;
  readonly severity: Severity;
  readonly facts: Facts;
  /** Of the panel, where the thing is. */
  readonly page: string;
}

/** It must stand for so long without a break before it is an incident. */
const STANDS_MS = limit(
  60_000,
  "time that an alarm must last before it is an incident",
  "an incident opens, and its receivers are notified once",
);
const ENDPOINT_STANDS_MS = limit(
  15 * 60_000,
  "time that an endpoint must fail before its company is notified",
  "an incident opens, and its receivers are notified once",
);

interface Definition {
  readonly severity: Severity;
  /** Page and section of the documents. */
  readonly docs: string;
  readonly standsMs: number;
  /** The rule of Prometheus about the same; null = there is none. */
  readonly rule: string | null;
  /** While one of these lasts, it follows from that: nobody is notified. */
  readonly follows?: readonly string[];
  readonly words: Readonly<Record<AlarmLanguage, string>>;
}

const UNAVAILABLE = "operations/incidents.md#when-the-store-is-unavailable";
const ALARMS_DOCS = "operations/monitoring.md#alarms";
const OF_REDIS = ["REDIS_PART_AWAY"] as const;

const CATALOGUE = {
  CLICKHOUSE_UNAVAILABLE: {
    severity: "critical",
    docs: UNAVAILABLE,
    standsMs: STANDS_MS,
    rule: "WaybillClickhouseUnavailable",
    words: {
      en: "The analytics do not answer: benchmarks are unavailable, and changes wait.",
      it: "Gli analytics non rispondono: i benchmark non sono disponibili e le modifiche attendono.",
    },
  },
  REDIS_PART_AWAY: {
    severity: "critical",
    docs: UNAVAILABLE,
    standsMs: STANDS_MS,
    rule: "WaybillRedisUnavailable",
    words: {
      en: "A shard of Redis is unavailable: {nodes}. What needs it is refused, and its figures are missing here.",
      it: "Uno shard di Redis non risponde: {nodes}. Le richieste che lo riguardano sono rifiutate, e qui mancano i suoi numeri.",
    },
  },
  REPLICAS_MISSING: {
    severity: "critical",
    docs: "operations/redis.md#replicas",
    standsMs: STANDS_MS,
    rule: "WaybillReplicasMissing",
    follows: OF_REDIS,
    words: {
      en: "Masters of Redis without their replicas: {nodes}.",
      it: "Master di Redis senza le loro repliche: {nodes}.",
    },
  },
  LEDGER_DIFFERENCE: {
    severity: "critical",
    docs: "operations/incidents.md#the-ledger",
    standsMs: STANDS_MS,
    rule: "WaybillLedgerDifference",
    follows: OF_REDIS,
    words: {
      en: "The ledger does not balance.",
      it: "La quadratura non torna.",
    },
  },
  LAG: {
    severity: "warning",
    docs: ALARMS_DOCS,
    standsMs: STANDS_MS,
    rule: "WaybillLag",
    follows: ["REDIS_PART_AWAY", "CLICKHOUSE_UNAVAILABLE"],
    words: {
      en: "{group} is {seconds} s behind, with {entries} entries.",
      it: "Il consumatore {group} è indietro di {seconds} s, con {entries} voci.",
    },
  },
  DEAD_LETTERS: {
    severity: "warning",
    docs: "operations/incidents.md#dead-letters",
    standsMs: STANDS_MS,
    rule: "WaybillDeadLetters",
    words: { en: "Dead letters: {count}.", it: "Dead letter: {count}." },
  },
  WEBHOOKS_LATE: {
    severity: "warning",
    docs: "webhooks.md#for-operators",
    standsMs: STANDS_MS,
    rule: null,
    follows: OF_REDIS,
    words: {
      en: "A webhook has been waiting for {seconds} s.",
      it: "Un webhook attende da {seconds} s.",
    },
  },
  ENDPOINTS_FAILING: {
    severity: "warning",
    docs: "webhooks.md#for-operators",
    standsMs: ENDPOINT_STANDS_MS,
    rule: null,
    words: {
      en: "Webhook endpoints that fail: {count}.",
      it: "Endpoint webhook in errore: {count}.",
    },
  },
  COURIER_SILENT: {
    severity: "warning",
    docs: "operations/couriers.md#a-silent-courier",
    standsMs: 0,
    rule: null,
    follows: ["CLICKHOUSE_UNAVAILABLE"],
    words: {
      en: "{courier} has sent far fewer events than in the same hours of the weeks before.",
      it: "{courier} ha inviato molti meno eventi che nelle stesse ore delle settimane prima.",
    },
  },
  ENDPOINT_FAILING: {
    severity: "warning",
    docs: "webhooks.md#what-to-do-with-it",
    standsMs: ENDPOINT_STANDS_MS,
    rule: null,
    words: {
      en: "The webhook {endpoint} of channel {channel} has had no success since {since} (Italian time).",
      it: "Il webhook {endpoint} del canale {channel} non riesce dalle {since} (ora italiana).",
    },
  },
} as const satisfies Readonly<Record<string, Definition>>;

export type AlarmKind = keyof typeof CATALOGUE;
export const ALARMS: Readonly<Record<AlarmKind, Definition>> = CATALOGUE;

/** Its name in the overview and in incidents. */
export function codeOf({ kind, subject }: Pick<Finding, "kind" | "subject">): string {
  return subject === "" ? kind : `${kind}_${subject}`;
}

export function alarmText(
  { kind, facts }: Pick<Finding, "kind" | "facts">,
  language: AlarmLanguage,
): string {
  return ALARMS[kind].words[language].replace(/\{(\w+)\}/g, (_, name: string) => facts[name] ?? "");
}

/** The kind of another version, which knows it and this one does not. */
export function isKnownKind(kind: string): kind is AlarmKind {
  return Object.hasOwn(CATALOGUE, kind);
}
