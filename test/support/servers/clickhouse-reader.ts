/** The user of `analytics/sql/read-only-user.sql` on a server that a test has started, in the database `default`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import type { ServerUser } from "./clickhouse-http.ts";

const FILE = join(import.meta.dir, "..", "..", "..", "analytics", "sql", "read-only-user.sql");
export const READER_PASSWORD = "reader's & own:1";

export const READER_STATEMENTS: readonly string[] = readFileSync(FILE, "utf8")
  .replaceAll(/^--.*$/gm, "")
  .replaceAll("waybill.", "default.")
  .split(";")
  .map((one) => one.trim())
  .filter((one) => one !== "");

/** The embedded engine has no users: the settings of the profile are forced upon a name and a password. */
export function readerUser(): ServerUser {
  const profile = READER_STATEMENTS.find((one) => one.startsWith("CREATE SETTINGS PROFILE")) ?? "";
  const settings = [...profile.matchAll(/(\w+) = '?(\w+)/g)].map(([, name = "", value = ""]) => [
    name,
    value,
  ]);
  return {
    name: "waybill_reader",
    password: READER_PASSWORD,
    settings: Object.fromEntries(settings),
    isGrantedTablesOnly: true,
  };
}

/** On a server that has users. */
export async function createReader(admin: ClickHouseClient): Promise<void> {
  for (const one of READER_STATEMENTS) {
    const query = one.replace(/HOST IP [^\n]+/, "HOST ANY");
    await admin.command({ query, query_params: { password: READER_PASSWORD } });
  }
}

/** The address of a server as this user. */
export function asReader(address: string): string {
  const url = new URL(address);
  [url.username, url.password] = ["waybill_reader", encodeURIComponent(READER_PASSWORD)];
  return String(url);
}
