/** `npm run tool -- dbt-sources` writes deploy/dbt/sources.yml: the tables and views for dbt, with their comments. */
import { command } from "#core/platform/process/command-line.ts";
import { dbtSources, SOURCES_PAGE } from "./dbt-sources.ts";

export const tool = command({
  name: "npm run tool -- dbt-sources",
  forms: [""],
  about: `Writes ${SOURCES_PAGE}, the tables and views of the analytics as sources of dbt.`,
  options: {},
  run: async () => void (await Bun.write(SOURCES_PAGE, dbtSources())),
});
