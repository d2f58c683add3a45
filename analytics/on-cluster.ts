/** The statements of the schema for a cluster: every replica has the tables and their rows, every node the views. */

/** @param cluster its name in `system.clusters`; null = one server */
export function onCluster(sql: string, cluster: string | null): string {
  if (cluster === null) return sql;
  return sql
    .replace(/^((?:CREATE|ALTER)(?: [A-Z]+)+ [a-z]\w*)/m, `$1 ON CLUSTER '${cluster}'`)
    .replace(/^ENGINE = (Replacing)?MergeTree/m, "ENGINE = Replicated$1MergeTree");
}
