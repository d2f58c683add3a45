/** The one reader of JSON bodies: limits first, then strict JSON. Each role has its own error format. */
import { Problem } from "#core/platform/errors/problem.ts";
import { noteBody } from "#core/platform/http/refused-requests.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { placeOfFault } from "./json-fault-at.ts";
import { ItemTooLarge, parseInTurns, type TurnOptions } from "./parse-in-turns.ts";
import { readBody } from "./read-body.ts";
import { JsonFault, NotJson, type ParsedJson } from "./strict-json.ts";

/**
 * @returns null for a request without a body
 * @throws {Problem} 400 invalid UTF-8, invalid JSON or JSON with tricks; 408, 413
 */
export async function readJsonBody(
  request: Request,
  limitBytes: number,
  options: TurnOptions = {},
): Promise<ParsedJson | null> {
  const bytes = await readBody(request, limitBytes);
  if (bytes.length === 0) return null;
  try {
    const parsed = await parseInTurns(bytes, options);
    noteBody(request, parsed.value);
    return parsed;
  } catch (error) {
    if (error instanceof JsonFault) {
      const place = error instanceof NotJson ? placeOfFault(bytes) : "";
      throw new Problem(400, "MALFORMED_BODY", `${error.message}${place}`);
    }
    if (!(error instanceof ItemTooLarge)) throw error;
    throw new Problem(413, "BODY_TOO_LARGE", `An item has at most ${options.itemBytes} bytes.`);
  }
}

/**
 * @param refuse says it in the port's own words
 * @param faultsLimit of those that it is given
 * @returns undefined for a request without a body
 * @throws {Problem} as `readJsonBody`; 422 text that is not valid Unicode
 */
export async function readJsonValue(
  request: Request,
  limitBytes: number,
  refuse: (faults: readonly Fault[]) => Problem,
  faultsLimit?: number,
): Promise<unknown> {
  const parsed = await readJsonBody(request, limitBytes);
  if (parsed === null) return undefined;
  const { value, hasSurrogateEscapes } = parsed;
  const faults = hasSurrogateEscapes ? illFormedText(value, "", faultsLimit) : [];
  if (faults.length > 0) throw refuse(faults);
  return value;
}
