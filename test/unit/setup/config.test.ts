/** setup-file.md, Environment: a bad variable stops the start with every fault listed at once. */
import { describe, expect, test } from "bun:test";
import { ConfigFaults, readConfig } from "#core/platform/environment/config.ts";
import { parseCidr } from "#core/platform/network/cidr.ts";

describe("configuration", () => {
  test("an empty environment has the documented defaults", () => {
    const config = readConfig({});
    const none = { processors: null, analytics: null, metrics: null, sql: null };
    expect(config.ports).toEqual({ ingest: 8081, api: 8080, panel: 8082, ...none });
    expect(config.metricsToken).toBeNull();
    expect(config.host).toBe("127.0.0.1");
    expect(config.dataDir).toEndWith(".data");
    expect([config.redisUrl, config.clickhouseUrl, config.setupFile]).toEqual([null, null, null]);
    expect(config.testClock).toBe(false);
  });

  test("every fault is listed at once", () => {
    const env = {
      API_PORT: "eighty",
      INGEST_PORT: "65536",
      PROCESSORS_PORT: "x",
      ANALYTICS_PORT: "-1",
      METRICS_PORT: "70000",
      METRICS_TOKEN: "short",
      REDIS_URL: "http://localhost",
      CLICKHOUSE_URL: "localhost",
      JWT_SECRET: "short",
      LOG_LEVEL: "loud",
      TEST_CLOCK: "yes",
      WEBHOOK_ALLOWED_CIDRS: "10.0.0.0/8,nonsense",
      MAIL_FROM: "nobody",
      OUTBOUND_IPS: "203.0.113.7,example.com",
      TRUSTED_PROXIES: "10.0.0.0/33",
      CLIENT_CERT_HEADERS: "x-forwarded-client-cert",
    };
    let faults: readonly string[] = [];
    try {
      readConfig(env);
    } catch (error) {
      faults = error instanceof ConfigFaults ? error.faults : [];
    }
    expect(faults.map((fault) => fault.split(":")[0]).sort()).toEqual(Object.keys(env).sort());
  });

  test("one fault is counted in the singular", () => {
    expect(() => readConfig({ API_PORT: "x" })).toThrow("The configuration has 1 fault:");
    expect(() => readConfig({ API_PORT: "x", HOST: "", LOG_LEVEL: "loud" })).toThrow(
      / [23] faults:/,
    );
  });

  test("no client certificate header is trusted unless one is configured with a proxy that may send it", () => {
    expect(readConfig({}).clientCertHeaders).toBe("none");
    const proxied = { TRUSTED_PROXIES: "10.0.0.1", CLIENT_CERT_HEADERS: "envoy" };
    expect(readConfig(proxied).clientCertHeaders).toBe("envoy");
    expect(() => readConfig({ CLIENT_CERT_HEADERS: "envoy" })).toThrow("needs TRUSTED_PROXIES");
  });

  test("how long the analytics keep things, and their cluster", () => {
    const config = readConfig({});
    expect([config.eventRetentionMonths, config.attemptRetentionDays]).toEqual([24, 90]);
    expect(config.clickhouseCluster).toBe(null);
    const faulty = { ATTEMPT_RETENTION_DAYS: "0", CLICKHOUSE_CLUSTER: "a'b" };
    expect(() => readConfig(faulty)).toThrow(
      /CLICKHOUSE_CLUSTER: letters[\s\S]*ATTEMPT_RETENTION_DAYS/,
    );
    expect(() => readConfig({ CLICKHOUSE_CLUSTER: "main" })).toThrow("needs CLICKHOUSE_URL");
    const reader = { CLICKHOUSE_READ_URL: "http://waybill_reader@127.0.0.1:8123/waybill" };
    expect(() => readConfig(reader)).toThrow("CLICKHOUSE_READ_URL: needs CLICKHOUSE_URL");
  });

  test("the previous key is accepted only together with a new one", () => {
    const key = "a-key-of-the-tests";
    const pair =
      (previous: string, ENCRYPTION_KEY = key) =>
      () =>
        readConfig({ ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS: previous });
    expect(pair(key)).toThrow("ENCRYPTION_KEY_PREVIOUS: the same as ENCRYPTION_KEY");
    expect(pair(key, "")).toThrow("ENCRYPTION_KEY_PREVIOUS: needs ENCRYPTION_KEY");
    expect(pair("short")).toThrow("ENCRYPTION_KEY_PREVIOUS: at least 16 characters");
    expect(pair("the-key-before-it")().encryptionKeyPrevious).toBe("the-key-before-it");
  });

  test("HOST is an address or a name, and no port is used twice", () => {
    for (const HOST of ["127.0.0.1", "::1", "localhost", "waybill.example"]) {
      expect(readConfig({ HOST }).host).toBe(HOST);
    }
    for (const HOST of ["999.1.1.1", "not..host", "not a host!"]) {
      expect(() => readConfig({ HOST })).toThrow(ConfigFaults);
    }
    expect(() => readConfig({ API_PORT: "9000", PANEL_PORT: "9000" })).toThrow(ConfigFaults);
    for (const name of ["PROCESSORS_PORT", "ANALYTICS_PORT", "METRICS_PORT"]) {
      expect(() => readConfig({ [name]: "8080" })).toThrow(`API_PORT, PANEL_PORT, ${name}`);
      expect(readConfig({ [name]: "0", API_PORT: "0" }).ports.api).toBe(0);
    }
  });

  test("files that are named must be there and be what they should be", () => {
    expect(() => readConfig({ WEBHOOK_CA_FILE: "/nope.pem" })).toThrow(ConfigFaults);
    expect(() => readConfig({ WEBHOOK_CA_FILE: "package.json" })).toThrow("PEM");
    expect(() => readConfig({ SETUP_FILE: "README.md" })).toThrow("JSON");
    expect(() => readConfig({ DATA_DIR: "/proc/nope" })).toThrow(ConfigFaults);
  });

  test("TEST_CLOCK is refused in production", () => {
    expect(() => readConfig({ TEST_CLOCK: "1", NODE_ENV: "production" })).toThrow(ConfigFaults);
  });

  test("TLS of ingest needs certificate and key, client roots need both", () => {
    const both = { INGEST_TLS_CERT_FILE: "c.pem", INGEST_TLS_KEY_FILE: "k.pem" };
    expect(readConfig(both).ingestTls).toEqual({
      certFile: "c.pem",
      keyFile: "k.pem",
      clientCaFile: null,
    });
    for (const name of [...Object.keys(both), "INGEST_TLS_CLIENT_CA_FILE"]) {
      expect(() => readConfig({ [name]: "x.pem" })).toThrow(ConfigFaults);
    }
  });

  test("trusted proxies are networks of both families; a wrong one is a fault", () => {
    expect(readConfig({ TRUSTED_PROXIES: "10.0.0.0/8, fd00::/8" }).trustedProxies.length).toBe(2);
    expect(() => readConfig({ TRUSTED_PROXIES: "10.0.0.0/8,proxy" })).toThrow("TRUSTED_PROXIES");
  });

  test("ports go from 0 to 65535", () => {
    expect(readConfig({ API_PORT: "0", INGEST_PORT: "65535" }).ports.ingest).toBe(65_535);
  });

  test("networks are read in both families, single addresses too", () => {
    for (const text of ["10.0.0.0/8", "10.1.2.3", "fd00::/8", "::1"]) {
      expect(parseCidr(text)).not.toBeNull();
    }
    for (const text of ["10.0.0.0/33", "ten", ""]) expect(parseCidr(text)).toBeNull();
  });
});
