/** `waybill sql` asks the running product: one statement, or a prompt. */

import { createWriteStream } from "node:fs";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { readStoreConfig } from "#cli/store-config.ts";
import { command, WrongUsage } from "#core/platform/process/command-line.ts";
import { ask, prompt } from "./prompt.ts";

const FORMATS = ["table", "csv", "tsv", "json", "parquet"];

export const sql = command({
  name: "waybill sql",
  forms: [
    '["SELECT …"] [--format table|csv|tsv|json|parquet] [--out FILE.parquet|.csv|.tsv|.json]',
  ],
  about: `Asks the running product, which it finds by PUBLIC_URL, or HOST and PANEL_PORT. The statement is one SELECT on our tables and
views, SHOW TABLES, or DESCRIBE of one of them. Without a statement it is a prompt with history and completion, or, without a
terminal, reads statements from standard input. docs/analytics.md lists tables, views and limits.`,
  options: {
    format: {
      type: "string",
      value: "FORMAT",
      about: "of the result; default table, or what the name of --out ends with",
    },
    out: { type: "string", value: "FILE", about: "writes the result to a file" },
  },
  operands: [0, 1],
  async run({ values: { format: given, out }, operands: [query], env }) {
    const format = given ?? (out === undefined ? "table" : extname(out).slice(1));
    if (!FORMATS.includes(format)) throw new WrongUsage(`The format is one of ${FORMATS.join()}.`);
    if (query === undefined && out !== undefined) throw new WrongUsage("A statement is missing.");
    if (format === "parquet" && out === undefined && (!query || process.stdout.isTTY)) {
      throw new WrongUsage("Parquet is not text: name a file with --out.");
    }
    const config = await readStoreConfig(env);
    // Standard input may be open still.
    if (query === undefined) process.exit((await prompt(config, format)) ? 0 : 1);
    const { body } = await ask(config, { query, format });
    const rows = Readable.from(body ?? []);
    if (out === undefined) await pipeline(rows, process.stdout, { end: false });
    else await pipeline(rows, createWriteStream(out));
  },
});
