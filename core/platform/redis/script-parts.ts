/** Includes for scripts that share code or are long: a line `-- part: <name>` is replaced by the text of that part. */
import { type Script, script } from "./client.ts";

/**
 * @param parts texts by name; a part that the script names and that is missing is an error. A part may be a script of its own, whose
 *   first line is left out.
 */
export function scriptOfParts(source: string, parts: Readonly<Record<string, string>>): Script {
  return script(
    source.replace(/^-- part: (.+)$/gm, (_, name: string) => {
      const part = parts[name];
      if (part === undefined) throw new Error(`no part ${name}`);
      return part.replace(/^#!lua\n/, "");
    }),
  );
}
