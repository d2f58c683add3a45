import { command } from "#core/platform/process/command-line.ts";
import { limitsPage, PAGE } from "./limits-page.ts";

export const tool = command({
  name: "npm run tool -- limits",
  forms: [""],
  about: `Writes ${PAGE} from the limits in the source.`,
  options: {},
  run: async () => void (await Bun.write(PAGE, await limitsPage())),
});
