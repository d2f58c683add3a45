/** SQL access of the running product, which is asked over HTTP: only one process may open the embedded store. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#core/platform/environment/config.ts";
import { Refused } from "#core/runtime/runtime.ts";

export interface Task {
  readonly query: string;
  readonly format: string;
}

/** @throws {Refused} when the product does not answer, or refuses the statement */
export async function ask(
  config: Config,
  { query, format }: Task,
  signal: AbortSignal | null = null,
): Promise<Response> {
  const url = `${config.publicUrl}/panel/api/sql`;
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await operatorToken(config)}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ query, format }),
    signal,
  }).catch((error: Error) => {
    if (signal?.aborted === true) throw new Refused("Cancelled.");
    throw new Refused(`the product does not answer on ${config.publicUrl}: ${error.message}`);
  });
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as { detail?: string };
  throw new Refused(problem.detail ?? `the product answered ${answer.status}`);
}

/** @throws {Refused} */
export async function operatorToken({ panelToken, dataDir }: Config): Promise<string> {
  if (panelToken !== null) return panelToken;
  const path = join(dataDir, "secrets", "panel-token");
  // Without DATA_DIR the demo has a folder of its own below that of real data.
  const ofDemo = join(dataDir, "demo", "secrets", "panel-token");
  const text = await readFile(path, "utf8")
    .catch(() => readFile(ofDemo, "utf8"))
    .catch(() => null);
  if (text === null) throw new Refused(`no operator token: set PANEL_TOKEN, or DATA_DIR (${path})`);
  return text.trim();
}
