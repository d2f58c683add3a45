/**
 * The prompt of `waybill sql`: one statement after the other, each ended by a semicolon at the end of a line, with history
 * and completion. Without a terminal it reads statements from standard input in the same way.
 */
import { appendFileSync, chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { ALLOWED_FUNCTIONS } from "#analytics/sql/allowed-functions.ts";
import { askProduct } from "#cli/ask-product.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { Refused } from "#core/runtime/runtime.ts";

/** Lines kept in the history file. */
export const HISTORY_LINES = limit(
  1_000,
  "lines of the prompt's history",
  "the oldest are removed at the next start",
);
const KEYWORDS = `
  SELECT FROM WHERE GROUP BY ORDER BY HAVING LIMIT FINAL WITH AS JOIN LEFT JOIN ON USING UNION ALL DISTINCT CASE WHEN THEN ELSE
  END AND OR NOT IN BETWEEN LIKE ILIKE IS NULL INTERVAL DAY MONTH OVER PARTITION BY QUALIFY DESC ASC SHOW TABLES DESCRIBE exit
  help`.match(/\w+/g);

const HELP = `A statement ends with a semicolon at the end of a line, and may take several lines.
  SHOW TABLES;          lists the tables and views
  DESCRIBE lanes;       lists the columns of one
  help                  prints this text
  exit, or Ctrl-D       leaves
Tab completes names. Up and Down go through earlier lines. Ctrl-C drops what was typed, or the statement that is running.
`;

/** @throws {Refused} when the product does not answer, or refuses the statement */
export function ask(
  config: Config,
  body: { readonly query: string; readonly format: string },
  signal: AbortSignal | null = null,
): Promise<Response> {
  return askProduct(config, { method: "POST", path: "/sql", body, signal });
}

/** @returns whether every statement was answered; without a terminal the first one that was not is the last */
export async function prompt(config: Config, format: string): Promise<boolean> {
  const isTerminal = process.stdin.isTTY === true;
  const words = new Set<string>([...(KEYWORDS ?? []), ...ALLOWED_FUNCTIONS]);
  const lines = createInterface({
    input: process.stdin,
    ...(isTerminal && {
      output: process.stdout,
      history: readHistory(config),
      historySize: HISTORY_LINES,
      completer: (line: string) => completionsOf(line, words),
    }),
    terminal: isTerminal,
  });
  if (!isTerminal) return askAll(config, format, lines);
  void learnNames(config, words);
  process.stdout.write('Statements end with ";". help explains more, Ctrl-D leaves.\n');
  await converse(config, format, lines);
  return true;
}

/** A line that ends a statement is followed by its answer before the next line is read. */
async function converse(config: Config, format: string, lines: Interface): Promise<void> {
  let typed = "";
  let running: AbortController | null = null;
  const next = () => {
    lines.setPrompt(typed === "" ? "sql> " : "...> ");
    lines.prompt();
  };
  lines.on("SIGINT", () => {
    if (running !== null) return running.abort();
    typed = "";
    // The cursor goes to the end of the line, and everything before it is deleted.
    lines.write(null, { ctrl: true, name: "e" });
    lines.write(null, { ctrl: true, name: "u" });
    process.stdout.write("\n");
    next();
  });
  async function take(line: string): Promise<void> {
    if (line.trim() !== "") keepLine(config, line);
    if (typed === "" && /^\s*(exit|quit|\\q);?\s*$/i.test(line)) return lines.close();
    if (typed === "" && /^\s*(help|\?|\\h);?\s*$/i.test(line)) process.stdout.write(HELP);
    else typed += `${line}\n`;
    if (isWhole(typed)) {
      const statement = typed;
      typed = "";
      running = new AbortController();
      await answer(config, statement, format, running.signal).catch((error: Error) => {
        process.stdout.write(`${error.message}\n`);
      });
      running = null;
    } else if (typed.trim() === "") typed = "";
    next();
  }
  const ended = new Promise<void>((resolve) => lines.once("close", resolve));
  let turn = Promise.resolve();
  lines.on("line", (line) => {
    turn = turn.then(() => take(line));
  });
  next();
  await ended;
  process.stdout.write("\n");
}

async function askAll(config: Config, format: string, lines: Interface): Promise<boolean> {
  let typed = "";
  try {
    for await (const line of lines) {
      typed += `${line}\n`;
      if (!isWhole(typed)) continue;
      await answer(config, typed, format, null);
      typed = "";
    }
    if (typed.trim() !== "") await answer(config, typed, format, null);
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    process.stderr.write(`${error.message}\n`);
    return false;
  }
}

function isWhole(typed: string): boolean {
  return typed.trimEnd().endsWith(";");
}

/** @throws {Refused} */
async function answer(
  config: Config,
  query: string,
  format: string,
  signal: AbortSignal | null,
): Promise<void> {
  const { body } = await ask(config, { query, format }, signal);
  for await (const chunk of body ?? []) process.stdout.write(chunk);
}

function completionsOf(line: string, words: ReadonlySet<string>): [string[], string] {
  const begun = line.split(/\W/).at(-1) ?? "";
  if (begun === "") return [[], begun];
  const found = [...words].filter((word) => word.toLowerCase().startsWith(begun.toLowerCase()));
  return [found.sort(), begun];
}

/** Names of tables, views and their columns, for completion; without an answer there are fewer to complete. */
async function learnNames(config: Config, words: Set<string>): Promise<void> {
  const namesOf = async (query: string) => {
    const body = await (await ask(config, { query, format: "json" })).json();
    return (body as { data: { name: string }[] }).data.map(({ name }) => name);
  };
  try {
    const tables = await namesOf("SHOW TABLES");
    for (const table of tables) words.add(table);
    for (const table of tables) {
      for (const column of await namesOf(`DESCRIBE ${table}`)) words.add(column);
    }
  } catch {
    // The first statement will say what is wrong.
  }
}

function historyFile({ dataDir }: Config): string {
  return join(dataDir, "sql-history");
}

/** The latest first, as the line editor wants them. */
function readHistory(config: Config): string[] {
  const path = historyFile(config);
  try {
    const kept = readFileSync(path, "utf8").trimEnd().split("\n").slice(-HISTORY_LINES);
    writeFileSync(path, `${kept.join("\n")}\n`);
    chmodSync(path, 0o600);
    return kept.toReversed();
  } catch {
    return [];
  }
}

/** What was asked is nobody else's business; a folder that cannot be written to has no history. */
function keepLine(config: Config, line: string): void {
  try {
    appendFileSync(historyFile(config), `${line}\n`, { mode: 0o600 });
  } catch {}
}
