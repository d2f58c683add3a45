/**
 * The environment variables: how each is read, its value when it is not set, and what it means. `.env.example` is made from
 * this table (`npm run tool -- env-example`), and a test compares the names with docs/configuration.md.
 */
import { PARTITIONS_MOST } from "#core/platform/redis/partitions.ts";
import {
  addresses,
  attributeList,
  clusterName,
  exportTarget,
  folder,
  fraction,
  headerList,
  host,
  jsonFile,
  type Kind,
  lowerCase,
  mailbox,
  networks,
  oneOf,
  pemFile,
  port,
  powerOfTwo,
  type Reading,
  secret,
  someOf,
  text,
  url,
  urls,
  wholeNumber,
} from "./variable-kinds.ts";

export interface Variable<T> {
  /** The text that counts when it is not set; null = none. */
  readonly fallback: string | null;
  readonly meaning: string;
  readonly read: (text: string | undefined) => Reading<T>;
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
const TRACE_SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
/** See `tracing-config.ts` for what becomes of grpc. */
const OTLP_PROTOCOLS = ["http/json", "http/protobuf", "grpc"] as const;
export const PROPAGATORS = ["tracecontext", "baggage", "none"] as const;
export const TRACE_EXPORTERS = ["otlp", "none"] as const;
/** See `core/platform/http/peer.ts`. */
const CLIENT_CERT_HEADERS = ["none", "x-client-cert", "envoy", "rfc9440"] as const;

export type OtlpProtocol = (typeof OTLP_PROTOCOLS)[number];
export type TraceSampler = (typeof TRACE_SAMPLERS)[number];
export type ClientCertHeaders = (typeof CLIENT_CERT_HEADERS)[number];

function preset<T>(fallback: string, kind: Kind<T>, meaning: string): Variable<T> {
  return { fallback, meaning, read: (text = fallback) => kind(text) };
}

function optional<T>(kind: Kind<T>, meaning: string): Variable<T | null> {
  return {
    fallback: null,
    meaning,
    read: (text) => (text === undefined ? { value: null } : kind(text)),
  };
}

/** In the order of `.env.example`. */
export const VARIABLES = {
  HOST: preset("127.0.0.1", host, "Listen address of every port."),
  INGEST_PORT: preset("8081", port, "Port of ingest; 0 picks a free one and logs it."),
  API_PORT: preset("8080", port, "Port of the merchants' API."),
  PANEL_PORT: preset("8082", port, "Port of the panel."),
  PROCESSORS_PORT: optional(
    port,
    "Health and metrics of the processors; 8083 when the role runs alone.",
  ),
  ANALYTICS_PORT: optional(
    port,
    "Health and metrics of the analytics; 8084 when the role runs alone.",
  ),
  SQL_PORT: optional(
    port,
    "ClickHouse's HTTP interface of the embedded engine for BI tools and drivers, in the process of the analytics; without it there is none.",
  ),
  SQL_PASSWORD: optional(
    secret,
    "Password of its user waybill_reader, 16 characters or more; required with SQL_PORT.",
  ),
  METRICS_PORT: optional(port, "The only port that answers /metrics; without it every port does."),
  METRICS_TOKEN: optional(secret, "Bearer token that /metrics requires, 16 characters or more."),
  PUBLIC_URL: optional(
    url("http:", "https:"),
    "Where the panel's port is reachable from outside; http://HOST:PANEL_PORT if not set.",
  ),
  DRAIN_SECONDS: preset(
    "5",
    wholeNumber(0, 600),
    "Seconds that every port goes on serving after SIGTERM, with readiness already 503; 0 with the demo.",
  ),

  DATA_DIR: preset(
    ".data",
    folder,
    "Files of the embedded Redis and ClickHouse, and generated secrets; .data/demo for the demo.",
  ),
  REDIS_URL: optional(url("redis:", "rediss:"), "A Redis of your own; without it one is embedded."),
  REDIS_CLUSTER_URLS: optional(
    urls("redis:", "rediss:"),
    "Some nodes of a Redis Cluster, comma-separated.",
  ),
  REDIS_WAIT_REPLICAS: preset(
    "0",
    wholeNumber(0, 10),
    "Replicas that must have a write before it is acknowledged, as far as a master has them.",
  ),
  REDIS_WAIT_STRICT: preset(
    "0",
    oneOf(["0", "1"]),
    "1 refuses to write to a master that has fewer replicas than REDIS_WAIT_REPLICAS.",
  ),
  STORE_PARTITIONS: optional(
    powerOfTwo(PARTITIONS_MOST),
    `Partitions of a new store, a power of two to ${PARTITIONS_MOST}; without it one on one server, four a master on a cluster.`,
  ),
  CLICKHOUSE_URL: optional(
    url("http:", "https:"),
    "A ClickHouse server of your own; without it one is embedded.",
  ),
  CLICKHOUSE_READ_URL: optional(
    url("http:", "https:"),
    "The same server with a read-only user, for the data team's statements.",
  ),
  CLICKHOUSE_CLUSTER: optional(
    clusterName,
    "Name of a cluster of replicas that CLICKHOUSE_URL belongs to.",
  ),

  SETUP_FILE: optional(jsonFile, "Setup file applied at the start; without it the demo runs."),
  JWT_SECRET: optional(
    secret,
    "Signs merchants' access tokens, 16 characters or more; generated if not set.",
  ),
  PANEL_TOKEN: optional(
    secret,
    "Bearer token of the first operator, 16 characters or more; generated if not set.",
  ),
  ENCRYPTION_KEY: optional(
    secret,
    "Encrypts secrets in the store, 16 characters or more; generated by the first machine.",
  ),
  ENCRYPTION_KEY_PREVIOUS: optional(
    secret,
    "The previous key, while `npx waybill reencrypt` replaces it.",
  ),

  WEBHOOK_ALLOWED_CIDRS: preset(
    "",
    networks,
    "Private networks that webhooks may reach, comma-separated; for development.",
  ),
  WEBHOOK_CA_FILE: optional(pemFile, "Extra PEM roots trusted for the TLS of webhooks."),
  OUTBOUND_IPS: preset(
    "",
    addresses,
    "Addresses that outgoing calls leave from, published at /ips.txt.",
  ),
  SECURITY_CONTACT: optional(
    url("mailto:", "https:"),
    "Who takes reports of weaknesses, published at /.well-known/security.txt of the panel's port.",
  ),
  SMTP_URL: optional(
    url("smtp:", "smtps:"),
    "Outgoing mail; without it mails become files under DATA_DIR/outbox.",
  ),
  MAIL_FROM: preset(
    "Waybill <noreply@waybill.invalid>",
    mailbox,
    "Sender of our own mail, such as webhook alerts.",
  ),
  SMS_GATEWAY_URL: optional(
    url("http:", "https:"),
    "HTTP gateway that text messages are posted to; without it none are sent.",
  ),
  GEOCODER_URL: optional(
    url("http:", "https:"),
    "A Nominatim-compatible geocoder; without it the offline Italian gazetteer answers.",
  ),
  NATIONAL_CARRIER: preset("POSTE", text, "Prefix of the national carrier's codes."),
  NATIONAL_CARRIER_URL: optional(
    url("http:", "https:"),
    "HTTP gateway of the national carrier: labels, street registry, stock release.",
  ),

  TRUSTED_PROXIES: preset(
    "",
    networks,
    "Networks of proxies whose X-Forwarded-For and client certificate headers are trusted.",
  ),
  CLIENT_CERT_HEADERS: preset(
    "none",
    oneOf(CLIENT_CERT_HEADERS),
    `Headers in which those proxies pass on client certificates: ${CLIENT_CERT_HEADERS.join(", ")}.`,
  ),
  INGEST_TLS_CERT_FILE: optional(text, "PEM certificate: ingest serves HTTPS by itself."),
  INGEST_TLS_KEY_FILE: optional(text, "PEM key of that certificate."),
  INGEST_TLS_CLIENT_CA_FILE: optional(text, "PEM roots of the client certificates it asks for."),

  EVENTS_PER_DAY: preset(
    "200000",
    wholeNumber(1_000, 1_000_000_000),
    "Expected volume, which sizes the memory of event ids.",
  ),
  LOG_HIGH_WATER: preset(
    "1000000",
    wholeNumber(1_000, 1_000_000_000),
    "Events or changes that a log may hold before ingest answers 503.",
  ),
  EVENT_RETENTION_MONTHS: preset(
    "24",
    wholeNumber(1, 1_200),
    "How long the analytics keep raw events.",
  ),
  ATTEMPT_RETENTION_DAYS: preset(
    "90",
    wholeNumber(1, 36_500),
    "How long the analytics keep webhook attempts.",
  ),
  AUDIT_RETENTION_MONTHS: preset(
    "24",
    wholeNumber(1, 1_200),
    "How long ClickHouse keeps the entries of the audit log.",
  ),
  ARCHIVE_AFTER_DAYS: preset(
    "30",
    wholeNumber(0, 3_650),
    "Days without news after which shipments that have ended move to ClickHouse; 0 = never.",
  ),
  SHIPMENT_RETENTION_MONTHS: optional(
    wholeNumber(1, 1_200),
    "Months in the archive after which shipments are removed for good; without it they are kept.",
  ),
  ARCHIVE_ROUND_SECONDS: preset(
    "60",
    wholeNumber(1, 86_400),
    "Seconds from one look for shipments to archive to the next; half as long others wait for a process that died.",
  ),
  EXPORT_TO: optional(
    exportTarget,
    "Folder, or s3://bucket/prefix, that the analytics export Parquet files to; without it none are.",
  ),
  EXPORT_EVERY_MINUTES: preset(
    "1440",
    wholeNumber(1, 44_640),
    "Minutes from one export to the next.",
  ),
  AWS_ENDPOINT_URL: optional(
    url("http:", "https:"),
    "Endpoint of an S3-compatible store; without it Amazon's.",
  ),
  AWS_REGION: optional(text, "Region of the bucket."),
  AWS_ACCESS_KEY_ID: optional(text, "Key that may read and write the bucket."),
  AWS_SECRET_ACCESS_KEY: optional(text, "Secret of that key."),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    url("http:", "https:"),
    "Base URL of an OpenTelemetry collector, which traces are sent to; without it there are none.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(
    url("http:", "https:"),
    "The URL for traces itself, instead of the base with /v1/traces.",
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: preset(
    "http/json",
    lowerCase(oneOf(OTLP_PROTOCOLS)),
    "Protocol of the collector: http/json or http/protobuf. With grpc, traces go as http/protobuf to port 4318 in place of 4317.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: optional(
    lowerCase(oneOf(OTLP_PROTOCOLS)),
    "The protocol for traces, instead of the general one.",
  ),
  OTEL_EXPORTER_OTLP_HEADERS: optional(
    headerList,
    "Headers for the collector: name=value, comma-separated.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: optional(
    headerList,
    "Headers for traces, besides the general ones.",
  ),
  OTEL_EXPORTER_OTLP_TIMEOUT: preset(
    "10000",
    wholeNumber(1, 600_000),
    "Milliseconds that the collector has to answer.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: optional(
    wholeNumber(1, 600_000),
    "The same for traces, instead of the general one.",
  ),
  OTEL_SERVICE_NAME: optional(
    text,
    "service.name in traces. If it is not set: that of OTEL_RESOURCE_ATTRIBUTES, or waybill.",
  ),
  OTEL_RESOURCE_ATTRIBUTES: optional(
    attributeList,
    "Resource attributes of traces: name=value, comma-separated and percent-encoded.",
  ),
  OTEL_TRACES_EXPORTER: preset(
    "otlp",
    someOf(TRACE_EXPORTERS),
    "otlp, or none: no traces, whatever else is set.",
  ),
  OTEL_PROPAGATORS: preset(
    "tracecontext,baggage",
    someOf(PROPAGATORS),
    "Without tracecontext, callers' traces are not continued, and webhooks carry no traceparent.",
  ),
  OTEL_TRACES_SAMPLER: preset(
    "parentbased_always_on",
    lowerCase(oneOf(TRACE_SAMPLERS)),
    `Which traces are recorded: ${TRACE_SAMPLERS.join(", ")}.`,
  ),
  OTEL_TRACES_SAMPLER_ARG: optional(
    fraction,
    "Of a ratio sampler: the share of traces, from 0 to 1.",
  ),
  OTEL_SDK_DISABLED: preset(
    "false",
    lowerCase(oneOf(["true", "false"])),
    "true: no traces whatever else is set.",
  ),
  TEST_CLOCK: preset(
    "0",
    oneOf(["0", "1"]),
    "1 lets the panel move the service clock forward; refused when NODE_ENV=production.",
  ),
  LOG_LEVEL: preset("info", oneOf(LOG_LEVELS), `One of ${LOG_LEVELS.join(", ")}.`),
} as const;

export type VariableName = keyof typeof VARIABLES;

export type Values = {
  readonly [Name in VariableName]: (typeof VARIABLES)[Name] extends Variable<infer T> ? T : never;
};

/** The text of `.env.example`: every variable is commented out, with its default. */
export function envExample(): string {
  const blocks = Object.entries(VARIABLES).map(
    ([name, { fallback, meaning }]) => `# ${meaning}\n#${name}=${fallback ?? ""}\n`,
  );
  return `# Environment variables of Waybill with their defaults. Made by \`npm run tool -- env-example\`.\n\n${blocks.join("\n")}`;
}
