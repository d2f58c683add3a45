/** The statements of the schema for a cluster: every replica has the tables and their rows, every node the views. */

/**
 * Replicas of a table are those that have the same path. It has no `{uuid}`, which differs where a replica is made again, and no
 * `{shard}`: every server of the cluster has all rows.
 */
export const KEEPER_PATH = "/clickhouse/tables/{database}/{table}";
const REPLICA = "{replica}";

/** @param cluster its name in `system.clusters`; null = one server */
export function onCluster(sql: string, cluster: string | null): string {
  if (cluster === null) return sql;
  return sql
    .replace(/^((?:CREATE|ALTER)(?: [A-Z]+)+ [a-z]\w*)/m, `$1 ON CLUSTER '${cluster}'`)
    .replace(
      /^ENGINE = (Replacing)?MergeTree(?:\((.*)\))?/m,
      (_, kind = "", own = "") =>
        `ENGINE = Replicated${kind}MergeTree('${KEEPER_PATH}', '${REPLICA}'${own && `, ${own}`})`,
    );
}

/** A table as some server of the cluster has it. */
export interface KnownTable {
  readonly name: string;
  /** What would make it, as ClickHouse writes it. */
  readonly statement: string;
  /** In Keeper. */
  readonly path: string;
}

/**
 * Makes a table that others have on the servers that lack it. A replica joins the others only by their path, also one that an earlier
 * version chose, and only with all columns, indices and the TTL that the table has by now.
 * @returns null if it is not replicated
 */
export function joining({ name, statement, path }: KnownTable, cluster: string): string | null {
  const joined = statement
    .replace(/^CREATE TABLE \S+/, `CREATE TABLE IF NOT EXISTS ${name} ON CLUSTER '${cluster}'`)
    .replace(/ ENGINE = (Replicated\w*)\('[^']*', '[^']*'/, ` ENGINE = $1('${path}', '${REPLICA}'`);
  return / ENGINE = Replicated/.test(joined) && path !== "" ? joined : null;
}
