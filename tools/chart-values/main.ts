/** Prints the table of the chart's values that docs/operations/deploy.md has. */
import { valuesTable } from "./values-table.ts";

process.stdout.write(await valuesTable());
