/**
 * `node doctor.mjs courier --url … --token … --courier … [--secret …] [--messages FILE]`: sends edge messages to
 * `/v1/events/validate`, which stores nothing, judges messages of the sender's own, and prints a graded report. Exit
 * status 0 when everything was as expected. The service hands it out as one file (`GET /v1/doctor.mjs`), so nothing here
 * may need more than Node.js 20 or Bun.
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { examine } from "#ingest/doctor/examine.ts";
import { checkMessages, messagesOf, type OwnMessage } from "#ingest/doctor/own-messages.ts";
import { messagesReport, serviceReport } from "#ingest/doctor/report.ts";
import { createSender, type Sender } from "#ingest/doctor/sender.ts";

const USAGE = `usage: node doctor.mjs courier --url URL --token TOKEN --courier CODE
  --secret SECRET   sign the messages, and try what a signature can get wrong
  --messages FILE   judge messages of your own too: one a file or one a line, gzip or not, - for standard input;
                    may be repeated, and without --url the published schemas alone judge them
  --cert FILE --key FILE --ca FILE   client certificate, private root (PEM)`;

const text = { type: "string" } as const;
const files = { type: "string", multiple: true } as const;
const OPTIONS = {
  url: text,
  token: text,
  courier: text,
  secret: text,
  cert: text,
  key: text,
  ca: text,
  // The same under its earlier name.
  messages: files,
  sample: files,
} as const;

/** Ends the program with its message alone. */
class Refused extends Error {}

/** @throws {Refused} with the usage */
function readArguments(args: string[]) {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    const messages = [...(values.messages ?? []), ...(values.sample ?? [])];
    const { url, token, courier } = values;
    const isLocal = [url, token, courier].every((value) => value === undefined);
    const missing = Object.entries({ url, token, courier }).filter(([, value]) => !value);
    if (positionals.join() !== "courier" || (isLocal && messages.length === 0)) {
      throw new Refused(USAGE);
    }
    if (!isLocal && missing.length > 0) {
      const names = missing.map(([name]) => `--${name}`).join(", ");
      throw new Refused(`Missing: ${names}\n${USAGE}`);
    }
    if (url !== undefined && !URL.canParse(url)) {
      throw new Refused(`--url is not an address: ${url}`);
    }
    return { ...values, messages };
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(`${(error as Error).message}\n${USAGE}`);
  }
}

type Given = ReturnType<typeof readArguments>;

/** @throws {Refused} */
async function senderOf({ url, token, courier, secret, ...files }: Given): Promise<Sender | null> {
  if (url === undefined || token === undefined || courier === undefined) return null;
  const tls: Record<string, string> = {};
  for (const name of ["cert", "key", "ca"] as const) {
    const path = files[name];
    if (path !== undefined) tls[name] = (await readBytes(path)).toString();
  }
  const target = { url: url.replace(/\/+$/, ""), token, courier, secret: secret ?? null, tls };
  return createSender(target, Date.now);
}

/** @throws {Refused} */
async function readMessages(paths: readonly string[]): Promise<OwnMessage[]> {
  const read: OwnMessage[] = [];
  for (const path of paths) {
    const isInput = path === "-";
    const bytes = isInput ? await readInput() : await readBytes(path);
    if (bytes.length === 0) throw new Refused(`${isInput ? "standard input" : path} is empty`);
    read.push(...messagesOf(isInput ? "stdin" : path, bytes));
  }
  return read;
}

async function readInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

/** @throws {Refused} */
async function readBytes(path: string): Promise<Buffer> {
  return readFile(path).catch((error: Error) => {
    throw new Refused(error.message);
  });
}

/** @returns whether everything was as expected */
async function run(args: string[]): Promise<boolean> {
  if (args.some((argument) => ["--help", "-h"].includes(argument))) {
    process.stdout.write(`${USAGE}\n`);
    return true;
  }
  const given = readArguments(args);
  const sender = await senderOf(given);
  const messages = await readMessages(given.messages);
  let isSound = true;
  let service = sender;
  if (sender !== null) {
    const examination = await examine(sender, Date.now);
    process.stdout.write(serviceReport(examination));
    const { findings, stopped } = examination;
    isSound = stopped === null && findings.every(({ fault }) => fault === null);
    if (stopped !== null) service = null;
  }
  if (messages.length > 0) {
    const findings = await checkMessages(messages, service);
    process.stdout.write(
      `${sender === null ? "" : "\n"}${messagesReport(findings, service === null)}`,
    );
    isSound &&= findings.every(({ fault }) => fault === null);
  }
  return isSound;
}

try {
  process.exitCode = (await run(process.argv.slice(2))) ? 0 : 1;
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
