/** The audit log in ClickHouse: every entry once, kept for months, and read together with what waits in Redis. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type AuditEntry, hasAuditCapacity, writeAudit } from "#core/accounts/store/audit-log.ts";
import { AUDIT_LOG, AUDIT_TENANTS_KEY, OLD_AUDIT_KEY } from "#core/platform/redis/keys.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";
import { CLICKHOUSES } from "#test/support/servers/servers.ts";

const COMPANY_ENTRIES = 120;
const OLD_ENTRIES = 7;

describe.each(CLICKHOUSES)("%s", (kind) => {
  let product: TestAnalytics;

  beforeAll(async () => {
    product = await openTestAnalytics(testSetup(), kind);
  });
  afterAll(() => product?.end());

  const entry = (tenant: string, n: number): Omit<AuditEntry, "id"> => ({
    tenant,
    atMs: product.runtime.live.now(),
    actor: `${tenant}@x.test`,
    action: "PATCH /me",
    target: `/me/${n}`,
    before: { n: n - 1 },
    after: { n },
  });
  const read = async (query: string) =>
    (await product.call("GET", `/panel/api/audit?${query}`)).body;
  async function readAll(query: string): Promise<{ id: string; target: string }[]> {
    const items: { id: string; target: string }[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await read(`${query}&limit=25&cursor=${cursor}`);
      expect(page.isPartial).toBe(false);
      items.push(...page.items);
      cursor = page.nextCursor;
    }
    return items;
  }
  const isMoved = async () => {
    const [waiting, old] = await Promise.all(
      [AUDIT_LOG, OLD_AUDIT_KEY].map((key) => product.runtime.redis.xLen(key)),
    );
    return waiting === 0 && old === 0;
  };

  test("entries leave Redis once ClickHouse has them, those of the version before too, and give their tenant its room back", async () => {
    const { redis } = product.runtime;
    for (let n = 1; n <= COMPANY_ENTRIES; n += 1) await writeAudit(redis, entry("company acme", n));
    await writeAudit(redis, entry("courier GLS_ITA", 1));
    const old = { actor: "old@x.test", action: "POST /old", before: "null", after: "1" };
    for (let n = 1; n <= OLD_ENTRIES; n += 1) {
      await redis.xAdd(OLD_AUDIT_KEY, "*", { ...old, at: "1", target: `/old/${n}` });
    }
    await eventually(isMoved, "ClickHouse has the entries");
    const counts = await redis.hGetAll(AUDIT_TENANTS_KEY);
    expect(counts["taken company acme"]).toBe(String(COMPANY_ENTRIES));
    expect(await hasAuditCapacity(redis, "company acme")).toBe(true);

    const targets = (items: { target: string }[]) => items.map(({ target }) => target);
    expect(targets(await readAll("tenant=company"))).toEqual(
      Array.from({ length: COMPANY_ENTRIES }, (_, at) => `/me/${COMPANY_ENTRIES - at}`),
    );
    expect((await readAll("target=/old")).length).toBe(OLD_ENTRIES);
    expect((await read("tenant=courier")).items).toMatchObject([
      { tenant: "courier GLS_ITA", before: { n: 0 }, after: { n: 1 } },
    ]);
  });

  test("an entry that is written again, or is still in Redis, is read once", async () => {
    const { redis } = product.runtime;
    const client = await openClickhouse(product.runtime.config, "write");
    await client.command({ query: "INSERT INTO audit_log SELECT * FROM audit_log" });
    await client.close();
    const before = await readAll("");
    const [newest] = before;
    const [id = ""] = [newest?.id];
    // As after the insert, before the entry has been trimmed.
    await redis.xGroupDestroy(AUDIT_LOG, "audit");
    await redis.del(AUDIT_LOG);
    const { n: _, ...fields } = { n: "", tenant: "company acme", at: "1", target: "/again" };
    await redis.xAdd(AUDIT_LOG, id, { ...fields, actor: "x", action: "y" });
    const items = await readAll("");
    expect(items.filter((one) => one.id === id)).toHaveLength(1);
    expect(items).toHaveLength(before.length);
  });

  test("SQL access does not reach it", async () => {
    for (const query of ["SELECT * FROM audit_log", "SELECT count() FROM default.audit_log"]) {
      expect((await product.call("POST", "/panel/api/sql", { query })).status).toBe(422);
    }
  });

  test("entries go after AUDIT_RETENTION_MONTHS, 24 by default", async () => {
    const { config } = product.runtime;
    const client = await openClickhouse(config, "write");
    const select = async (query: string) =>
      (await client.query({ query, format: "JSONEachRow" })).json<Record<string, string>>();
    const ttl = async () => {
      const [row] = await select(
        "SELECT create_table_query AS text FROM system.tables WHERE name = 'audit_log'",
      );
      return /TTL [^\n]*?Month\(\d+\)/.exec(row?.["text"] ?? "")?.[0];
    };
    expect(await ttl()).toBe("TTL toDateTime(written) + toIntervalMonth(24)");
    await client.command({
      query: `INSERT INTO audit_log SELECT * REPLACE ('too old' AS actor, now64() - INTERVAL 4 MONTH AS written)
              FROM audit_log LIMIT 1`,
    });
    await applySchema(client, { ...config, auditRetentionMonths: 3 });
    expect(await ttl()).toBe("TTL toDateTime(written) + toIntervalMonth(3)");
    await client.command({ query: "OPTIMIZE TABLE audit_log FINAL" });
    expect(await select("SELECT * FROM audit_log WHERE actor = 'too old'")).toEqual([]);
    await client.close();
  });
});
