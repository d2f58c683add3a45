import { envExample } from "#core/platform/environment/variables.ts";
import { command } from "#core/platform/process/command-line.ts";

export const tool = command({
  name: "npm run tool -- env-example",
  forms: [""],
  about: "Writes .env.example from the environment variables of the source.",
  options: {},
  run: async () => void (await Bun.write(".env.example", envExample())),
});
