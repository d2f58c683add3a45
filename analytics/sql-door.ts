/**
 * The data team's door: one SELECT on the tables and views, read-only, within limits.
 *
 * | what is sent                                             | what stops it                                              |
 * |----------------------------------------------------------|------------------------------------------------------------|
 * | INSERT, CREATE, ALTER, SET, a raised limit               | `readonly = 1` of the connection                           |
 * | url(), s3(), remote(), file(), a path as a table name    | `readonly = 1`: such tables are not opened                 |
 * | INTO OUTFILE, KILL, DESCRIBE url(), several statements   | the engine's parser: the statement must stand in brackets  |
 * | file('/etc/passwd') and other functions that reach out   | names in the engine's syntax tree that are on our list     |
 * | too much                                                 | rows, bytes, memory, seconds, threads; one after the other |
 */
import type { Readable } from "node:stream";
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import type { Config } from "#core/config.ts";
import { Problem } from "#core/problem.ts";
import { clickhouseErrorType, keepClickhouse, openBare } from "./clickhouse.ts";

const RESULT_ROWS = 1_000_000;
const RESULT_BYTES = 256 * 1024 * 1024;
const MEMORY_BYTES = 1024 * 1024 * 1024;
const SECONDS = 30;
const THREADS = 2;
/** One connection is one queue, and it is closed when a statement fails: one is asked, so many wait. */
const WAITING_LIMIT = 8;

const LIMITS: ClickHouseSettings = {
  output_format_pretty_color: 0,
  max_result_rows: String(RESULT_ROWS),
  max_result_bytes: String(RESULT_BYTES),
  result_overflow_mode: "throw",
  max_memory_usage: String(MEMORY_BYTES),
  max_execution_time: SECONDS,
  max_threads: THREADS,
  output_format_json_quote_64bit_integers: 0,
  do_not_merge_across_partitions_select_final: 1,
};

/** ClickHouse's formats by our names. */
export const SQL_FORMATS = {
  json: "JSON",
  csv: "CSVWithNames",
  tsv: "TSVWithNames",
  parquet: "Parquet",
  table: "PrettyCompactMonoBlock",
} as const;
export type SqlFormat = keyof typeof SQL_FORMATS;

/** Functions that read files, ask the network or models, tell of the server, or only wait. */
const REACHING_OUT =
  /^(file|eval|ai[a-z]*|dict[a-z0-9]*|joinget[a-z]*|reversedns[a-z]*|catboost[a-z]*|naivebayes[a-z]*|sleep[a-z]*|getserver[a-z]*|getclient[a-z]*|getmacro|getoskernelversion|hostname|fqdn|serveruuid|showcertificate|currentprofiles|connectionid|addressto[a-z]*|demangle|lemmatize|synonyms|stem|trap|buildid|llm[a-z]*|embed[a-z]*)$/;

export interface SqlDoor {
  /**
   * @throws {Problem} 422 for a statement that is refused or fails, 429 too many at once, 503 ClickHouse away
   */
  ask(statement: string, format: SqlFormat): Promise<Readable>;
  close(): Promise<void>;
}

export function openSqlDoor(config: Config): SqlDoor {
  const store = keepClickhouse(() => openReadOnly(config));
  let turn: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  async function answer(statement: string, format: SqlFormat): Promise<Readable> {
    const client = await store.client().catch((error) => {
      throw away(error);
    });
    try {
      const select = await admitted(client, statement);
      const query = `SELECT * FROM (\n${select}\n) FORMAT ${SQL_FORMATS[format]}`;
      const { stream } = await client.exec({ query });
      return stream as Readable;
    } catch (error) {
      if (error instanceof Problem) throw error;
      // The embedded engine gives what a failed statement had written already to the next one of its connection.
      await store.forget();
      const type = clickhouseErrorType(error);
      if (type === null) throw away(error);
      throw new Problem(422, "SQL_FAILED", `${type}: ${(error as Error).message}`.slice(0, 2_000));
    }
  }

  return {
    async ask(statement, format) {
      if (waiting >= WAITING_LIMIT) {
        throw new Problem(429, "SQL_BUSY", `At most ${WAITING_LIMIT} statements at once.`, {
          headers: { "retry-after": "5" },
        });
      }
      waiting += 1;
      const answered = turn.then(() => answer(statement, format));
      turn = answered.catch(() => {});
      return answered.finally(() => {
        waiting -= 1;
      });
    },
    close: store.close,
  };
}

/** The embedded engine keeps settings on its connection; once it is read-only, none of them can be changed again. */
async function openReadOnly(config: Config): Promise<ClickHouseClient> {
  if (config.clickhouseUrl !== null) return openBare(config, { ...LIMITS, readonly: "1" });
  const client = await openBare(config, {});
  const settings = Object.entries({ ...LIMITS, readonly: "1" });
  const query = `SET ${settings.map(([name, value]) => `${name} = '${value}'`).join(", ")}`;
  await client.command({ query });
  return client;
}

/**
 * The statement as the engine's own parser writes it: one statement, without comments.
 * @throws {Problem} 422
 */
async function admitted(client: ClickHouseClient, statement: string): Promise<string> {
  const query = "SELECT formatQuery({statement:String}) AS text";
  const bound = await client.query({
    query,
    query_params: { statement },
    format: "JSONEachRow",
  });
  const [formatted] = await bound.json<{ text: string }>();
  const text = formatted?.text ?? "";
  const { stream } = await client.exec({ query: `EXPLAIN AST SELECT * FROM (\n${text}\n)` });
  for (const line of (await textOf(stream as Readable)).split("\n")) refuseReachingOut(line);
  return text;
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

/** @param line of the syntax tree, such as `  Function url (alias q) (children 1)`, in quotes or not */
function refuseReachingOut(line: string): void {
  // Settings of a part of the statement would take effect there whatever the connection allows.
  if (/^"? *Set\b/.test(line)) throw refused("SETTINGS");
  const [, kind, name = ""] = /^"? *(Function|TableIdentifier) ([^\s"]+)/.exec(line) ?? [];
  const lower = name.toLowerCase();
  if (kind === "Function" && REACHING_OUT.test(lower)) throw refused(`The function ${name}`);
  const isSystem = lower.startsWith("system.") && !SYSTEM_TABLES.has(lower.slice("system.".length));
  if (kind === "TableIdentifier" && isSystem) throw refused(`The table ${name}`);
}

/** Of the engine's own tables, those that tell what there is to ask. */
const SYSTEM_TABLES = new Set(["columns", "tables", "functions", "parts", "one", "numbers"]);

function refused(what: string): Problem {
  return new Problem(422, "SQL_REFUSED", `${what} is not allowed here.`);
}

function away(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(503, "ANALYTICS_UNAVAILABLE", "ClickHouse is away just now.", {
    headers: { "retry-after": "5" },
  });
}
