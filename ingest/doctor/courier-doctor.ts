/**
 * `waybill doctor courier`, which couriers have as `node doctor.mjs courier`: sends edge messages to `/v1/events/validate`, which
 * stores nothing, judges messages of the sender's own, and prints a graded report.
 */
import { readFile } from "node:fs/promises";
import {
  command,
  JSON_OPTION,
  type Program,
  WrongUsage,
} from "#core/platform/process/command-line.ts";
import { examine } from "#ingest/doctor/examine.ts";
import { checkMessages, messagesOf, type OwnMessage } from "#ingest/doctor/own-messages.ts";
import { messagesReport, serviceReport } from "#ingest/doctor/report.ts";
import { createSender, type Sender } from "#ingest/doctor/sender.ts";

const text = { type: "string" } as const;
const files = { type: "string", multiple: true, value: "FILE" } as const;
const OPTIONS = {
  url: { ...text, value: "URL", about: "base address of the service" },
  token: { ...text, value: "TOKEN", about: "the courier's" },
  courier: { ...text, value: "CODE", about: "the courier's" },
  secret: {
    ...text,
    value: "SECRET",
    about: "sign the messages, and try what a signature can get wrong",
  },
  messages: {
    ...files,
    about: `judge messages of your own too: one a file or one a line, gzip or not, - for standard input;
may be repeated, and without --url the published schemas alone judge them`,
  },
  sample: { ...files, about: null },
  cert: { ...text, value: "FILE", about: "client certificate (PEM), with --key" },
  key: { ...text, value: "FILE", about: "its private key" },
  ca: { ...text, value: "FILE", about: "private root" },
  json: JSON_OPTION,
} as const;

/** Ends the program with its message alone. */
class Refused extends Error {}

type Given = Readonly<
  Partial<Record<"url" | "token" | "courier" | "secret" | "cert" | "key" | "ca", string>>
>;

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

/** @throws {Refused} */
async function examineAll(given: Given, paths: readonly string[]) {
  const sender = await senderOf(given);
  const messages = await readMessages(paths);
  const service = sender === null ? null : await examine(sender, Date.now);
  const isAnswering = service !== null && service.stopped === null;
  const judged =
    messages.length === 0 ? null : await checkMessages(messages, isAnswering ? sender : null);
  const findings = [...(service?.findings ?? []), ...(judged ?? [])];
  const texts = [
    ...(service === null ? [] : [serviceReport(service)]),
    ...(judged === null ? [] : [messagesReport(judged, !isAnswering)]),
  ];
  return {
    isSound: !service?.stopped && findings.every(({ fault }) => fault === null),
    value: { service, messages: judged },
    text: texts.join("\n").trimEnd(),
  };
}

/** @param name as it is called, such as `node doctor.mjs` */
export function courierDoctor(name: string): Program {
  return command({
    name,
    forms: ["courier --url URL --token TOKEN --courier CODE [options]", "courier --messages FILE"],
    about: `Sends messages to /v1/events/validate, which stores nothing, judges messages of your own, and prints every check and a grade.
Exit status 1: something was not as expected.`,
    options: OPTIONS,
    operands: [1, 1],
    async run({ values, operands: [what], report }) {
      if (what !== "courier") throw new WrongUsage(`Unexpected argument '${what}'.`);
      const { messages = [], sample = [], json: _, ...given } = values;
      const { url, token, courier } = given;
      const missing = Object.entries({ url, token, courier }).filter(([, value]) => !value);
      const paths = [...messages, ...sample];
      const isLocal = url === undefined && token === undefined && courier === undefined;
      if (missing.length > 0 && !(isLocal && paths.length > 0)) {
        throw new WrongUsage(`Missing: ${missing.map(([one]) => `--${one}`).join(", ")}`);
      }
      if (url !== undefined && !URL.canParse(url)) {
        throw new WrongUsage(`--url is not an address: ${url}`);
      }
      try {
        const { isSound, value, text } = await examineAll(given, paths);
        report(value, text);
        return isSound ? 0 : 1;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        process.stderr.write(`${error.message}\n`);
        return 1;
      }
    },
  });
}
