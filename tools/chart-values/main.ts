import { command } from "#core/platform/process/command-line.ts";
import { valuesTable } from "./values-table.ts";

export const tool = command({
  name: "npm run tool -- chart-values",
  forms: [""],
  about: "Prints the table of the chart's values that docs/operations/deploy.md has.",
  options: {},
  run: async ({ say }) => say((await valuesTable()).trimEnd()),
});
