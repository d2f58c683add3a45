/** The tables and views of the analytics as sources of dbt, with the comments that ClickHouse shows. */
import { COMMENTS } from "#analytics/schema/comments.ts";

export const SOURCES_PAGE = "deploy/dbt/sources.yml";

const HEAD = `# Made by \`npm run tool -- dbt-sources\`. Read the four tables with FINAL: dbt models are the place for it.
version: 2
sources:
  - name: waybill
    description: Analytics of Waybill; docs/analytics.md says what the figures mean.
    database: ""
    schema: "{{ env_var('WAYBILL_DATABASE', 'default') }}"
    tables:
`;

export function dbtSources(): string {
  const tables = Object.entries(COMMENTS).map(([name, { row, columns }]) => {
    const listed = Object.entries(columns).map(
      ([column, words]) =>
        `          - name: ${column}\n            description: ${JSON.stringify(words)}\n`,
    );
    const head = `      - name: ${name}\n        description: ${JSON.stringify(row)}\n        columns:\n`;
    return head + listed.join("");
  });
  return HEAD + tables.join("");
}
