/**
 * `bun run sql "SELECT …"`: asks the running product, since only one process may open the embedded store. The result is
 * printed as a table, or written to a file in the format that its name says: .parquet, .csv, .tsv, .json.
 */
import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { type Config, readConfig } from "#core/config.ts";
import { guarded, Refused } from "#core/runtime.ts";

const USAGE =
  'usage: bun run sql "SELECT …" [--format table|csv|tsv|json|parquet] [--out FILE.parquet|.csv|.tsv|.json]';
const FORMATS = ["table", "csv", "tsv", "json", "parquet"];

interface Task {
  readonly query: string;
  readonly format: string;
  /** Null = standard output. */
  readonly out: string | null;
}

/** @throws {Refused} */
function taskOf(args: string[]): Task {
  const options = { format: { type: "string" }, out: { type: "string" } } as const;
  const { values, positionals } = parsed(() =>
    parseArgs({ args, options, allowPositionals: true }),
  );
  const [query, ...rest] = positionals;
  if (query === undefined || rest.length > 0) throw new Refused(USAGE);
  const byName = values.out === undefined ? "table" : extname(values.out).slice(1);
  const format = values.format ?? byName;
  if (!FORMATS.includes(format)) throw new Refused(USAGE);
  if (format === "parquet" && values.out === undefined && process.stdout.isTTY) {
    throw new Refused("Parquet is no text: name a file with --out.");
  }
  return { query, format, out: values.out ?? null };
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new Refused(USAGE);
  }
}

/** @throws {Refused} */
async function tokenOf({ panelToken, dataDir }: Config): Promise<string> {
  if (panelToken !== null) return panelToken;
  const path = join(dataDir, "secrets", "panel-token");
  const text = await readFile(path, "utf8").catch(() => null);
  if (text === null) throw new Refused(`no operator token: set PANEL_TOKEN, or DATA_DIR (${path})`);
  return text.trim();
}

/** @throws {Refused} when the product does not answer, or refuses the statement */
async function ask(config: Config, { query, format }: Task): Promise<Response> {
  const base = config.publicUrl ?? `http://${config.host}:${config.ports.panel}`;
  const url = `${base.replace(/\/$/, "")}/panel/api/sql`;
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await tokenOf(config)}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ query, format }),
  }).catch((error: Error) => {
    throw new Refused(`the product does not answer on ${base}: ${error.message}`);
  });
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as { detail?: string };
  throw new Refused(problem.detail ?? `the product answered ${answer.status}`);
}

await guarded(async () => {
  const task = taskOf(process.argv.slice(2));
  const answer = await ask(readConfig(process.env), task);
  const rows = Readable.from(answer.body ?? []);
  if (task.out === null) await pipeline(rows, process.stdout, { end: false });
  else await pipeline(rows, createWriteStream(task.out));
});
