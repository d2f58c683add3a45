import { command } from "#core/platform/process/command-line.ts";
import { PAGE, withSettings } from "./settings-table.ts";

export const tool = command({
  name: "npm run tool -- settings-table",
  forms: [""],
  about: `Writes the table of a channel's settings in ${PAGE}.`,
  options: {},
  run: async () => void (await Bun.write(PAGE, withSettings(await Bun.file(PAGE).text()))),
});
