/** The data team's door: SELECT on tables and views, and nothing else, over HTTP and from the command line. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { companyKeys, webhookKeys } from "#core/redis/client/keys.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/analytics.ts";
import { deliveries, laneFields } from "#test/support/lanes.ts";
import { CLICKHOUSES } from "#test/support/servers.ts";
import { testSetup } from "#test/support/setup.ts";

describe.each(CLICKHOUSES)("ClickHouse: %s", (kind) => {
  let product: TestAnalytics;
  /** What anybody asked of a server on this machine. */
  const hits: string[] = [];
  let outside: Bun.Server<unknown>;

  beforeAll(async () => {
    outside = Bun.serve({
      port: 0,
      fetch(request) {
        hits.push(request.url);
        return new Response("a,b\n1,2\n");
      },
    });
    product = await openTestAnalytics(testSetup(), kind);
    const deliveredOn = new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10);
    const rows = deliveries(30, (at) => ({ shipmentId: 1 + at, destCap: "00184", deliveredOn }));
    for (const row of rows) {
      await product.runtime.redis.xAdd(companyKeys(1).changes, "*", laneFields(row));
    }
    await product.settled();
  });

  afterAll(async () => {
    await product?.end();
    await outside.stop(true);
  });

  const ask = (query: string, format?: string) =>
    product.call("POST", "/panel/api/sql", { query, ...(format !== undefined && { format }) });

  describe("POST /panel/api/sql", () => {
    test("answers a SELECT over tables and views", async () => {
      expect(await product.sql("SELECT count() AS n FROM deliveries FINAL; -- all")).toEqual([
        { n: 30 },
      ]);
      for (const view of [
        "lanes",
        "courier_performance",
        "event_quality",
        "sla",
        "endpoint_health",
      ]) {
        expect(await product.sql(`SELECT * FROM ${view}`)).toBeArray();
      }
      const names = await product.sql("DESCRIBE sla");
      expect(names.length).toBeGreaterThan(5);
    });

    test("the metrics tell how many webhook attempts wait for ClickHouse or were dropped at the mark", async () => {
      const { attemptCounts } = webhookKeys(3);
      const counts = { logged: "70", taken: "60", dropped: "5" };
      await product.runtime.redis.hSet(attemptCounts, counts);
      const text = await (await fetch(`${product.panel}/metrics`)).text();
      for (const line of ['logged"} 70', 'waiting"} 10', 'dropped"} 5']) {
        expect(text).toContain(`waybill_attempt_log{entry="${line}`);
      }
    });

    test("401 without the operator's token, 422 for a body that is none", async () => {
      const answer = await fetch(`${product.panel}/panel/api/sql`, { method: "POST", body: "{}" });
      expect(answer.status).toBe(401);
      for (const body of [{}, { query: "" }, { query: "SELECT 1", format: "xml" }]) {
        expect((await product.call("POST", "/panel/api/sql", body)).status).toBe(422);
      }
    });

    test.each([
      ["csv", "text/csv", '"a"\n1\n'],
      ["tsv", "text/tab-separated-values", "a\n1\n"],
      ["table", "text/plain", "a"],
      ["parquet", "application/vnd.apache.parquet", "PAR1"],
    ])("gives %s", async (format, type, text) => {
      const answer = await fetch(`${product.panel}/panel/api/sql`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${product.runtime.secrets.panelToken}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({ query: "SELECT 1 AS a", format }),
      });
      expect(answer.headers.get("content-type")).toStartWith(type);
      expect(Buffer.from(await answer.arrayBuffer()).toString("latin1")).toContain(text);
    });
  });

  describe("nothing but SELECT", () => {
    const refused = async (query: string) => {
      const { status, body } = await ask(query);
      expect([query, status]).toEqual([query, 422]);
      expect(body.code).toMatch(/^SQL_(FAILED|REFUSED)$/);
      expect(body.detail).not.toContain("root:");
    };

    test("reading files is refused, however it is written", async () => {
      for (const query of [
        "SELECT file('/etc/passwd')",
        "SELECT * FROM (SELECT file('/etc/passwd') AS text)",
        "SELECT count() FROM deliveries WHERE courier = file('/etc/passwd')",
        "WITH x AS (SELECT file('/etc/passwd') AS t) SELECT t FROM x",
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "SELECT * FROM `/etc/passwd`",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1 WHERE 'a' IN (SELECT * FROM file('/etc/passwd', 'LineAsString'))",
        "SELECT * FROM sqlite('/tmp/x', 'y')",
        "SELECT * FROM executable('cat /etc/passwd', 'TSV', 'a String')",
        "SELECT * FROM view(SELECT file('/etc/passwd'))",
        "DESCRIBE TABLE file('/etc/passwd')",
      ]) {
        await refused(query);
      }
    });

    test("writing is refused: tables, files, settings", async () => {
      const path = join(product.runtime.config.dataDir, "out.csv");
      for (const query of [
        "INSERT INTO deliveries SELECT * FROM deliveries",
        "DROP TABLE deliveries",
        "TRUNCATE TABLE deliveries",
        "ALTER TABLE deliveries DELETE WHERE 1",
        "CREATE TABLE x (a UInt8) ENGINE = Memory",
        "CREATE TEMPORARY TABLE x (a UInt8)",
        `SELECT 1 INTO OUTFILE '${path}'`,
        `SELECT 1) INTO OUTFILE '${path}'; SELECT * FROM (SELECT 1`,
        `SELECT * FROM (SELECT 1 INTO OUTFILE '${path}')`,
        `INSERT INTO FUNCTION file('${path}') SELECT 1`,
        "SELECT 1; DROP TABLE deliveries",
        "SELECT 1) ; DROP TABLE deliveries ; SELECT * FROM (SELECT 1",
        "SELECT 1 /* ) */ ; DROP TABLE deliveries --",
        "SET readonly = 0",
        "SELECT 1 SETTINGS readonly = 0",
        `SELECT * FROM (SELECT * FROM url('${outside.url}x.csv') SETTINGS readonly = 0)`,
        "SELECT 1 SETTINGS max_execution_time = 1000",
        "KILL QUERY WHERE 1",
        "SYSTEM SHUTDOWN",
        "USE system",
      ]) {
        await refused(query);
      }
      expect(existsSync(path)).toBe(false);
      expect(await product.sql("SELECT count() AS n FROM deliveries FINAL")).toEqual([{ n: 30 }]);
    });

    test("the network is not reached", async () => {
      const url = `${outside.url}data.csv`;
      for (const query of [
        `SELECT * FROM url('${url}')`,
        `SELECT * FROM url('${url}', 'CSV', 'a UInt8, b UInt8')`,
        `DESCRIBE TABLE url('${url}')`,
        `SELECT * FROM s3('${outside.url}bucket/data.csv', NOSIGN)`,
        `SELECT * FROM deltaLake('${outside.url}bucket/data')`,
        `SELECT * FROM remote('127.0.0.1:9000', system.one)`,
        `SELECT * FROM mysql('127.0.0.1:3306', 'a', 'b', 'c', 'd')`,
        `SELECT 1 WHERE 1 IN (SELECT a FROM url('${url}'))`,
        "SELECT reverseDNSQuery('8.8.8.8')",
      ]) {
        await refused(query);
      }
      expect(hits).toEqual([]);
    });

    test("other people's statements are not told, and nobody may just wait", async () => {
      await refused("SELECT query FROM system.processes");
      await refused("SELECT sleep(3)");
    });

    test("more rows than the limit is refused, and the next answer has nothing of it", async () => {
      await refused("SELECT number FROM numbers(3000000)");
      expect(await product.sql("SELECT 7 AS a")).toEqual([{ a: 7 }]);
    });

    test("a ninth statement at once is 429", async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, () => ask("SELECT count() AS n FROM numbers(1000000)")),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).toEqual([...Array(8).fill(200), ...Array(4).fill(429)]);
    });
  });

  describe("bun run sql", () => {
    async function sql(...args: string[]) {
      const { panelToken } = product.runtime.secrets;
      const child = Bun.spawn([process.execPath, "analytics/sql/main.ts", ...args], {
        cwd: join(import.meta.dir, "..", ".."),
        env: { PUBLIC_URL: product.panel, PANEL_TOKEN: panelToken },
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, fault] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      return { out, fault, status: await child.exited };
    }

    test("prints a table while the product runs", async () => {
      const { out, status } = await sql(
        "SELECT courier, count() AS n FROM deliveries GROUP BY courier",
      );
      expect(status).toBe(0);
      expect(out).toMatch(/GLS_ITA.*30/);
    });

    test("writes Parquet and CSV to a file by its name", async () => {
      const folder = product.runtime.config.dataDir;
      const parquet = join(folder, "lanes.parquet");
      const csv = join(folder, "lanes.csv");
      expect((await sql("SELECT * FROM lanes", "--out", parquet)).status).toBe(0);
      expect((await sql("SELECT grain, deliveries FROM lanes", "--out", csv)).status).toBe(0);
      expect((await Bun.file(parquet).text()).slice(0, 4)).toBe("PAR1");
      expect(await Bun.file(csv).text()).toBe('"grain","deliveries"\n"cap",30\n');
    });

    test("a refusal is one line and status 1", async () => {
      expect(await sql("SELECT file('/etc/passwd')")).toEqual({
        out: "",
        fault: "The function file is not allowed here.\n",
        status: 1,
      });
      expect((await sql()).fault).toStartWith("usage: ");
    });
  });
});
