/** Includes for scripts that share code or are long: a line `-- part: <name>` is replaced by the text of that part. */
import { type Script, script } from "./client.ts";
import companyClock from "./scripts/parts/company-clock.lua" with { type: "text" };
import rowLog from "./scripts/parts/row-log.lua" with { type: "text" };
import unmappedCodes from "./scripts/parts/unmapped-codes.lua" with { type: "text" };

const PARTS: Readonly<Record<string, string>> = {
  "company-clock": companyClock,
  "row-log": rowLog,
  "unmapped-codes": unmappedCodes,
};

export function scriptOfParts(source: string): Script {
  return script(
    source.replace(/^-- part: (.+)$/gm, (_, name: string) => {
      const part = PARTS[name];
      if (part === undefined) throw new Error(`no part ${name}`);
      return part;
    }),
  );
}
