/**
 * Texts of a fixed length as texts: in a Parquet file they would be bytes, which pandas and DuckDB do not compare with a text. Asked
 * of the statement, since nobody may change a setting of a read-only user.
 */
import type { ClickHouseClient } from "@clickhouse/client";

/** @param select one statement @returns the same columns and rows */
export async function withTexts(
  client: ClickHouseClient,
  select: string,
  params: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const answer = await client.query({
    query: `DESCRIBE TABLE (\n${select}\n)`,
    query_params: params,
    format: "JSONEachRow",
  });
  const columns = await answer.json<{ name: string; type: string }>();
  const texts = columns.flatMap(({ name, type }) => {
    if (!FIXED_TEXT.test(type)) return [];
    const quoted = `\`${name.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;
    return [`toString(${quoted}) AS ${quoted}`];
  });
  return texts.length === 0
    ? select
    : `SELECT * REPLACE (${texts.join(", ")}) FROM (\n${select}\n)`;
}

const FIXED_TEXT = /^(LowCardinality\(|Nullable\()*FixedString\(\d+\)\)*$/;
