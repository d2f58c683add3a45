import { mkdir } from "node:fs/promises";
import { command } from "#core/platform/process/command-line.ts";
import { buildClientPackages } from "./packages.ts";

export const tool = command({
  name: "npm run tool -- client-packages",
  forms: ["FOLDER"],
  about: "Builds the merchants' packages for npm and Python.",
  options: {},
  operands: [1, 1],
  async run({ operands: [out = ""] }) {
    await mkdir(out, { recursive: true });
    await buildClientPackages(out);
  },
});
