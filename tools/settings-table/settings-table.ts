/** The table of a channel's settings in docs/operations/settings.md, from their definition. */
import type { TSchema } from "@sinclair/typebox";
import { type Fields, storedAs } from "#core/configuration/rules/entity.ts";
import { CHANNEL_SETTINGS } from "#core/configuration/rules/settings.ts";

export const PAGE = "docs/operations/settings.md";
const HEAD = "| Setting | Value | Default | Meaning |\n|---|---|---|---|\n";

/** The page with the table of these settings in the place of the one that it has. */
export function withSettings(page: string, settings: Fields = CHANNEL_SETTINGS): string {
  const rows = Object.entries(settings).map(([name, schema]) => {
    const { default: value, description = "" } = schema;
    const preset = value === undefined ? "" : `\`${JSON.stringify(value)}\``;
    return `| \`${name}\` | ${textOfValues(schema)} | ${preset} | ${description} |\n`;
  });
  const start = page.indexOf(HEAD);
  if (start === -1) throw new Error(`${PAGE} has no table of settings`);
  const rest = page.slice(start + HEAD.length).replace(/^(\|.*\n)*/, "");
  return page.slice(0, start) + HEAD + rows.join("") + rest;
}

function textOfValues(schema: TSchema): string {
  const choices: string[] = (schema["anyOf"] ?? []).flatMap(({ const: one = [] }: TSchema) => one);
  if (choices.length > 0) return choices.map((one) => `\`${one}\``).join(", ");
  const kind = storedAs(schema);
  return { string: "text", number: "number", boolean: "`true`, `false`", json: "an object" }[kind];
}
