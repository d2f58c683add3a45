/** SQL access of the data team: SELECT on tables and views, and nothing else, over HTTP and from the command line. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { PERSON_STATEMENTS } from "#analytics/sql/statement-places.ts";
import { HISTORY_LINES } from "#cli/sql/prompt.ts";
import { companyKeys, webhookKeys } from "#core/platform/redis/keys.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { startTerminal } from "#test/support/product/terminal.ts";
import { CLICKHOUSES } from "#test/support/servers/servers.ts";

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
    const deliveredOn = daysAgo(5);
    const rows = deliveredShipments(30, (at) => ({
      shipmentId: 1 + at,
      destCap: "00184",
      deliveredOn,
    }));
    for (const row of rows) {
      await product.runtime.redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
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
      const { attemptCounts } = webhookKeys(0);
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

  test("an answer that nobody reads counts until its connection ends, and the rest of it is not made", async () => {
    const query = "SELECT number, repeat('x', 1000) AS text FROM numbers(15000)";
    const asked = 25;
    const unread = Array.from({ length: asked }, () => askWithoutReading(product, query));
    const heads: string[] = [];
    for (const { head } of unread) void head.then((text) => heads.push(text));
    const countOf = (status: number) =>
      heads.filter((head) => head.startsWith(`HTTP/1.1 ${status}`)).length;
    // The first one is streamed, and the others wait for it.
    await eventually(
      async () => countOf(429) === asked - PERSON_STATEMENTS && countOf(200) === 1,
      "as many count as one person may have, the others are refused",
      60_000,
    );
    for (const { end } of unread) end();
    await eventually(
      async () => (await ask("SELECT 1 AS a")).status === 200,
      "the statements whose callers have gone count no longer",
    );
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

    test("other people's statements are not shown, and nobody may just wait", async () => {
      await refused("SELECT query FROM system.processes");
      await refused("SELECT sleep(3)");
    });

    test("more rows than the limit is refused, and the next answer has nothing of it", async () => {
      await refused("SELECT number FROM numbers(3000000)");
      expect(await product.sql("SELECT 7 AS a")).toEqual([{ a: 7 }]);
    });
  });

  describe("waybill sql", () => {
    async function sql(...args: string[]) {
      const { panelToken } = product.runtime.secrets;
      const child = Bun.spawn([process.execPath, "cli/main.ts", "sql", ...args], {
        cwd: join(import.meta.dir, "..", "..", ".."),
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
      expect((await sql("SELECT 1", "SELECT 2")).fault).toStartWith("Unexpected argument");
    });

    test("reads statements from standard input, and the first that is refused is the last", async () => {
      const { panelToken } = product.runtime.secrets;
      const env = { PUBLIC_URL: product.panel, PANEL_TOKEN: panelToken };
      const input = "SELECT 1 AS a;\nSELECT\n  2 AS b;\nSHOW DATABASES;\nSELECT 3 AS c;\n";
      const command = [process.execPath, "cli/main.ts", "sql", "--format", "csv"];
      const { output, errors, status } = await outcomeOf(startCommand(command, env, { input }));
      expect([output, status]).toEqual(['"a"\n1\n"b"\n2\n', 1]);
      expect(errors).toStartWith("Anything but SELECT");
    });

    test("at a terminal it completes names, goes on after a refusal, and remembers what was asked", async () => {
      const { panelToken } = product.runtime.secrets;
      const { dataDir } = product.runtime.config;
      const env = { PUBLIC_URL: product.panel, PANEL_TOKEN: panelToken, DATA_DIR: dataDir };
      const first = startTerminal([process.execPath, "cli/main.ts", "sql"], env);
      await first.shows("sql> ");
      // Names of tables and columns are learned while the prompt already waits.
      await eventually(async () => {
        await first.press("\u0003", "SHOW", "\u0003", "SELECT top_comp", "\t");
        return first.shows("top_company_share", 1_000).catch(() => false);
      }, "Tab completes the name of a column");
      await first.press("\u0003", "SHOW DATABASES;", "\r");
      await first.shows("Anything but SELECT");
      await first.press("SELECT count() * 7 AS n", "\r", "FROM deliveries;", "\r");
      await first.shows("210");
      await first.press("\u0004");
      expect(await first.ended()).toBe(0);

      const second = startTerminal([process.execPath, "cli/main.ts", "sql"], env);
      await second.shows("sql> ");
      await second.press("\u001b[A");
      await second.shows("FROM deliveries;");
      await second.press("\u0003", "exit", "\r");
      expect(await second.ended()).toBe(0);
      const { mode } = await stat(join(dataDir, "sql-history"));
      expect(mode & 0o077).toBe(0);
    });

    test("the history keeps the last 1,000 lines", async () => {
      const { panelToken } = product.runtime.secrets;
      const { dataDir } = product.runtime.config;
      const path = join(dataDir, "sql-history");
      const lines = (count: number) => Array.from({ length: count }, (_, at) => `line ${at}\n`);
      await writeFile(path, lines(HISTORY_LINES + 1).join(""));
      const env = { PUBLIC_URL: product.panel, PANEL_TOKEN: panelToken, DATA_DIR: dataDir };
      const terminal = startTerminal([process.execPath, "cli/main.ts", "sql"], env);
      await terminal.shows("sql> ");
      await terminal.press("exit", "\r");
      expect(await terminal.ended()).toBe(0);
      const kept = (await readFile(path, "utf8")).trim().split("\n");
      expect([HISTORY_LINES, kept.length, kept[0], kept.at(-1)]).toEqual([
        1_000,
        1_001,
        "line 1",
        "exit",
      ]);
    });
  });
});

/** A statement whose answer is read up to the end of its head and no further. */
function askWithoutReading(product: TestAnalytics, query: string) {
  const { hostname, port } = new URL(product.panel);
  const body = JSON.stringify({ query, format: "csv" });
  const socket = connect(Number(port), hostname);
  socket.write(
    [
      "POST /panel/api/sql HTTP/1.1",
      "host: localhost",
      `authorization: Bearer ${product.runtime.secrets.panelToken}`,
      "content-type: application/json",
      `content-length: ${body.length}`,
      "",
      body,
    ].join("\r\n"),
  );
  const head = new Promise<string>((resolve) => {
    socket.once("data", (bytes) => {
      socket.pause();
      resolve(bytes.toString("latin1"));
    });
    socket.once("close", () => resolve("closed"));
  });
  return { head, end: () => socket.destroy() };
}
