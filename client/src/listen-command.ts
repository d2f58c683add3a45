/** `waybill listen`, of this package and of the product: an endpoint's events, forwarded to a receiver on this machine. */
import { parseArgs } from "node:util";
import { listen } from "./listen.ts";
import { openPanel } from "./panel.ts";

export const USAGE = `usage: waybill listen --forward URL [--endpoint ID | --channel CODE]
  --forward URL     where events are sent, such as http://localhost:3000/hook
  --endpoint ID     whose events; optional if there is only one
  --channel CODE    the same, if the channel has only one endpoint; CODE:test for its test mode
  --panel URL       address of the control panel; default WAYBILL_PANEL_URL, PUBLIC_URL or http://HOST:PANEL_PORT
  --token TOKEN     an operator's; default PANEL_TOKEN. Instead: WAYBILL_EMAIL and WAYBILL_PASSWORD of an account
  --code CODE       of the account's second factor, if it has one
  --secret SECRET   the endpoint's, to verify signatures; default WAYBILL_WEBHOOK_SECRET
  --since TIME      sends earlier events since then too: ISO 8601 with an offset
  -h, --help        prints this text
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

class WrongUsage extends Error {}

/** @throws {WrongUsage} */
function read(args: readonly string[]) {
  try {
    const { values } = parseArgs({ args: [...args], options: OPTIONS });
    const { forward = "", since } = values;
    if (!URL.canParse(forward)) throw new WrongUsage("--forward is no address.");
    const sinceMs = since === undefined ? Date.now() : instantOf(since);
    if (Number.isNaN(sinceMs)) throw new WrongUsage(`--since ${since} is no time.`);
    return { ...values, forward, sinceMs };
  } catch (error) {
    throw new WrongUsage((error as Error).message);
  }
}

/** @returns the exit status: 0 = ended by the user, 1 = refused or cut off, 2 = wrong usage */
export async function listenCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  try {
    await run(read(args), env);
    return 0;
  } catch (error) {
    const isUsage = error instanceof WrongUsage;
    process.stderr.write(`${(error as Error).message}\n${isUsage ? `${USAGE}\n` : ""}`);
    return isUsage ? 2 : 1;
  }
}

/** As the product itself finds its panel. */
function panelUrlOf(env: Readonly<Record<string, string | undefined>>): string {
  const named = env["WAYBILL_PANEL_URL"] || env["PUBLIC_URL"];
  if (named) return named;
  const port = Number(env["PANEL_PORT"]) || 8082;
  const host = env["HOST"] || "127.0.0.1";
  return `http://${EVERY_ADDRESS.includes(host) ? "127.0.0.1" : host}:${port}`;
}

const EVERY_ADDRESS: readonly string[] = ["0.0.0.0", "::", "[::]"];

async function run(
  values: ReturnType<typeof read>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const stop = new AbortController();
  const access = {
    url: values.panel ?? panelUrlOf(env),
    token: values.token ?? env["PANEL_TOKEN"],
    email: env["WAYBILL_EMAIL"],
    password: env["WAYBILL_PASSWORD"],
    code: values.code,
  };
  const panel = await openPanel(access, stop.signal);
  const listening = await listen(panel, {
    forward: values.forward,
    endpoint: { id: values.endpoint, channel: values.channel },
    secret: values.secret ?? env["WAYBILL_WEBHOOK_SECRET"],
    sinceMs: values.sinceMs,
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
