/** Reads the JSON body of a panel's call, after its caller is known: no route lets the framework read one before. */
import { readBounded } from "#core/http/read-bounded.ts";
import { Problem } from "#core/problem.ts";

/** The largest is a mapping with all its rules. */
const BODY_LIMIT_BYTES = 1024 * 1024;

/**
 * @returns undefined for a request without a body
 * @throws {Problem} 400 no JSON, 413 too large
 */
export async function readJson(request: Request, limitBytes = BODY_LIMIT_BYTES): Promise<unknown> {
  const bytes = await readBounded(request, limitBytes);
  if (bytes === null) throw new Problem(413, "BODY_TOO_LARGE", `At most ${limitBytes} bytes.`);
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Problem(400, "MALFORMED_BODY", "The body is not valid JSON in UTF-8.");
  }
}
