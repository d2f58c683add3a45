/** What SQL access lets through and what it refuses: a corpus of attacks, one of analysts' work, and the engine's own lists. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openBare, openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { readClickhouseFacts } from "#analytics/clickhouse/clickhouse-facts.ts";
import { COMMENTS } from "#analytics/schema/comments.ts";
import {
  ALLOWED_FUNCTIONS,
  ALLOWED_TABLE_FUNCTIONS,
  isAllowedFunction,
} from "#analytics/sql/allowed-functions.ts";
import { COLUMNS_LIKE_FUNCTIONS } from "#analytics/sql/check-statement.ts";
import { ASKABLE } from "#analytics/sql/open-reader.ts";
import { ANSWER_BYTES } from "#analytics/sql/unread-answer.ts";
import { openSqlAccess, type SqlAccess, TREE_LIMIT_BYTES } from "#analytics/sql-access.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import {
  type EngineFunction,
  functionsOf,
  manyFunctions,
} from "#test/support/data/engine-functions.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { startClickhouseHttp } from "#test/support/servers/clickhouse-http.ts";
import { CLICKHOUSE_KINDS } from "#test/support/servers/servers.ts";

/** Nobody but the reader of a file knows it. */
const SECRET = "the-content-of-a-file";

/** Each must be refused, whatever the engine itself would say. `FILE` is a file of ours, `URL` a server of ours. */
const ATTACKS: Readonly<Record<string, readonly string[]>> = {
  "functions that read files, disguised": [
    "SELECT file('FILE')",
    "SELECT `file`('FILE')",
    `SELECT "file"('FILE')`,
    "SELECT FILE('FILE')",
    "SELECT /* sum( */ file /* ) */ ('FILE')",
    "SELECT sum(1) AS `sum`, file('FILE')",
    "SELECT file('FILE') AS `x) (children 1)`",
    "SELECT arrayMap(x -> file(x), ['FILE'])",
    "SELECT arrayMap(file, ['FILE'])",
    "SELECT arrayMap(`file`, ['FILE'])",
    "WITH file AS f SELECT arrayMap(f, ['FILE'])",
    "SELECT arrayFold((a, x) -> concat(a, file(x)), ['FILE'], '')",
    "SELECT * APPLY(file) FROM (SELECT 'FILE' AS a)",
    "SELECT * APPLY(x -> file(x)) FROM (SELECT 'FILE' AS a)",
    "SELECT COLUMNS('a') APPLY file FROM (SELECT 'FILE' AS a)",
    "SELECT * REPLACE(file(a) AS a) FROM (SELECT 'FILE' AS a)",
    "SELECT 1 AS a ORDER BY a WITH FILL TO length(file('FILE'))",
    "SELECT 'a' AS b, 1 AS a ORDER BY a WITH FILL TO 3 INTERPOLATE (b AS file('FILE'))",
    "SELECT sum(number) OVER (PARTITION BY file('FILE')) FROM numbers(3)",
    "SELECT 1 FROM numbers(3) GROUP BY GROUPING SETS ((number), (file('FILE')))",
    "SELECT count() FROM numbers(3) HAVING file('FILE') != ''",
    "SELECT 1 FROM numbers(3) LIMIT 1 BY file('FILE')",
    "SELECT 1 FROM numbers(3) LIMIT length(file('FILE'))",
    "SELECT 1 FROM numbers(1) AS a JOIN numbers(1) AS b ON file('FILE') != '' AND a.number = b.number",
    "SELECT k FROM numbers(1) ARRAY JOIN [file('FILE')] AS k",
    "SELECT quantile(length(file('FILE')))(1)",
    "SELECT (SELECT file('FILE'))",
    "SELECT 1 WHERE 'a' IN (SELECT file('FILE'))",
    "SELECT 1 QUALIFY file('FILE') != ''",
    "WITH x AS (SELECT file('FILE') AS t) SELECT t FROM x",
    "WITH RECURSIVE x AS (SELECT 1 AS n, '' AS t UNION ALL SELECT n + 1, file('FILE') FROM x WHERE n < 2) SELECT * FROM x",
    "SELECT 1 UNION ALL SELECT length(file('FILE'))",
    "SELECT 1 EXCEPT SELECT length(file('FILE'))",
    "SELECT * FROM view(SELECT file('FILE'))",
    "SELECT CASE WHEN 1 THEN file('FILE') ELSE '' END",
  ],
  "tables that are none of ours": [
    "SELECT * FROM system.processes",
    "SELECT * FROM system.one",
    "SELECT * FROM system.numbers LIMIT 1",
    "SELECT * FROM system.columns",
    "SELECT * FROM SYSTEM.one",
    "SELECT * FROM `system`.`one`",
    "SELECT * FROM `system.one`",
    "SELECT * FROM system . /* x */ one",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM INFORMATION_SCHEMA.TABLES",
    "SELECT 1 IN system.one",
    "SELECT (0, 0) NOT IN (system.one)",
    "SELECT 0 GLOBAL IN system.one",
    "SELECT 1 FROM deliveries AS d JOIN system.one AS o ON 1 = o.dummy",
    "SELECT 1 WHERE EXISTS(SELECT * FROM system.processes)",
    "WITH deliveries AS (SELECT * FROM system.one) SELECT * FROM deliveries",
    "SELECT * FROM `FILE`",
    "SELECT * FROM 'FILE'",
    "SELECT * FROM LICENSE",
    "SELECT * FROM other.deliveries",
    "SELECT * FROM _temporary_and_external_tables.x",
    "SELECT * FROM `x\n      TableIdentifier deliveries`",
  ],
  "table functions": [
    "SELECT * FROM merge('system', '^one$')",
    "SELECT * FROM merge('system', '.*')",
    "SELECT * FROM merge(REGEXP('.*'), '^one$')",
    "SELECT * FROM `merge`('system', '^one$') AS deliveries",
    "SELECT * FROM MERGE('system', '^one$')",
    "SELECT 1 WHERE 0 IN (SELECT * FROM merge('system', '^one$'))",
    "SELECT 1 IN merge('system', '^one$')",
    "SELECT * FROM file('FILE', 'LineAsString')",
    "SELECT * FROM filesystem('/etc')",
    "SELECT * FROM url('URL', 'LineAsString', 'a String')",
    "SELECT * FROM urlCluster('default', 'URL', 'LineAsString', 'a String')",
    "SELECT * FROM s3('URL', NOSIGN, 'CSV', 'a String')",
    "SELECT * FROM deltaLake('URL')",
    "SELECT * FROM iceberg('URL')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM remoteSecure('127.0.0.1', system.one)",
    "SELECT * FROM cluster('default', system.one)",
    "SELECT * FROM clusterAllReplicas('default', system, one)",
    "SELECT * FROM mysql('127.0.0.1:3306', 'a', 'b', 'c', 'd')",
    "SELECT * FROM postgresql('127.0.0.1:5432', 'a', 'b', 'c', 'd')",
    "SELECT * FROM mongodb('127.0.0.1:27017', 'a', 'b', 'c', 'd', 'a String')",
    "SELECT * FROM redis('127.0.0.1:6379', 'key', 'key String')",
    "SELECT * FROM sqlite('FILE', 't')",
    "SELECT * FROM jdbc('x', 'y', 'z')",
    "SELECT * FROM odbc('x', 'y', 'z')",
    "SELECT * FROM hdfs('hdfs://127.0.0.1/x', 'CSV', 'a String')",
    "SELECT * FROM executable('cat FILE', 'TSV', 'a String')",
    "SELECT * FROM input('a String')",
    "SELECT * FROM dictionary('d')",
    "SELECT * FROM loop(system.one)",
    "SELECT * FROM mergeTreeIndex(currentDatabase(), deliveries)",
    "SELECT * FROM mergeTreeProjection(currentDatabase(), deliveries, p)",
    "SELECT * FROM timeSeriesData(deliveries)",
    "SELECT * FROM viewIfPermitted(SELECT * FROM system.one ELSE null('dummy UInt8'))",
    "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT 1))",
    "SELECT * FROM (EXPLAIN SELECT 1)",
    "SELECT * FROM (EXPLAIN QUERY TREE SELECT * FROM deliveries)",
    "SELECT * FROM eval('SELECT 1')",
    "SELECT * FROM fuzzQuery('SELECT 1')",
    "SELECT * FROM fuzzJSON('{}')",
    "SELECT * FROM format(LineAsString, 'a')",
    "SELECT * FROM generateRandom('a UInt8') LIMIT 1",
    "SELECT * FROM python('a')",
    "SELECT * FROM arrowstream('a')",
    "SELECT * FROM some_parameterised_view(a = 1)",
  ],
  "functions that tell of the server, or of other tables": [
    "SELECT getSetting('max_threads')",
    "SELECT getServerSetting('tmp_path')",
    "SELECT getMergeTreeSetting('index_granularity')",
    "SELECT getMacro('replica')",
    "SELECT currentUser()",
    "SELECT user()",
    "SELECT currentDatabase()",
    "SELECT version()",
    "SELECT hostName(), FQDN(), uptime(), serverUUID()",
    "SELECT filesystemAvailable()",
    "SELECT hasColumnInTable('system', 'one', 'dummy')",
    "SELECT joinGet('a', 'b', 1)",
    "SELECT dictGet('a', 'b', 1)",
    "SELECT dictGetOrNull('a', 'b', 1)",
    "SELECT catboostEvaluate('FILE', 1)",
    "SELECT initialQueryID(), currentQueryID()",
    "SELECT showCertificate()",
    "SELECT addressToLine(toUInt64(1))",
    "SELECT reverseDNSQuery('8.8.8.8')",
    "SELECT aiGenerate('x')",
    "SELECT sleep(1)",
    "SELECT sleepEachRow(1) FROM numbers(2)",
    "SELECT arrayMap(sleep, [1])",
    "SELECT arrayReduce('sum', [1])",
    "SELECT initializeAggregation('sum', 1)",
    "SELECT zookeeperSessionUptime()",
    "SELECT no_such_function(1)",
  ],
  "states of aggregates that are made up by hand": [
    "SELECT CAST(unhex('00'), 'AggregateFunction(uniq, UInt64)')",
    "SELECT CAST(unhex('00') AS AggregateFunction(groupArray, String))",
    "SELECT unhex('00')::AggregateFunction(sum, UInt64)",
    "SELECT CAST(unhex('00'), concat('Aggregate', 'Function(sum, UInt64)'))",
    "SELECT cast(unhex('00'), arrayStringConcat(['Aggregate', 'Function(sum, UInt64)']))",
    "SELECT accurateCastOrNull(unhex('00'), concat('Aggregate', 'Function(sum, UInt64)'))",
    "WITH concat('Aggregate', 'Function(sum, UInt64)') AS t SELECT CAST(unhex('00'), t)",
    "SELECT * FROM values('a AggregateFunction(sum, UInt64)', ('x'))",
    "SELECT * FROM values(concat('a Aggregate', 'Function(sum, UInt64)'), ('x'))",
    "SELECT JSONExtract('{}', 'a', concat('Aggregate', 'Function(sum, UInt64)'))",
    "SELECT sumMerge(sumState(number)) FROM numbers(3)",
    "SELECT finalizeAggregation(sumState(number)) FROM numbers(3)",
  ],
  "settings, formats and statements that are no SELECT": [
    "SELECT 1 SETTINGS max_threads = 8",
    "SELECT * FROM (SELECT 1 SETTINGS readonly = 0)",
    "SELECT * FROM (SELECT * FROM url('URL') SETTINGS readonly = 0)",
    "WITH x AS (SELECT 1 SETTINGS max_memory_usage = 0) SELECT * FROM x",
    "SELECT 1 FORMAT Native",
    "SELECT 1 INTO OUTFILE 'FILE.out'",
    "SELECT 1) INTO OUTFILE 'FILE.out' FORMAT CSV -- (",
    "SELECT 1; SELECT 2",
    "SELECT 1) UNION ALL (SELECT file('FILE')",
    "EXPLAIN SELECT 1",
    "EXPLAIN PLAN SELECT file('FILE')",
    "EXPLAIN ESTIMATE SELECT * FROM deliveries",
    "EXPLAIN TABLE OVERRIDE mysql('127.0.0.1', 'a', 'b', 'c', 'd') COLUMNS (a UInt8)",
    "DESCRIBE system.one",
    "DESCRIBE TABLE file('FILE', 'LineAsString')",
    "DESCRIBE TABLE url('URL')",
    "DESCRIBE TABLE (SELECT file('FILE'))",
    "DESCRIBE deliveries SETTINGS max_threads = 8",
    "DESCRIBE other.deliveries",
    "SHOW TABLES FROM system",
    "SHOW TABLES LIKE '%'",
    "SHOW COLUMNS FROM one FROM system",
    "SHOW COLUMNS FROM deliveries FROM system",
    "SHOW COLUMNS FROM other.deliveries",
    "SHOW COLUMNS FROM deliveries LIKE '%'",
    "SHOW DATABASES",
    "SHOW CREATE TABLE deliveries",
    "SHOW PROCESSLIST",
    "SHOW GRANTS",
    "SHOW SETTINGS LIKE 'max%'",
    "SHOW TABLES INTO OUTFILE 'FILE.out'",
    "EXISTS TABLE deliveries",
    "CHECK TABLE deliveries",
    "SELECT {a:UInt8}",
    "SELECT * FROM {t:Identifier}",
    "INSERT INTO deliveries SELECT * FROM deliveries",
    "CREATE TEMPORARY TABLE x (a UInt8)",
    "EXECUTE AS default SELECT 1",
    "SET max_threads = 8",
    "USE system",
    "KILL QUERY WHERE 1",
    "SYSTEM FLUSH LOGS",
    "BACKUP TABLE deliveries TO Disk('default', 'x')",
    "ATTACH TABLE x FROM 'FILE' (a UInt8) ENGINE = Memory",
  ],
};

/** Each must answer. */
const ANALYSTS_WORK = [
  "SELECT courier, grain, deliveries, lead_median FROM lanes WHERE dest_cap = '00184' AND NOT suppressed",
  "SELECT * FROM courier_performance",
  "SELECT count() FROM deliveries FINAL; -- all of them",
  "SELECT * FROM DATABASE.deliveries LIMIT 1",
  "SELECT d.version, d.* EXCEPT (company, channel) FROM deliveries AS d FINAL ORDER BY version LIMIT 10",
  "SELECT courier, countIf(attempts > 1) AS again, uniqExact(dest_cap), avg(lead_days), any(courier) FROM deliveries GROUP BY courier HAVING count() > 0 ORDER BY again DESC",
  "SELECT quantile(0.9)(lead_days), quantilesExactIf(0.5, 0.9)(lead_days, lead_days > 0), medianExact(lead_days), argMax(courier, version), topK(3)(courier), sumOrNull(attempts) FROM deliveries",
  "SELECT toStartOfMonth(delivered_on) AS month, toDate('2026-01-01') + INTERVAL 1 DAY, dateDiff('day', ship_date, delivered_on), formatDateTime(now(), '%Y-%m'), today() - 30, extract(YEAR FROM delivered_on) FROM deliveries",
  "SELECT arrayMap(x -> x + 1, [1, 2]), arrayFilter(x -> x > 1, groupArray(attempts)), arraySort(groupUniqArray(courier)), length(groupArray(1)) FROM deliveries",
  "SELECT arrayMap(toString, [1, 2])",
  "SELECT upper(courier), splitByChar('_', courier)[1], replaceRegexpAll(courier, '_.*', ''), courier LIKE 'GLS%', courier ILIKE '%ita', concat(courier, '-', dest_cap), courier || '!' FROM deliveries",
  "SELECT multiIf(lead_days < 2, 'quick', lead_days < 5, 'fair', 'slow'), CASE courier WHEN 'a' THEN 1 ELSE 2 END, if(is_return, 1, 0), coalesce(transit_days, 0), lead_days BETWEEN 1 AND 3, lead_days > 2 ? 'a' : 'b' FROM deliveries",
  "SELECT courier, row_number() OVER (PARTITION BY courier ORDER BY delivered_on) AS n, sum(attempts) OVER w, lagInFrame(lead_days) OVER w, rank() OVER w FROM deliveries WINDOW w AS (PARTITION BY courier ORDER BY delivered_on ROWS BETWEEN 7 PRECEDING AND CURRENT ROW) QUALIFY n <= 3",
  "SELECT d.courier, l.lead_median FROM deliveries AS d FINAL LEFT JOIN lanes AS l ON l.courier = d.courier AND l.dest_cap = d.dest_cap",
  "SELECT courier FROM deliveries WHERE courier IN (SELECT courier FROM lanes) AND dest_cap NOT IN ('00100', '00200')",
  "SELECT courier FROM courier_performance UNION DISTINCT SELECT courier FROM sla",
  "SELECT courier FROM deliveries INTERSECT SELECT courier FROM lanes",
  "WITH recent AS (SELECT * FROM deliveries WHERE delivered_on > today() - 90) SELECT courier, count() FROM recent GROUP BY courier WITH TOTALS",
  "WITH recent AS (SELECT courier FROM deliveries) SELECT count() FROM lanes WHERE courier IN recent",
  "WITH (SELECT max(delivered_on) FROM deliveries) AS latest SELECT count() FROM deliveries WHERE delivered_on = latest",
  "WITH RECURSIVE days AS (SELECT toDate('2026-01-01') AS day UNION ALL SELECT day + 1 FROM days WHERE day < toDate('2026-01-05')) SELECT * FROM days",
  "SELECT courier, status, count() FROM events FINAL GROUP BY CUBE (courier, status)",
  "SELECT toStartOfHour(at) AS hour, countIf(outcome = 'DELIVERED') / count() FROM attempts FINAL GROUP BY hour ORDER BY hour WITH FILL STEP 3600",
  "SELECT n, toDate('2026-01-01') + n FROM (SELECT number AS n FROM numbers(31))",
  "SELECT * FROM generateSeries(1, 5)",
  "SELECT * FROM values('cap String, area String', ('00184', 'CENTRO'), ('20121', 'NORD'))",
  "SELECT k, v FROM deliveries ARRAY JOIN [1, 2] AS k, ['a', 'b'] AS v LIMIT 1 BY k LIMIT 5 OFFSET 0",
  "SELECT EXISTS(SELECT 1 FROM deliveries), (SELECT count() FROM deliveries) AS n",
  "SELECT COLUMNS('^lead') FROM courier_performance",
  "SELECT ROUND(1.5), COUNT(*), SUM(attempts), Max(lead_days) FROM deliveries",
  "SELECT CAST(lead_days AS String), lead_days::Float64, toInt32OrNull('7'), toTypeName(lead_days), JSONExtractInt('{\"a\":1}', 'a') FROM deliveries",
  "SELECT 'SELECT file(1) FROM system.one SETTINGS readonly = 0' AS text",
  "SHOW TABLES",
  "DESCRIBE events",
  "DESC TABLE DATABASE.lanes",
  "SHOW TABLES FROM DATABASE",
  "SHOW COLUMNS FROM lanes",
  "show tables; -- which ones are there?",
  "(SELECT 1)",
];

describe.each(CLICKHOUSE_KINDS)("SQL access of ClickHouse: %s", (kind) => {
  let store: TestClickhouse;
  let access: SqlAccess;
  const hits: string[] = [];
  let outside: Bun.Server<unknown>;
  let path: string;

  beforeAll(async () => {
    outside = Bun.serve({
      port: 0,
      fetch(request) {
        hits.push(request.url);
        return new Response("a\n");
      },
    });
    store = await openTestClickhouse(kind);
    path = join(store.config.dataDir, "secret.txt");
    writeFileSync(path, SECRET);
    access = openSqlAccess(store.config);
  });

  afterAll(async () => {
    await access?.close();
    await store?.end();
    await outside?.stop(true);
  });

  async function ask(statement: string): Promise<string> {
    const stream = await access.ask(statement, "csv", "somebody");
    return (await stream.toArray()).join("");
  }

  const refusalOf = (statement: string) =>
    ask(statement).then(
      (answer) => `answered: ${answer.slice(0, 60)}`,
      (error) => {
        expect(`${error}`).not.toContain(SECRET);
        return error instanceof Problem ? error.code : `${error}`;
      },
    );

  test.each(Object.keys(ATTACKS))("refuses %s", async (about) => {
    const answered: string[] = [];
    for (const attack of ATTACKS[about] ?? []) {
      const statement = attack.replaceAll("FILE", path).replaceAll("URL", `${outside.url}`);
      const code = await refusalOf(statement);
      if (!/^SQL_(REFUSED|FAILED)$/.test(code)) answered.push(`${attack} -> ${code}`);
    }
    expect(answered).toEqual([]);
    expect(hits).toEqual([]);
  });

  test("answers analysts' questions", async () => {
    const refused: string[] = [];
    for (const example of ANALYSTS_WORK) {
      const statement = example.replaceAll("DATABASE", "default");
      await ask(statement).catch((error) => refused.push(`${example} -> ${error.detail}`));
    }
    expect(refused).toEqual([]);
  });

  test("SHOW TABLES and DESCRIBE list what can be queried", async () => {
    const shown = (await ask("show tables")).trim().split("\n").slice(1);
    expect(shown.map((line) => JSON.parse(`[${line}]`)[0]).sort()).toEqual([...ASKABLE].sort());
    expect(await ask("DESCRIBE deliveries")).toContain('"lead_days"');
    expect(await ask("SHOW COLUMNS FROM deliveries")).toBe(await ask("DESCRIBE deliveries"));
    expect(Object.keys(COMMENTS).sort()).toEqual([...ASKABLE].sort());
    for (const name of ASKABLE) {
      const columns = (await ask(`DESCRIBE ${name}`)).trim().split("\n").slice(1);
      const described = columns.map((line) => JSON.parse(`[${line}]`));
      const words = Object.entries(COMMENTS[name]?.columns ?? {});
      expect(described.map(([column, , comment]) => [column, comment]).sort()).toEqual(
        words.sort(),
      );
    }
  });

  test("a statement of another kind is refused with what may be written instead", async () => {
    const detail = await ask("SHOW TABLES LIKE 'd%'").catch((error) => error.detail);
    expect(detail).toStartWith("Anything but SELECT, SHOW TABLES, or DESCRIBE");
  });

  test("a short statement that becomes 30,000 functions is refused, and the next one is answered", async () => {
    expect(await refusalOf(manyFunctions())).toBe("SQL_REFUSED");
    expect(await ask("SELECT 42 AS a")).toBe('"a"\n42\n');
  });

  test("one person's statement does not hold up another's", async () => {
    const ended: string[] = [];
    const slow = "SELECT count() AS a FROM numbers(500000000) WHERE cityHash64(number) = 1";
    const asked = async (person: string, statement: string) => {
      await (await access.ask(statement, "csv", person)).toArray();
      ended.push(person);
    };
    const first = asked("slow", slow);
    const second = asked("slow", "SELECT 2 AS a");
    await asked("quick", "SELECT 3 AS a");
    expect(ended).toEqual(["quick"]);
    await Promise.all([first, second]);
    expect(ended).toEqual(["quick", "slow", "slow"]);
  }, 120_000);

  test.skipIf(kind !== "embedded")(
    "an answer of the embedded engine has at most 64 MiB, and the next one is answered",
    async () => {
      // 64 lines of 1 MiB, but for the head of two bytes.
      const statement = (last: number) =>
        `SELECT concat(repeat('x', if(number < 64, 1000000, 0)), repeat('x', if(number = 63, ${last}, 48575))) AS a FROM numbers(64)`;
      const sizeOf = async (last: number) => {
        let size = 0;
        for await (const piece of await access.ask(statement(last), "tsv", "somebody"))
          size += piece.length;
        return size;
      };
      expect(await sizeOf(48_573)).toBe(ANSWER_BYTES);
      const refusal = await sizeOf(48_574).catch((error) => error);
      expect(refusal).toMatchObject({ status: 422, code: "SQL_FAILED" });
      expect(refusal.detail).toContain("64 MiB");
      expect(await ask("SELECT 42 AS a")).toBe('"a"\n42\n');
    },
    60_000,
  );

  test("a statement may become 512 KiB, and no more", async () => {
    const statement = (length: number) => `SELECT '${"x".repeat(length)}'`;
    async function treeBytes(length: number): Promise<number> {
      const query = `EXPLAIN QUERY TREE passes = 1 SELECT * FROM (\n${statement(length)}\n) FORMAT JSONEachRow`;
      const { stream } = await store.writer.exec({ query });
      return Buffer.concat(await (stream as Readable).toArray()).length;
    }
    const [some, more] = [await treeBytes(1_000), await treeBytes(2_000)];
    const length = 1_000 + Math.floor((1_000 * (TREE_LIMIT_BYTES - some)) / (more - some));
    expect(await treeBytes(length)).toBeLessThanOrEqual(TREE_LIMIT_BYTES);
    expect(await treeBytes(length + 1)).toBeGreaterThan(TREE_LIMIT_BYTES);
    expect(await ask(statement(length))).toContain("x");
    expect(await refusalOf(statement(length + 1))).toBe("SQL_REFUSED");
    expect(TREE_LIMIT_BYTES).toBe(524_288);
  });

  test.each([
    ...[
      "courier LIKE concat(courier, '%')",
      "courier NOT LIKE upper('a%')",
      "courier ILIKE courier",
    ],
    ...["courier NOT ILIKE courier", "courier REGEXP courier", "match(courier, repeat('a', 9))"],
    ...["like(courier, concat('a', '%'))", "MATCH(courier, courier)", "extract(courier, courier)"],
    ...["replaceRegexpAll(courier, courier, '')", "REGEXP_REPLACE(courier, courier, '')"],
    ...[
      "countMatches(courier, courier)",
      "splitByRegexp(courier, 'a')",
      "arrayMap(match, ['a'], ['a'])",
      "arrayMap(splitByRegexp, ['a'], ['a'])",
    ],
  ])("a pattern that is computed is refused by that name: %s", async (expression) => {
    const refusal = await ask(`SELECT ${expression} AS a FROM deliveries`).catch((error) => error);
    expect(refusal).toMatchObject({ status: 422, code: "SQL_REFUSED" });
    expect(refusal.detail).toContain("A pattern that is computed");
  });

  test("every function of the engine that is not on the list is refused by its name", async () => {
    const unknown = (await functionsOf(store.writer)).filter(
      ({ name }) => !isAllowedFunction(name),
    );
    expect(unknown.length).toBeGreaterThan(500);
    // One connection asks one statement after the other: a sample keeps the test short.
    for (const { name } of unknown.filter((_, at) => at % 40 === 0)) {
      expect([name, await refusalOf(`SELECT ${name}(1)`)]).toEqual([name, "SQL_REFUSED"]);
    }
  });
});

describe("the list of functions against the engine's own", () => {
  let store: TestClickhouse;
  let engine: Map<string, EngineFunction>;

  beforeAll(async () => {
    store = await openTestClickhouse();
    engine = new Map((await functionsOf(store.writer)).map((one) => [one.name, one]));
  });

  afterAll(() => store?.end());

  const canonical = (name: string) => engine.get(name)?.alias_to || name;

  test("names what the engine has, special forms of the parser aside", () => {
    const missing = ALLOWED_FUNCTIONS.filter((name) => !engine.has(name));
    expect(missing.sort()).toEqual(["exists", "grouping", "lambda"]);
    expect(new Set(ALLOWED_FUNCTIONS).size).toBe(ALLOWED_FUNCTIONS.length);
  });

  test("names nothing that sounds like files, networks, tables, settings, the server or waiting", () => {
    const dangerous =
      /file|url\b|http|dns|dict|joinget|hascolumn|setting|macro|server|host|user|role|profile|database|schema|query(?!string)|zookeeper|address|symbol|demangle|sleep|eval|model|catboost|^ai|llm|embed|certificate|port$|uptime|connection|transaction|revision|version|throw|encrypt|decrypt|execut|python|chdb|reduce|initializeAgg|runningAcc|neighbor|fuzz|obfusc/i;
    const named = ALLOWED_FUNCTIONS.filter(
      (name) => dangerous.test(name) || dangerous.test(canonical(name)),
    );
    // They look into the text that they are given.
    const harmless = ["JSON_QUERY", "isIPAddressInRange", "port", "singleValueOrNull"];
    expect(named.sort()).toEqual([...harmless, "tupleToNameValuePairs"].sort());
  });

  test("names nothing in the engine's categories of external access", () => {
    const outside = new Set([
      ...["AI", "Dictionary", "Embedded Dictionary", "Encryption", "Introspection"],
      ...["Machine Learning", "Internal"],
    ]);
    const named = ALLOWED_FUNCTIONS.filter((name) =>
      outside.has(engine.get(canonical(name))?.categories ?? ""),
    );
    // What the parser makes of CASE.
    expect(named).toEqual(["caseWithExpr", "caseWithExpression"]);
    const other = ALLOWED_FUNCTIONS.filter(
      (name) => engine.get(canonical(name))?.categories === "Other",
    );
    expect(other.sort()).toEqual(
      [
        ...["bar", "FORMAT_BYTES", "formatReadableDecimalSize", "formatReadableQuantity"],
        ...["formatReadableSize", "formatReadableTimeDelta", "identity", "materialize"],
        ...["toTypeName", "transform"],
      ]
        .filter((name) => ALLOWED_FUNCTIONS.includes(name))
        .sort(),
    );
  });

  test("is exact: a name that differs by case alone is the same function", () => {
    for (const name of engine.keys()) {
      if (!isAllowedFunction(name) || ALLOWED_FUNCTIONS.includes(name)) continue;
      const same = ALLOWED_FUNCTIONS.filter((one) => one.toLowerCase() === name.toLowerCase());
      const isCombined = engine.get(name)?.is_aggregate === 1;
      const isSame = same.some((one) => canonical(one) === canonical(name));
      expect([name, isSame || isCombined]).toEqual([name, true]);
    }
  });

  test.each([
    "editDistance",
    "levenshteinDistance",
    "jaroWinklerSimilarity",
    "hasAll",
    "arrayFold",
  ])("does not name %s, whose time grows with the product of its arguments", (name) =>
    expect(isAllowedFunction(name)).toBe(false),
  );

  test("our columns that share their name with a refused function are known by name", async () => {
    const answer = await store.writer.query({
      query: `SELECT DISTINCT name FROM system.columns WHERE database = currentDatabase()
              AND lower(name) IN (SELECT lower(name) FROM system.functions)`,
      format: "JSONEachRow",
    });
    const columns = (await answer.json<{ name: string }>()).map(({ name }) => name);
    const refused = columns.filter((name) => !isAllowedFunction(name));
    expect(refused).toEqual([...COLUMNS_LIKE_FUNCTIONS]);
  });

  test("table functions and tables are those of the engine and of our schema", async () => {
    const rows = async (query: string) =>
      (
        await (await store.writer.query({ query, format: "JSONEachRow" })).json<{ name: string }>()
      ).map(({ name }) => name);
    const known = await rows("SELECT name FROM system.table_functions");
    expect(ALLOWED_TABLE_FUNCTIONS.filter((name) => !known.includes(name))).toEqual([]);
    const ours = await rows("SELECT name FROM system.tables WHERE database = currentDatabase()");
    // The archive, the audit log and the version of the schema are read by the product alone.
    const archive = ["archived_shipments", "archived_index", "archived_index_rows"];
    const own = [...archive, "audit_log", "waybill_schema"];
    expect([...ASKABLE, ...own].sort()).toEqual(ours.sort());
  });
});

describe("a server without a user that may only read", () => {
  const limits = {
    readonly: "1",
    max_execution_time: "30",
    max_memory_usage: "1000000000",
    max_result_rows: "1000",
    max_result_bytes: "1000000",
  };
  const users = {
    all: { name: "all", password: "all" },
    unlimited: { name: "unlimited", password: "x", settings: { readonly: "1" } },
    curious: { name: "curious", password: "x", settings: limits },
    changing: { name: "changing", password: "x", settings: { ...limits, readonly: "2" } },
    reader: { name: "reader", password: "x", settings: limits, isGrantedTablesOnly: true },
  } as const;
  let server: Awaited<ReturnType<typeof startClickhouseHttp>>;
  let config: Config;

  beforeAll(async () => {
    const store = await openTestClickhouse();
    await store.end();
    server = await startClickhouseHttp(Object.values(users));
    config = { ...store.config, clickhouseUrl: server.address, clickhouseReadUrl: null };
    const writer = await openClickhouse(config, "write");
    await applySchema(writer, config);
    await writer.close();
  });

  afterAll(() => server?.stop());

  async function accessAs(user: keyof typeof users | null) {
    const clickhouseReadUrl = user === null ? null : server.addressOf(users[user]);
    const access = openSqlAccess({ ...config, clickhouseReadUrl });
    try {
      const reason = await access.shutBecause();
      const error = await access.ask("SELECT 1", "csv", "somebody").then(
        () => null,
        (thrown) => thrown,
      );
      return { reason, status: error?.status ?? 200, code: error?.code ?? null };
    } finally {
      await access.close();
    }
  }

  test.each([
    [null, "CLICKHOUSE_READ_URL is not set"],
    ["all", "is not read-only"],
    ["changing", "is not read-only"],
    ["unlimited", "has no limit max_execution_time"],
    ["curious", "may read system tables"],
  ] as const)("keeps SQL access shut for %p and says why", async (user, reason) => {
    const answer = await accessAs(user);
    expect(answer).toEqual({
      reason: expect.stringContaining(reason),
      status: 503,
      code: "SQL_DOOR_SHUT",
    });
    expect(answer.reason).toContain("analytics/sql/read-only-user.sql");
  });

  test("is what the settings doctor says too, also of a user who is not let in", async () => {
    const reader = await openBare(config, {});
    const readerAs = async (clickhouseReadUrl: string | null) =>
      (await readClickhouseFacts(reader, { ...config, clickhouseReadUrl })).reader;
    try {
      expect(await readerAs(null)).toEqual({ isSet: false, fault: null });
      expect(await readerAs(server.addressOf(users.reader))).toEqual({ isSet: true, fault: null });
      const curious = await readerAs(server.addressOf(users.curious));
      expect(curious).toEqual({ isSet: true, fault: "may read system tables" });
      const stranger = await readerAs(server.addressOf({ ...users.reader, password: "wrong" }));
      expect(stranger?.fault).toStartWith("is not let in (");
      const nobody = await readerAs("http://reader@127.0.0.1:1/none");
      expect(nobody?.fault).toBe("is not let in (no answer)");
    } finally {
      await reader.close();
    }
  });

  test("opens it for the user of read-only-user.sql, and does not close while the server is unavailable", async () => {
    expect(await accessAs("reader")).toEqual({ reason: null, status: 200, code: null });
    await server.kill();
    const answer = await accessAs("reader");
    expect(answer).toEqual({
      reason: null,
      status: 503,
      code: "ANALYTICS_UNAVAILABLE",
    });
    await server.restart();
  });
});
