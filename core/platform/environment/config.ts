/** The process environment, read once in a main file and checked as a whole: every fault is listed at once. */

import type { Cidr } from "#core/platform/network/cidr.ts";
import type { ReplicaTerms } from "#core/platform/redis/replica-waits.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { otelWarnings } from "./otel-variables.ts";
import { grpcWarnings, type TracingConfig, tracingOf } from "./tracing-config.ts";
import { urlOf } from "./url-of.ts";
import { type ClientCertHeaders, VARIABLES, type Values, type VariableName } from "./variables.ts";

export interface Config {
  readonly host: string;
  readonly ports: {
    readonly ingest: number;
    readonly api: number;
    readonly panel: number;
    /** Null = none, or the default port if the role runs alone. */
    readonly processors: number | null;
    readonly analytics: number | null;
    readonly sql: number | null;
    /** The only port that answers `/metrics`; null = every port does. */
    readonly metrics: number | null;
  };
  /** Bearer token of `/metrics`; null = none is required. */
  readonly metricsToken: string | null;
  readonly sqlPassword: string | null;
  /** Seconds that every port goes on serving after SIGTERM. */
  readonly drainSeconds: number;
  readonly dataDir: string;
  /** Null = the embedded Redis under `dataDir`. */
  readonly redisUrl: string | null;
  /** Some nodes of a Redis Cluster; null = no cluster. */
  readonly redisClusterUrls: readonly string[] | null;
  /** None wanted: the master's disk is enough. */
  readonly replicas: ReplicaTerms;
  /** Null = the embedded ClickHouse under `dataDir`. */
  readonly clickhouseUrl: string | null;
  /** The same server with a read-only user, for the data team's statements; null = they are refused. */
  readonly clickhouseReadUrl: string | null;
  /** Name of the cluster that the server belongs to; null = none, or one that replicates by itself. */
  readonly clickhouseCluster: string | null;
  /** Whether the demo runs: its data and real data never share a store. */
  readonly isDemo: boolean;
  /** Null = none, or the demo's. */
  readonly setupFile: string | null;
  /** Null = generated and kept under `dataDir`. */
  readonly jwtSecret: string | null;
  readonly panelToken: string | null;
  readonly encryptionKey: string | null;
  /** The previous key, while secrets are re-encrypted; null = none. */
  readonly encryptionKeyPrevious: string | null;
  /** Where tracking pages and label slips are reachable from outside; without a slash at the end. */
  readonly publicUrl: string;
  /** Prefix of the national carrier's codes. */
  readonly nationalCarrier: string;
  /** Base of its HTTP gateway; null = none. */
  readonly nationalCarrierUrl: string | null;
  /** Base of a Nominatim-compatible geocoder; null = the offline Italian gazetteer answers. */
  readonly geocoderUrl: string | null;
  /** `smtp://` or `smtps://`; null = mails become files under `dataDir`. */
  readonly smtpUrl: string | null;
  /** Sender of mail of our own, such as webhook alerts. */
  readonly mailFrom: string;
  /** Addresses that outgoing calls leave from; empty = those of this machine. */
  readonly outboundIps: readonly string[];
  /** Null = nobody is named, and there is no security.txt. */
  readonly securityContact: string | null;
  /** HTTP gateway that text messages are posted to; null = none are sent. */
  readonly smsGatewayUrl: string | null;
  readonly webhookAllowedCidrs: readonly Cidr[];
  readonly webhookCaFile: string | null;
  /** Proxies whose `X-Forwarded-For` and client certificate headers (named next) are trusted. */
  readonly trustedProxies: readonly Cidr[];
  /** The one family of headers in which those proxies pass on a client certificate. */
  readonly clientCertHeaders: ClientCertHeaders;
  /** Null = ingest serves plain HTTP, behind whatever ends TLS. */
  readonly ingestTls: IngestTls | null;
  readonly testClock: boolean;
  /** Null = no traces. */
  readonly tracing: TracingConfig | null;
  /** What OpenTelemetry variables ask for and Waybill does not do: a sentence each. */
  readonly otelWarnings: readonly string[];
  readonly logLevel: string;
  /** Of a new store; null = as many as suit its servers. */
  readonly storePartitions: number | null;
  /** Sizes the memory of eventIds; see `core/events/store/seen.ts`. */
  readonly eventsPerDay: number;
  /** Entries a log may hold before ingest answers 503. */
  readonly logHighWater: number;
  /** How long the analytics keep raw events. */
  readonly eventRetentionMonths: number;
  /** How long the analytics keep webhook attempts. */
  readonly attemptRetentionDays: number;
  readonly auditRetentionMonths: number;
  /** Days without news after which shipments that have ended are archived; 0 = never. */
  readonly archiveAfterDays: number;
  /** Months in the archive after which shipments are removed for good; null = never. */
  readonly shipmentRetentionMonths: number | null;
  readonly archiveRoundSeconds: number;
  /** A folder or `s3://bucket/prefix` for Parquet files; null = no export. */
  readonly exportTo: string | null;
  readonly exportEveryMinutes: number;
  /** Where `s3://` is; a null member has the client's own default. */
  readonly s3: {
    readonly endpoint: string | null;
    readonly region: string | null;
    readonly accessKeyId: string | null;
    readonly secretAccessKey: string | null;
  };
}

export interface IngestTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** Roots of client certificates; null = none is asked for. */
  readonly clientCaFile: string | null;
}

export class ConfigFaults extends Error {
  constructor(readonly faults: readonly string[]) {
    super(`The configuration has ${counted(faults.length, "fault")}:\n  ${faults.join("\n  ")}`);
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws {ConfigFaults} with every fault of the environment. */
export function readConfig(env: Environment): Config {
  const { values, faults, otelFaults } = readVariables(env);
  faults.push(...faultsBetween(env), ...faultsOfPorts(values));
  if (faults.length > 0) throw new ConfigFaults(faults);
  const tracing = otelFaults.some((fault) => NO_TRACES.test(fault))
    ? null
    : tracingOf(values as Values);
  const warnings = [
    ...otelFaults,
    ...otelWarnings(env),
    ...grpcWarnings(tracing, values as Values),
  ];
  return { ...configOf(values as Values), tracing, otelWarnings: warnings };
}

/** Counted as not set, these could send traces and the secrets of their headers to another collector than the one that is meant. */
const NO_TRACES = /^OTEL_EXPORTER_OTLP_(TRACES_)?ENDPOINT:/;

/** What is set to nothing is not set. */
function given(env: Environment, name: string): string | undefined {
  return env[name] === "" ? undefined : env[name];
}

/** @returns the valid values, and what is wrong with the others; a faulty OpenTelemetry variable then counts as not set */
function readVariables(env: Environment) {
  const values: Partial<Record<VariableName, unknown>> = {};
  const faults: string[] = [];
  const otelFaults: string[] = [];
  for (const name of Object.keys(VARIABLES) as VariableName[]) {
    const reading = VARIABLES[name].read(given(env, name));
    if ("value" in reading) values[name] = reading.value;
    else {
      const isOtel = name.startsWith("OTEL_");
      const unset = isOtel ? VARIABLES[name].read(undefined) : reading;
      if ("value" in unset) values[name] = unset.value;
      (isOtel ? otelFaults : faults).push(...reading.faults.map((fault) => `${name}: ${fault}`));
    }
  }
  return { values: values as Partial<Values>, faults, otelFaults };
}

/** What variables that are right by themselves say against each other. */
function faultsBetween(env: Environment): string[] {
  const isGiven = (name: VariableName) => given(env, name) !== undefined;
  const faults: string[] = [];
  const needs = (name: VariableName, needed: VariableName, why = "") => {
    if (isGiven(name) && !isGiven(needed)) faults.push(`${name}: needs ${needed}${why}.`);
  };
  needs("ENCRYPTION_KEY_PREVIOUS", "ENCRYPTION_KEY", ", the new key");
  if (
    isGiven("ENCRYPTION_KEY_PREVIOUS") &&
    env["ENCRYPTION_KEY_PREVIOUS"] === env["ENCRYPTION_KEY"]
  ) {
    faults.push("ENCRYPTION_KEY_PREVIOUS: the same as ENCRYPTION_KEY.");
  }
  needs("CLICKHOUSE_CLUSTER", "CLICKHOUSE_URL");
  needs("CLICKHOUSE_READ_URL", "CLICKHOUSE_URL");
  if (given(env, "CLIENT_CERT_HEADERS") !== "none") {
    needs("CLIENT_CERT_HEADERS", "TRUSTED_PROXIES", ", which says who may send them");
  }
  if (env["EXPORT_TO"]?.startsWith("s3://")) {
    needs("EXPORT_TO", "AWS_ACCESS_KEY_ID");
    needs("EXPORT_TO", "AWS_SECRET_ACCESS_KEY");
  }
  needs("SQL_PORT", "SQL_PASSWORD");
  const hasBoth = isGiven("INGEST_TLS_CERT_FILE") && isGiven("INGEST_TLS_KEY_FILE");
  const hasNone = !(
    isGiven("INGEST_TLS_CERT_FILE") ||
    isGiven("INGEST_TLS_KEY_FILE") ||
    isGiven("INGEST_TLS_CLIENT_CA_FILE")
  );
  if (!hasBoth && !hasNone) {
    faults.push("INGEST_TLS_CERT_FILE, INGEST_TLS_KEY_FILE: TLS needs both of them.");
  }
  if (isGiven("SQL_PORT") && isGiven("CLICKHOUSE_URL")) {
    faults.push(
      "SQL_PORT, CLICKHOUSE_URL: one of them; a server has its own port and read-only user.",
    );
  }
  if (isGiven("REDIS_URL") && isGiven("REDIS_CLUSTER_URLS")) {
    faults.push("REDIS_URL, REDIS_CLUSTER_URLS: one of them.");
  }
  if (env["TEST_CLOCK"] === "1" && env["NODE_ENV"] === "production") {
    faults.push("TEST_CLOCK: refused when NODE_ENV=production.");
  }
  return faults;
}

const PORTS = [
  "INGEST_PORT",
  "API_PORT",
  "PANEL_PORT",
  "PROCESSORS_PORT",
  "ANALYTICS_PORT",
  "SQL_PORT",
  "METRICS_PORT",
] as const;

function faultsOfPorts(values: Partial<Values>): string[] {
  const fixed = PORTS.filter((name) => values[name]);
  if (new Set(fixed.map((name) => values[name])).size === fixed.length) return [];
  return [`${fixed.join(", ")}: each needs a port of its own.`];
}

function configOf(values: Values): Omit<Config, "tracing" | "otelWarnings"> {
  const tls = { certFile: values.INGEST_TLS_CERT_FILE, keyFile: values.INGEST_TLS_KEY_FILE };
  return {
    host: values.HOST,
    ports: {
      ingest: values.INGEST_PORT,
      api: values.API_PORT,
      panel: values.PANEL_PORT,
      processors: values.PROCESSORS_PORT,
      analytics: values.ANALYTICS_PORT,
      sql: values.SQL_PORT,
      metrics: values.METRICS_PORT,
    },
    metricsToken: values.METRICS_TOKEN,
    sqlPassword: values.SQL_PASSWORD,
    drainSeconds: values.DRAIN_SECONDS,
    dataDir: values.DATA_DIR,
    redisUrl: values.REDIS_URL,
    redisClusterUrls: values.REDIS_CLUSTER_URLS,
    replicas: { wanted: values.REDIS_WAIT_REPLICAS, isStrict: values.REDIS_WAIT_STRICT === "1" },
    clickhouseUrl: values.CLICKHOUSE_URL,
    clickhouseReadUrl: values.CLICKHOUSE_READ_URL,
    clickhouseCluster: values.CLICKHOUSE_CLUSTER,
    isDemo: false,
    setupFile: values.SETUP_FILE,
    jwtSecret: values.JWT_SECRET,
    panelToken: values.PANEL_TOKEN,
    encryptionKey: values.ENCRYPTION_KEY,
    encryptionKeyPrevious: values.ENCRYPTION_KEY_PREVIOUS,
    publicUrl: (values.PUBLIC_URL ?? urlOf(values.HOST, values.PANEL_PORT)).replace(/\/+$/, ""),
    nationalCarrier: values.NATIONAL_CARRIER,
    nationalCarrierUrl: values.NATIONAL_CARRIER_URL,
    geocoderUrl: values.GEOCODER_URL,
    smtpUrl: values.SMTP_URL,
    mailFrom: values.MAIL_FROM,
    outboundIps: values.OUTBOUND_IPS,
    securityContact: values.SECURITY_CONTACT ?? null,
    smsGatewayUrl: values.SMS_GATEWAY_URL,
    webhookAllowedCidrs: values.WEBHOOK_ALLOWED_CIDRS,
    webhookCaFile: values.WEBHOOK_CA_FILE,
    trustedProxies: values.TRUSTED_PROXIES,
    clientCertHeaders: values.CLIENT_CERT_HEADERS,
    ingestTls:
      tls.certFile === null || tls.keyFile === null
        ? null
        : {
            certFile: tls.certFile,
            keyFile: tls.keyFile,
            clientCaFile: values.INGEST_TLS_CLIENT_CA_FILE,
          },
    testClock: values.TEST_CLOCK === "1",
    logLevel: values.LOG_LEVEL,
    storePartitions: values.STORE_PARTITIONS,
    eventsPerDay: values.EVENTS_PER_DAY,
    logHighWater: values.LOG_HIGH_WATER,
    eventRetentionMonths: values.EVENT_RETENTION_MONTHS,
    attemptRetentionDays: values.ATTEMPT_RETENTION_DAYS,
    auditRetentionMonths: values.AUDIT_RETENTION_MONTHS,
    archiveAfterDays: values.ARCHIVE_AFTER_DAYS,
    shipmentRetentionMonths: values.SHIPMENT_RETENTION_MONTHS,
    archiveRoundSeconds: values.ARCHIVE_ROUND_SECONDS,
    exportTo: values.EXPORT_TO,
    exportEveryMinutes: values.EXPORT_EVERY_MINUTES,
    s3: {
      endpoint: values.AWS_ENDPOINT_URL,
      region: values.AWS_REGION,
      accessKeyId: values.AWS_ACCESS_KEY_ID,
      secretAccessKey: values.AWS_SECRET_ACCESS_KEY,
    },
  };
}
