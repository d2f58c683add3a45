/**
 * `bun run doctor courier --url … --token … --courier … [--secret …]`: sends edge messages to `/v1/events/validate`,
 * which stores nothing, and prints a graded report. Exit status 0 when everything was as expected.
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { guarded, Refused } from "#core/runtime.ts";
import { examine } from "#ingest/doctor/examine.ts";
import { reportText } from "#ingest/doctor/report.ts";
import { createSender, type Target } from "#ingest/doctor/sender.ts";

const USAGE = `usage: bun run doctor courier --url URL --token TOKEN --courier CODE
  --secret SECRET   sign the messages, and try what a signature can get wrong
  --sample FILE     judge a message of your own too
  --cert FILE --key FILE --ca FILE   client certificate, private root (PEM)`;

const text = { type: "string" } as const;
const OPTIONS = {
  ...{ url: text, token: text, courier: text, secret: text, sample: text },
  ...{ cert: text, key: text, ca: text },
} as const;

/** @throws {Refused} with the usage */
function readArguments(args: string[]) {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    const { url, token, courier } = values;
    const complete = url !== undefined && token !== undefined && courier !== undefined;
    if (positionals.join() !== "courier" || !complete) throw new Refused(USAGE);
    return { ...values, url: url.replace(/\/+$/, ""), token, courier };
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(`${(error as Error).message}\n${USAGE}`);
  }
}

/** @throws {Refused} */
async function readText(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: Error) => {
    throw new Refused(error.message);
  });
}

await guarded(async () => {
  const given = readArguments(process.argv.slice(2));
  const { url, token, courier, secret = null } = given;
  const tls = {
    ...(given.cert !== undefined && { cert: await readText(given.cert) }),
    ...(given.key !== undefined && { key: await readText(given.key) }),
    ...(given.ca !== undefined && { ca: await readText(given.ca) }),
  };
  const target: Target = { url, token, courier, secret, tls };
  const sample = given.sample === undefined ? null : await readText(given.sample);
  const sender = createSender(target, Date.now);
  const examination = await examine(sender, sample, Date.now);
  process.stdout.write(reportText(examination));
  const isSound = examination.findings.every(({ fault }) => fault === null);
  process.exit(isSound ? 0 : 1);
});
