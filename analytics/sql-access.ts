/**
 * The data team's SQL access: one SELECT on our tables and views, read-only, within limits.
 *
 * | Layer                                        | Refuses                                                             |
 * |----------------------------------------------|---------------------------------------------------------------------|
 * | our judgement (`sql/check-statement.ts`)               | every function, table and form of statement that is not on our list |
 * | the engine's parser                          | `INTO OUTFILE`, `KILL`, a second statement: what no brackets hold   |
 * | the engine's rights (`sql/open-reader.ts`)   | writing, settings, most table functions; on a server all but ours   |
 *
 * The embedded engine has one user, who may read everything: there `file()` and system tables are kept out by the judgement.
 * Statements run within rows, bytes, memory, seconds and threads; whose turn it is is decided in `sql/statement-places.ts`.
 */
import type { Readable } from "node:stream";
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "#analytics/clickhouse/clickhouse.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { faultOfQuery, faultOfSyntax, type Reach } from "./sql/check-statement.ts";
import { type KeptReader, keepReader, type Reader } from "./sql/open-reader.ts";
import { SIDE_BY_SIDE, statementPlaces } from "./sql/statement-places.ts";
import { withTexts } from "./sql/text-columns.ts";
import { ANSWER_BYTES, unreadAnswer } from "./sql/unread-answer.ts";

/**
 * Limit of an engine's tree, which is judged without yielding to the event loop. A statement of 200 characters may become
 * 60 MB, since an alias is expanded wherever it is used.
 */
export const TREE_LIMIT_BYTES = limit(
  512 * 1024,
  "what the engine makes of a statement of SQL access",
  "422",
);

/** ClickHouse's formats by our names. */
const SQL_FORMATS = {
  json: "JSON",
  csv: "CSVWithNames",
  tsv: "TSVWithNames",
  parquet: "Parquet",
  table: "PrettyCompactMonoBlock",
} as const;
export type SqlFormat = keyof typeof SQL_FORMATS;

/** Formats that clients may ask for, by ClickHouse's names. */
const CLIENT_FORMATS: ReadonlySet<string> = new Set([
  ...["Native", "RowBinary", "RowBinaryWithNames", "RowBinaryWithNamesAndTypes"],
  ...["JSON", "JSONCompact", "JSONEachRow", "JSONCompactEachRow", "JSONStringsEachRow"],
  ...["JSONCompactEachRowWithNames", "JSONCompactEachRowWithNamesAndTypes"],
  ...["TabSeparated", "TabSeparatedWithNames", "TabSeparatedWithNamesAndTypes"],
  ...["TSV", "TSVWithNames", "TSVWithNamesAndTypes", "CSV", "CSVWithNames"],
  ...["Parquet", "Arrow", "ArrowStream", "PrettyCompactMonoBlock"],
]);

/** A statement of a program that speaks ClickHouse's own interface. */
export interface ClientAnswer {
  readonly stream: Readable;
  readonly format: string;
}

export interface SqlAccess {
  /**
   * @param person who asks, whoever that is
   * @returns the answer, which counts as a statement until it has been read or destroyed
   * @throws {Problem} 422 for a statement that is refused or fails, 429 too many at once, 503 ClickHouse
   * unavailable, or no user that may only read
   */
  ask(statement: string, format: SqlFormat, person: string): Promise<Readable>;
  /**
   * The same for programs, which name ClickHouse's format in the statement or beside it.
   * @param format of a statement that names none
   */
  askInFormat(statement: string, format: string, person: string): Promise<ClientAnswer>;
  /** Why it stays closed for every statement; null = it is open, or ClickHouse is unavailable. */
  shutBecause(): Promise<string | null>;
  close(): Promise<void>;
}

/** @param isForClients of the embedded engine alone: the catalogue that drivers and BI tools read can be asked too */
export function openSqlAccess(config: Config, isForClients = false): SqlAccess {
  const stores = Array.from({ length: SIDE_BY_SIDE }, () => keepReader(config, isForClients));
  const [first] = stores;
  const placeFor = statementPlaces();
  const isEmbedded = config.clickhouseUrl === null;

  async function run(statement: string, wanted: Wanted, person: string): Promise<ClientAnswer> {
    const place = await placeFor(person);
    try {
      const store = stores[place.at];
      if (!store) throw new Error(`there is no place ${place.at}`);
      const { stream, bytes, format } = await answer(store, statement, wanted);
      if (isEmbedded) {
        expectSmall(stream, bytes);
        place.ran();
      }
      return { stream: unreadAnswer(stream, place.end), format };
    } catch (error) {
      place.end();
      throw error;
    }
  }

  return {
    async ask(statement, format, person) {
      const wanted = { format: SQL_FORMATS[format], asTexts: format === "parquet", mayName: false };
      return (await run(statement, wanted, person)).stream;
    },
    askInFormat: (statement, format, person) =>
      run(statement, { format, asTexts: true, mayName: true }, person),
    async shutBecause() {
      const error = await first?.reader().then(
        () => null,
        (thrown) => thrown,
      );
      return error instanceof Problem ? error.detail : null;
    },
    async close() {
      await Promise.all(stores.map((store) => store.close()));
    },
  };
}

interface Wanted {
  /** Of a statement that names none. */
  readonly format: string;
  /** Fixed texts become texts: in a binary format they would be bytes. */
  readonly asTexts: boolean;
  /** Whether the statement may name its format. */
  readonly mayName: boolean;
}

interface Answer extends ClientAnswer {
  /** Of the embedded engine, which has the answer whole; 0 where it is computed as it is read. */
  readonly bytes: number;
}

/** @throws {Problem} 422 */
function expectSmall(stream: Readable, bytes: number): void {
  if (bytes <= ANSWER_BYTES) return;
  stream.destroy();
  const detail = `The answer has more than ${ANSWER_BYTES / 1024 ** 2} MiB: ask for fewer rows or columns.`;
  throw new Problem(422, "SQL_FAILED", detail);
}

async function answer(store: KeptReader, statement: string, wanted: Wanted): Promise<Answer> {
  const reader = await store.reader().catch((error) => {
    throw away(error);
  });
  try {
    const { select, format = wanted.format } = await admitted(reader, statement, wanted.mayName);
    if (wanted.mayName && !CLIENT_FORMATS.has(format)) throw refused(`The format ${format}`);
    const shown = wanted.asTexts ? await withTexts(reader.client, select) : select;
    const query = `SELECT * FROM (\n${shown}\n) FORMAT ${format}`;
    const { stream, response_headers } = await reader.client.exec({ query });
    return { stream, bytes: Number(response_headers["content-length"] ?? 0), format };
  } catch (error) {
    if (error instanceof Problem) throw error;
    const type = clickhouseErrorType(error);
    if (type === null) throw away(error);
    throw new Problem(422, "SQL_FAILED", `${type}: ${(error as Error).message}`.slice(0, 2_000));
  }
}

interface Admitted {
  readonly select: string;
  /** That the statement names. */
  readonly format?: string;
}

/** On a line of its own, as the engine's parser writes it: line breaks in texts and names are escaped. */
const NAMED_FORMAT = /\nFORMAT (\w+)$/;

/**
 * The statement as the engine's own parser writes it: one statement, without comments.
 * @throws {Problem} 422
 */
async function admitted(
  { client, reach }: Reader,
  statement: string,
  mayName: boolean,
): Promise<Admitted> {
  const bound = await client.query({
    query: "SELECT formatQuery({statement:String}) AS text",
    query_params: { statement },
    format: "JSONEachRow",
  });
  const [formatted] = await bound.json<{ text: string }>();
  const whole = formatted?.text ?? "";
  const [, format] = (mayName && NAMED_FORMAT.exec(whole)) || [];
  const text = format === undefined ? whole : whole.replace(NAMED_FORMAT, "");
  const named = format === undefined ? {} : { format };
  const described = descriptionOf(text, reach);
  if (described !== null) return { select: described, ...named };
  if (!/^(SELECT|WITH|\()/.test(text)) {
    throw refused("Anything but SELECT, SHOW TABLES, or DESCRIBE of one of our tables and views");
  }
  const select = `SELECT * FROM (\n${text}\n)`;
  const fault =
    faultOfSyntax(await syntaxTree(client, select), reach) ??
    faultOfQuery(await queryTree(client, select), reach);
  if (fault !== null) throw refused(fault);
  return { select: text, ...named };
}

/**
 * `SHOW TABLES`, `SHOW COLUMNS` and `DESCRIBE TABLE` for our tables, as queries of our own; null for any other statement.
 * @param text as the engine's parser writes it
 */
function descriptionOf(text: string, { database, tables, catalogue }: Reach): string | null {
  if (text === "SHOW TABLES" || text === `SHOW TABLES FROM ${database}`) {
    const names = [...tables].map((name) => `'${name}'`).join(", ");
    return `SELECT name, engine = 'View' AS is_view FROM system.tables
            WHERE database = currentDatabase() AND name IN (${names}) ORDER BY name`;
  }
  if (text === "SHOW DATABASES" && catalogue.tables.size > 0) return `SELECT '${database}' AS name`;
  const [, given, table = ""] =
    /^(?:DESCRIBE TABLE|SHOW COLUMNS FROM) (?:(\w+)\.)?(\w+)$/.exec(text) ?? [];
  if (!tables.has(table) || (given !== undefined && given !== database)) return null;
  return `SELECT name, type, comment FROM system.columns
          WHERE database = currentDatabase() AND table = '${table}' ORDER BY position`;
}

/** `EXPLAIN AST` accepts no format. */
async function syntaxTree(client: ClickHouseClient, select: string): Promise<string[]> {
  const { stream } = await client.exec({ query: `EXPLAIN AST ${select}` });
  return linesOf(stream);
}

/** One pass of the analyzer: names are resolved, but nothing is optimized. */
async function queryTree(client: ClickHouseClient, select: string): Promise<string[]> {
  const query = `EXPLAIN QUERY TREE passes = 1 ${select} FORMAT JSONEachRow`;
  const { stream } = await client.exec({ query });
  const lines = await linesOf(stream);
  return lines.map((line) => (JSON.parse(line) as { explain: string }).explain);
}

/** @throws {Problem} 422 for a tree over the limit */
async function linesOf(stream: Readable): Promise<string[]> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size <= TREE_LIMIT_BYTES) chunks.push(Buffer.from(chunk));
  }
  if (size > TREE_LIMIT_BYTES) throw refused("A statement that becomes so large");
  const text = Buffer.concat(chunks).toString("utf8");
  return text.split("\n").filter((line) => line !== "");
}

function refused(what: string): Problem {
  return new Problem(422, "SQL_REFUSED", `${what} is not allowed here.`);
}

function away(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(503, "ANALYTICS_UNAVAILABLE", "ClickHouse is unavailable at the moment.", {
    headers: { "retry-after": "5" },
  });
}
