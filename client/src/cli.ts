#!/usr/bin/env node
/** `waybill listen`: an endpoint's events, forwarded to a receiver on this machine. */
import { parseArgs } from "node:util";
import { listen } from "./listen.ts";
import { openPanel } from "./panel.ts";

const USAGE = `usage: waybill listen --forward URL [--endpoint ID | --channel CODE]
  --forward URL     where events are sent, such as http://localhost:3000/hook
  --endpoint ID     whose events; may be left out if there is one alone
  --channel CODE    the same, if the channel has one endpoint alone; that of test keys ends with :test
  --panel URL       address of the control panel; default WAYBILL_PANEL_URL, or http://127.0.0.1:8082
  --token TOKEN     an operator's; default PANEL_TOKEN. Instead: WAYBILL_EMAIL and WAYBILL_PASSWORD of an account
  --code CODE       of the account's second factor, where it has one
  --secret SECRET   the endpoint's, to verify signatures; default WAYBILL_WEBHOOK_SECRET
  --since TIME      also what happened since then: ISO 8601 with an offset
Press the number of an event to send it again, q to end.`;

const text = { type: "string" } as const;
const OPTIONS = {
  forward: text,
  endpoint: text,
  channel: text,
  panel: text,
  token: text,
  code: text,
  secret: text,
  since: text,
} as const;

/** ISO 8601 lets an offset be `+01:00`, `+0100` or `+01`; NaN for what is no time. */
function instantOf(text: string): number {
  return Date.parse(
    text.replace(
      /(T.*[+-]\d\d)(\d\d)?$/,
      (_, head: string, minutes = "00") => `${head}:${minutes}`,
    ),
  );
}

async function main(args: string[]): Promise<void> {
  if (args.includes("--help")) {
    process.stdout.write(`${USAGE}\n`);
    return;
  }
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const { forward, endpoint, channel, since } = values;
  if (positionals.join() !== "listen" || forward === undefined || !URL.canParse(forward)) {
    throw new Error(USAGE);
  }
  const sinceMs = since === undefined ? Date.now() : instantOf(since);
  if (Number.isNaN(sinceMs)) throw new Error(`--since ${since} is no time.\n${USAGE}`);
  const { env } = process;
  const stop = new AbortController();
  const access = {
    url: values.panel ?? env["WAYBILL_PANEL_URL"] ?? "http://127.0.0.1:8082",
    token: values.token ?? env["PANEL_TOKEN"],
    email: env["WAYBILL_EMAIL"],
    password: env["WAYBILL_PASSWORD"],
    code: values.code,
  };
  const panel = await openPanel(access, stop.signal);
  const listening = await listen(panel, {
    forward,
    endpoint: { id: endpoint, channel },
    secret: values.secret ?? env["WAYBILL_WEBHOOK_SECRET"],
    sinceMs,
    print: (line) => void process.stdout.write(`${line}\n`),
    signal: stop.signal,
  });
  process.stdin.setRawMode?.(true);
  process.stdin.setEncoding("utf8").on("data", (keys: string) => {
    for (const key of keys) {
      // Ctrl-C is a key like any other in raw mode.
      if (key === "q" || key === "\u0003") stop.abort();
      else if (/[1-9]/.test(key)) void listening.resend(Number(key));
    }
  });
  await listening.ended.finally(() => {
    process.stdin.setRawMode?.(false);
    process.stdin.pause();
  });
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
