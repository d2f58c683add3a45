/** The process environment, read once in a main file and checked as a whole: every fault is told at once. */
import { X509Certificate } from "node:crypto";
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import ipaddr from "ipaddr.js";

export interface Config {
  readonly host: string;
  readonly ports: {
    readonly ingest: number;
    readonly api: number;
    readonly panel: number;
    /** Null = none, or the default port if the role runs alone. */
    readonly processors: number | null;
    readonly analytics: number | null;
    /** The only port that answers `/metrics`; null = every port does. */
    readonly metrics: number | null;
  };
  /** Bearer token of `/metrics`; null = none is required. */
  readonly metricsToken: string | null;
  readonly dataDir: string;
  /** Null = the embedded Redis under `dataDir`. */
  readonly redisUrl: string | null;
  /** Some nodes of a Redis Cluster; null = no cluster. */
  readonly redisClusterUrls: readonly string[] | null;
  /** Replicas that must have a write before it is acknowledged; 0 = the master's disk is enough. */
  readonly redisWaitReplicas: number;
  /** Null = the embedded ClickHouse under `dataDir`. */
  readonly clickhouseUrl: string | null;
  /** The same server with a read-only user, for the data team's statements; null = they are refused. */
  readonly clickhouseReadUrl: string | null;
  /** Name of the cluster that the server belongs to; null = none, or one that replicates by itself. */
  readonly clickhouseCluster: string | null;
  /** Null = the demo setup. */
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
  readonly logLevel: string;
  /** Sizes the memory of eventIds; see `core/redis/seen.ts`. */
  readonly eventsPerDay: number;
  /** Entries a log may hold before ingest answers 503. */
  readonly logHighWater: number;
  /** How long the analytics keep raw events. */
  readonly eventRetentionMonths: number;
  /** How long the analytics keep webhook attempts. */
  readonly attemptRetentionDays: number;
}

export interface IngestTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** Roots of client certificates; null = none is asked for. */
  readonly clientCaFile: string | null;
}

/** See `core/http/peer.ts`. */
const CLIENT_CERT_HEADERS = ["none", "x-client-cert", "envoy", "rfc9440"] as const;
export type ClientCertHeaders = (typeof CLIENT_CERT_HEADERS)[number];

export type Cidr = [ipaddr.IPv4 | ipaddr.IPv6, number];

export class ConfigFaults extends Error {
  constructor(readonly faults: readonly string[]) {
    super(`The configuration has ${faults.length} fault(s):\n  ${faults.join("\n  ")}`);
  }
}

/** Labels with a letter in the last one, so that a mistyped address is no name. */
const HOST_NAME = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z]([a-z0-9-]*[a-z0-9])?$/i;
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
const SECRET_MIN_LENGTH = 16;

/** @throws {ConfigFaults} with every fault of the environment. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const given = (name: string) => (env[name] === "" ? undefined : env[name]);

  function integer(name: string, fallback: number, min: number, max: number): number {
    const text = given(name);
    if (text === undefined) return fallback;
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    faults.push(`${name}: a whole number from ${min} to ${max}, not "${text}".`);
    return fallback;
  }

  function port(name: string): number | null {
    return given(name) === undefined ? null : integer(name, 0, 0, 65_535);
  }

  function url(name: string, protocols: readonly string[]): string | null {
    const text = given(name);
    if (text === undefined) return null;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    faults.push(`${name}: a URL starting with ${protocols.map((p) => `${p}//`).join(" or ")}.`);
    return null;
  }

  function urls(name: string, protocols: readonly string[]): string[] | null {
    const texts = given(name)
      ?.split(",")
      .map((text) => text.trim());
    if (texts?.every((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol))) {
      return texts;
    }
    if (texts) faults.push(`${name}: URLs, comma-separated, of ${protocols.join(" or ")}//.`);
    return null;
  }

  function secret(name: string): string | null {
    const text = given(name);
    if (text === undefined) return null;
    if (text.length >= SECRET_MIN_LENGTH) return text;
    faults.push(`${name}: at least ${SECRET_MIN_LENGTH} characters.`);
    return null;
  }

  function encryptionKeyPrevious(): string | null {
    const previous = given("ENCRYPTION_KEY_PREVIOUS");
    if (previous !== undefined && previous === given("ENCRYPTION_KEY")) {
      faults.push("ENCRYPTION_KEY_PREVIOUS: the same as ENCRYPTION_KEY.");
    }
    if (previous !== undefined && given("ENCRYPTION_KEY") === undefined) {
      faults.push("ENCRYPTION_KEY_PREVIOUS: needs ENCRYPTION_KEY, the new key.");
    }
    return secret("ENCRYPTION_KEY_PREVIOUS");
  }

  function cidrs(name: string): Cidr[] {
    return (given(name)?.split(",") ?? []).flatMap((part) => {
      const text = part.trim();
      if (text === "") return [];
      const cidr = parseCidr(text);
      if (cidr) return [cidr];
      faults.push(`${name}: "${text}" is no network such as 10.0.0.0/8 or fd00::/8.`);
      return [];
    });
  }

  function mailFrom(): string {
    const text = given("MAIL_FROM") ?? "Waybill <noreply@waybill.invalid>";
    if (!/^[^\r\n]*[^\s@<>]@[^\s@<>]+>?$/.test(text)) {
      faults.push(`MAIL_FROM: an address such as noreply@example.com, not "${text}".`);
    }
    return text;
  }

  function clickhouseCluster(): string | null {
    const name = given("CLICKHOUSE_CLUSTER") ?? null;
    if (name === null) return null;
    if (!/^[\w.-]{1,100}$/.test(name)) faults.push("CLICKHOUSE_CLUSTER: letters, digits, _ . -");
    if (!given("CLICKHOUSE_URL")) faults.push("CLICKHOUSE_CLUSTER: needs CLICKHOUSE_URL.");
    return name;
  }

  function clickhouseReadUrl(): string | null {
    if (given("CLICKHOUSE_READ_URL") && !given("CLICKHOUSE_URL")) {
      faults.push("CLICKHOUSE_READ_URL: needs CLICKHOUSE_URL.");
    }
    return url("CLICKHOUSE_READ_URL", ["http:", "https:"]);
  }

  function addresses(name: string): string[] {
    const parts = (given(name) ?? "").split(",").map((part) => part.trim());
    const listed = parts.filter((part) => part !== "");
    for (const part of listed) {
      if (!ipaddr.isValid(part)) faults.push(`${name}: "${part}" is no address.`);
    }
    return listed;
  }

  function clientCertHeaders(): ClientCertHeaders {
    const text = given("CLIENT_CERT_HEADERS") ?? "none";
    const known = CLIENT_CERT_HEADERS.find((name) => name === text);
    if (known === undefined) {
      faults.push(`CLIENT_CERT_HEADERS: one of ${CLIENT_CERT_HEADERS.join(", ")}, not "${text}".`);
    }
    if (text !== "none" && !given("TRUSTED_PROXIES")) {
      faults.push("CLIENT_CERT_HEADERS: needs TRUSTED_PROXIES, which says who may send them.");
    }
    return known ?? "none";
  }

  function ingestTls(): IngestTls | null {
    const certFile = given("INGEST_TLS_CERT_FILE");
    const keyFile = given("INGEST_TLS_KEY_FILE");
    const clientCaFile = given("INGEST_TLS_CLIENT_CA_FILE") ?? null;
    if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile, clientCaFile };
    if (certFile !== undefined || keyFile !== undefined || clientCaFile !== null) {
      faults.push("INGEST_TLS_CERT_FILE, INGEST_TLS_KEY_FILE: TLS needs both of them.");
    }
    return null;
  }

  const logLevel = given("LOG_LEVEL") ?? "info";
  if (!LOG_LEVELS.includes(logLevel)) {
    faults.push(`LOG_LEVEL: one of ${LOG_LEVELS.join(", ")}, not "${logLevel}".`);
  }
  const testClockText = given("TEST_CLOCK") ?? "0";
  if (!["0", "1"].includes(testClockText)) faults.push(`TEST_CLOCK: 0 or 1.`);
  if (given("REDIS_URL") !== undefined && given("REDIS_CLUSTER_URLS") !== undefined) {
    faults.push("REDIS_URL, REDIS_CLUSTER_URLS: one of them.");
  }
  if (testClockText === "1" && env["NODE_ENV"] === "production") {
    faults.push("TEST_CLOCK: refused when NODE_ENV=production.");
  }

  function readable(name: string, faultOf: (text: string) => string | null): string | null {
    const path = given(name);
    if (path === undefined) return null;
    try {
      const fault = faultOf(readFileSync(path, "utf8"));
      if (fault !== null) faults.push(`${name}: ${path} ${fault}.`);
    } catch (error) {
      faults.push(`${name}: cannot be read: ${(error as Error).message}.`);
    }
    return path;
  }

  function folder(name: string, fallback: string): string {
    const path = resolve(given(name) ?? fallback);
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      accessSync(path, constants.W_OK);
    } catch (error) {
      faults.push(`${name}: cannot be written to: ${(error as Error).message}.`);
    }
    return path;
  }

  const host = given("HOST") ?? "127.0.0.1";
  if (isIP(host) === 0 && !HOST_NAME.test(host)) {
    faults.push(`HOST: an address or a host name, not "${host}".`);
  }
  const ports = {
    ingest: integer("INGEST_PORT", 8081, 0, 65_535),
    api: integer("API_PORT", 8080, 0, 65_535),
    panel: integer("PANEL_PORT", 8082, 0, 65_535),
    processors: port("PROCESSORS_PORT"),
    analytics: port("ANALYTICS_PORT"),
    metrics: port("METRICS_PORT"),
  };
  const fixed = Object.entries(ports).filter(([, value]) => value !== null && value !== 0);
  if (new Set(fixed.map(([, value]) => value)).size < fixed.length) {
    const names = fixed.map(([name]) => `${name.toUpperCase()}_PORT`);
    faults.push(`${names.join(", ")}: each needs a port of its own.`);
  }
  const panelUrl = `http://${host}:${ports.panel}`;
  const config: Config = {
    host,
    ports,
    metricsToken: secret("METRICS_TOKEN"),
    dataDir: folder("DATA_DIR", ".data"),
    redisUrl: url("REDIS_URL", ["redis:", "rediss:"]),
    redisClusterUrls: urls("REDIS_CLUSTER_URLS", ["redis:", "rediss:"]),
    redisWaitReplicas: integer("REDIS_WAIT_REPLICAS", 0, 0, 10),
    clickhouseUrl: url("CLICKHOUSE_URL", ["http:", "https:"]),
    clickhouseReadUrl: clickhouseReadUrl(),
    clickhouseCluster: clickhouseCluster(),
    setupFile: readable("SETUP_FILE", faultOfJson),
    jwtSecret: secret("JWT_SECRET"),
    panelToken: secret("PANEL_TOKEN"),
    encryptionKey: secret("ENCRYPTION_KEY"),
    encryptionKeyPrevious: encryptionKeyPrevious(),
    publicUrl: (url("PUBLIC_URL", ["http:", "https:"]) ?? panelUrl).replace(/\/+$/, ""),
    nationalCarrier: given("NATIONAL_CARRIER") ?? "POSTE",
    nationalCarrierUrl: url("NATIONAL_CARRIER_URL", ["http:", "https:"]),
    geocoderUrl: url("GEOCODER_URL", ["http:", "https:"]),
    smtpUrl: url("SMTP_URL", ["smtp:", "smtps:"]),
    mailFrom: mailFrom(),
    outboundIps: addresses("OUTBOUND_IPS"),
    smsGatewayUrl: url("SMS_GATEWAY_URL", ["http:", "https:"]),
    webhookAllowedCidrs: cidrs("WEBHOOK_ALLOWED_CIDRS"),
    webhookCaFile: readable("WEBHOOK_CA_FILE", faultOfPem),
    trustedProxies: cidrs("TRUSTED_PROXIES"),
    clientCertHeaders: clientCertHeaders(),
    ingestTls: ingestTls(),
    testClock: testClockText === "1",
    logLevel,
    eventsPerDay: integer("EVENTS_PER_DAY", 200_000, 1_000, 1_000_000_000),
    logHighWater: integer("LOG_HIGH_WATER", 1_000_000, 1_000, 1_000_000_000),
    eventRetentionMonths: integer("EVENT_RETENTION_MONTHS", 24, 1, 1_200),
    attemptRetentionDays: integer("ATTEMPT_RETENTION_DAYS", 90, 1, 36_500),
  };
  if (faults.length > 0) throw new ConfigFaults(faults);
  return config;
}

function faultOfJson(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `is not JSON: ${(error as Error).message}`;
  }
}

function faultOfPem(text: string): string | null {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g);
  if (!blocks) return "holds no PEM certificate";
  try {
    for (const block of blocks) new X509Certificate(block);
    return null;
  } catch {
    return "holds a certificate that cannot be read";
  }
}

/** Reads `10.0.0.0/8`, `::1/128` or a single address; null when it is none. */
export function parseCidr(text: string): Cidr | null {
  try {
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    const address = ipaddr.parse(text);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  } catch {
    return null;
  }
}
