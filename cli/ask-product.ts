/** The panel's HTTP API of the running product, which commands ask: only one process may open the embedded stores. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#core/platform/environment/config.ts";
import { Refused } from "#core/runtime/runtime.ts";

interface Request {
  readonly method: string;
  /** Below `/panel/api`. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal | null;
}

/** @throws {Refused} when the product does not answer, or refuses */
export async function askProduct(
  config: Config,
  { method, path, body, signal = null }: Request,
): Promise<Response> {
  const answer = await fetch(`${config.publicUrl}/panel/api${path}`, {
    method,
    headers: {
      authorization: `Bearer ${await operatorToken(config)}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  }).catch((error: Error) => {
    if (signal?.aborted === true) throw new Refused("Cancelled.");
    throw new Refused(`the product does not answer on ${config.publicUrl}: ${error.message}`);
  });
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as { readonly detail?: string };
  throw new Refused(problem.detail ?? `the product answered ${answer.status}`);
}

/** @throws {Refused} */
async function operatorToken({ panelToken, dataDir }: Config): Promise<string> {
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
