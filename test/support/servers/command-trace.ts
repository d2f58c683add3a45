/**
 * Commands of the product: preloaded into it (`--preload`), this file tells whoever started it when the client sends a command and when
 * it has the answer. A wait is a command sent after the answer to the one before it; they are followed back from the last command of
 * each step. An announcement, and a read that waited for it, are on their way once and no wait.
 */
import { tracingChannel } from "node:diagnostics_channel";

/** The command that ends each step. */
const STEPS = {
  ingest: /\{e\d+\}:log \{e\d+\}:ledger/,
  track: /\{k\d+\}:changes \{k\d+\}:ledger/,
  decide: /\{k\d+\}:dring:first .*:dq:.*:d:/,
  send: /\{k\d+\}:s:/,
};
/** Acknowledges what the step before has done: nobody waits for it. */
const BESIDE = /:retries:\w+ \S+:ages:/;

/** Its name and arguments, its places among all sendings and answers, and UTC milliseconds. */
export type Command = {
  readonly text: string;
  sent: number;
  answered: number;
  readonly sentMs: number;
};
type Traced = { readonly args: readonly string[]; command?: Command };

function tellCommands(): void {
  let [commands, at]: [Command[], number] = [[], 0];
  tracingChannel<object, Traced>("node-redis:command").subscribe({
    start(traced: Traced) {
      const sentMs = performance.timeOrigin + performance.now();
      at += 1;
      traced.command = { text: traced.args.join(" "), sent: at, answered: Infinity, sentMs };
      commands.push(traced.command);
    },
    asyncStart({ command }: Traced) {
      at += 1;
      if (command) command.answered = at;
    },
  } as never);
  process.on("message", () => process.send?.(commands.splice(0)));
}

/** @returns of each step its waits and its commands */
export function countSteps(commands: readonly Command[]): readonly (readonly number[])[] {
  let from = 0;
  return Object.entries(STEPS).map(([step, end]) => {
    const ends = commands.filter(({ text, sent }) => sent > from && end.test(text));
    let last = step === "send" ? ends.at(-1) : ends[0];
    if (!last) throw new Error(`no command ends ${step}`);
    const { sent: until, answered } = last;
    const own = commands.filter(({ sent }) => sent > from && sent <= until);
    const waited = own
      .filter(({ text }) => !BESIDE.test(text))
      .sort((one, two) => one.answered - two.answered);
    let waits = 0;
    for (; last; last = waited.findLast((one) => one.answered < (last?.sent ?? 0))) {
      if (!last.text.startsWith("PUBLISH")) waits += 1;
    }
    from = answered;
    return [waits, own.length];
  });
}

export const STEP_NAMES = Object.keys(STEPS);

export const TRACE_FILE = import.meta.path;

if (Bun.main.endsWith("cli/main.ts")) tellCommands();
