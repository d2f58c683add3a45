/**
 * One command of a program: its arguments, its `--help`, its exit status and its result, as text or as JSON. Exit status 0 = done,
 * 1 = refused, or something was found (the command says which), 2 = wrong usage, before anything was read or changed.
 * Only what Node.js has: the file that couriers run (`ingest/doctor/main.ts`) reads its arguments here too.
 */
import { parseArgs } from "node:util";

interface Option {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  /** Placeholder of the value in the help, such as `FILE`. */
  readonly value?: string;
  /** Further lines are set below the first. Null = an earlier name, which the help leaves out. */
  readonly about: string | null;
}
type Environment = Readonly<Record<string, string | undefined>>;
type Options = Readonly<Record<string, Option>>;

type Values<O extends Options> = {
  readonly [K in keyof O]?: O[K]["type"] extends "boolean"
    ? boolean
    : O[K] extends { readonly multiple: true }
      ? string[]
      : string;
};

interface Given<O extends Options> extends Output {
  readonly values: Values<O>;
  readonly operands: readonly string[];
  readonly env: Environment;
}

interface Output {
  /** Progress: on standard output, or on standard error where that has JSON. */
  readonly say: (line: string) => void;
  /** What the command was asked for: the text, or the value with `--json`. */
  readonly report: (value: unknown, text: string) => void;
}

/** How a command is called, and what its help says. */
interface Usage {
  /** As it is called, such as `waybill backup`. */
  readonly name: string;
  /** What follows the name, a line for each form. */
  readonly forms: readonly string[];
  /** What it does and prints. */
  readonly about: string;
  readonly options: Options;
}

export interface Command<O extends Options> extends Usage {
  readonly options: O;
  /** Fewest and most arguments that are no option; none by default. */
  readonly operands?: readonly [least: number, most: number];
  /** @returns the exit status; nothing = 0 @throws {WrongUsage} */
  readonly run: (given: Given<O>) => Promise<number> | Promise<void>;
}

/** Takes the arguments behind its name; answers the exit status. */
export type Program = (args: readonly string[], env: Environment) => Promise<number>;

export class WrongUsage extends Error {}

/** @throws {WrongUsage} where the text is no whole number from `least` */
export function numberOption(name: string, text: string, least = 1): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least) return value;
  throw new WrongUsage(`--${name} is a number from ${least}: ${text}`);
}

export const JSON_OPTION = { type: "boolean", about: "prints the result as JSON" } as const;
const HELP_OPTION = { type: "boolean", short: "h", about: "prints this text" } as const;

export function command<const O extends Options>(spec: Command<O>): Program {
  return async (args, env) => {
    try {
      const { values, positionals } = read(spec, args);
      if (values["help"] === true) {
        process.stdout.write(helpOf(spec));
        return 0;
      }
      const [least, most] = spec.operands ?? [0, 0];
      if (positionals.length < least) throw new WrongUsage("An argument is missing.");
      if (positionals.length > most) {
        throw new WrongUsage(`Unexpected argument '${positionals[most]}'.`);
      }
      const given = { values: values as Values<O>, operands: positionals, env };
      return (await spec.run({ ...given, ...outputOf(values["json"] === true) })) ?? 0;
    } catch (error) {
      if (!(error instanceof WrongUsage)) throw error;
      process.stderr.write(`${error.message}\n${usageOf(spec)}`);
      return 2;
    }
  };
}

/** @throws {WrongUsage} */
function read(spec: Usage, args: readonly string[]) {
  const options: Options & { help: typeof HELP_OPTION } = { ...spec.options, help: HELP_OPTION };
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // The sentence after the first is advice on arguments that begin with a hyphen.
    throw new WrongUsage(`${(error as Error).message.split(/\.(?: |$)/)[0]}.`);
  }
}

function outputOf(isJson: boolean): Output {
  const say = (line: string) => {
    (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  };
  const report = (value: unknown, text: string) => {
    process.stdout.write(`${isJson ? JSON.stringify(value, null, 2) : text}\n`);
  };
  return { say, report };
}

function usageOf({ name, forms }: Usage): string {
  return forms
    .map((form, at) => `${at === 0 ? "usage:" : "      "} ${`${name} ${form}`.trim()}\n`)
    .join("");
}

function helpOf(spec: Usage): string {
  const rows = Object.entries(spec.options).flatMap(([name, { value, about }]) =>
    about === null ? [] : [[`--${name}${value ? ` ${value}` : ""}`, about] as const],
  );
  const all = [...rows, ["-h, --help", HELP_OPTION.about] as const];
  return `${usageOf(spec)}\n${spec.about}\n\n${inColumns(all)}`;
}

/** Names and what they mean, for a help text. */
export function inColumns(rows: readonly (readonly [name: string, about: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, about]) => {
    const indented = about.replaceAll("\n", `\n${" ".repeat(width + 4)}`);
    return `  ${name.padEnd(width)}  ${indented}\n`;
  });
  return lines.join("");
}
