/** What the engine of ClickHouse can compute. */
import type { ClickHouseClient } from "@clickhouse/client";

export interface EngineFunction {
  readonly name: string;
  readonly is_aggregate: number;
  readonly alias_to: string;
  readonly categories: string;
  readonly origin: string;
}

export async function functionsOf(client: ClickHouseClient): Promise<EngineFunction[]> {
  const answer = await client.query({
    query: "SELECT name, is_aggregate, alias_to, categories, origin FROM system.functions",
    format: "JSONEachRow",
  });
  return answer.json<EngineFunction>();
}

/** A short statement that becomes 30,000 functions. */
export function manyFunctions(): string {
  const sums = Array.from({ length: 15 }, (_, at) => `a${at} + a${at} AS a${at + 1}`);
  return `WITH 1 AS a0, ${sums.join(", ")} SELECT a15`;
}
