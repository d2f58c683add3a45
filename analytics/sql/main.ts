/**
 * `bun run sql "SELECT …"` asks the running product. The result is printed as a table, or written to a file in the format
 * that its name says. Without a statement it is a prompt.
 */
import { createWriteStream } from "node:fs";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { readConfig } from "#core/platform/environment/config.ts";
import { guarded, Refused } from "#core/runtime/runtime.ts";
import { ask } from "./ask.ts";
import { prompt } from "./prompt.ts";

const USAGE = `usage: bun run sql ["SELECT …"] [--format table|csv|tsv|json|parquet] [--out FILE.parquet|.csv|.tsv|.json]

Asks the running product, which it finds by PUBLIC_URL, or HOST and PANEL_PORT. The statement is one SELECT on our tables and
views, SHOW TABLES, or DESCRIBE of one of them. Without a statement it is a prompt with history and completion, or, without a
terminal, reads statements from standard input. docs/analytics.md lists tables, views and limits.`;
const FORMATS = ["table", "csv", "tsv", "json", "parquet"];

interface Arguments {
  readonly isHelp: boolean;
  /** Null = a prompt. */
  readonly query: string | null;
  readonly format: string;
  /** Null = standard output. */
  readonly out: string | null;
}

/** @throws {Refused} */
function argumentsOf(args: string[]): Arguments {
  const { values, positionals } = parsed(args);
  const [query = null, ...rest] = positionals;
  const { out = null } = values;
  const format = values.format ?? (out === null ? "table" : extname(out).slice(1));
  const isFaulty = rest.length > 0 || !FORMATS.includes(format) || (query === null && out !== null);
  if (isFaulty) throw new Refused(USAGE);
  if (format === "parquet" && out === null && (query === null || process.stdout.isTTY)) {
    throw new Refused("Parquet is not text: name a file with --out.");
  }
  return { isHelp: values.help === true, query, format, out };
}

function parsed(args: string[]) {
  const options = {
    format: { type: "string" },
    out: { type: "string" },
    help: { type: "boolean", short: "h" },
  } as const;
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch {
    throw new Refused(USAGE);
  }
}

await guarded(async () => {
  const { isHelp, query, format, out } = argumentsOf(process.argv.slice(2));
  if (isHelp) {
    process.stdout.write(`${USAGE}\n`);
    return;
  }
  const config = readConfig(process.env);
  if (query === null) {
    process.exit((await prompt(config, format)) ? 0 : 1);
  }
  const answer = await ask(config, { query, format });
  const rows = Readable.from(answer.body ?? []);
  if (out === null) await pipeline(rows, process.stdout, { end: false });
  else await pipeline(rows, createWriteStream(out));
});
