/** The same fields of many hashes of one slot, in one call. */
import { type Redis, run, script } from "./client.ts";
import readFieldsSource from "./read-fields.lua" with { type: "text" };

const readFieldsScript = script(readFieldsSource);

/**
 * @param client the connection that replies in the type of the row's values, `binary(redis)` for buffers
 * @returns a row for each key: its values in the order of the fields, null where one is missing
 */
export function readFields<Row extends readonly unknown[]>(
  redis: Redis,
  keys: readonly string[],
  fields: readonly string[],
  client = redis,
): Promise<Row[]> {
  return run<Row[]>(redis, readFieldsScript, [...keys], [...fields], client);
}
