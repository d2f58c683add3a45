/** Reads a JSON body under a limit and checks it against its compiled schema. */
import type { Static, TSchema } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";
import { Value } from "@sinclair/typebox/value";
import { validationFailed } from "#api/error-response.ts";
import { listFaults } from "#core/domain/fault.ts";
import { readBounded } from "#core/http/read-bounded.ts";
import { Problem } from "#core/problem.ts";

/** 100 shipments with all their parcels and order lines at some 600 bytes a line. */
export const BODY_LIMIT_BYTES = 32 * 1024 * 1024;
/** No schema of ours goes deeper; what lies below is not ours and stays as it is. */
const DEPTH_LIMIT = 8;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** @throws {Problem} 400 missing, no UTF-8 or no JSON; 413 too large */
export async function readJson(request: Request): Promise<unknown> {
  const bytes = await readLimited(request);
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new Problem(400, "MALFORMED_BODY", "The body is missing or is not valid JSON in UTF-8.");
  }
}

/**
 * A null member counts as absent and a member that the schema does not know is left out.
 * @throws {Problem} 400, 413 as `readJson`; 422 with every violation found
 */
export async function readChecked<T extends TSchema>(
  request: Request,
  checker: TypeCheck<T>,
): Promise<Static<T>> {
  const body = withoutNulls(await readJson(request), DEPTH_LIMIT);
  if (!checker.Check(body)) throw validationFailed(listFaults(checker.Errors(body)));
  return Value.Clean(checker.Schema(), body) as Static<T>;
}

function withoutNulls(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null || depth === 0) return value;
  if (Array.isArray(value)) {
    for (const item of value) withoutNulls(item, depth - 1);
    return value;
  }
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    if (members[key] === null) delete members[key];
    else withoutNulls(members[key], depth - 1);
  }
  return value;
}

async function readLimited(request: Request): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (Number(length ?? 0) > BODY_LIMIT_BYTES) throw tooLarge();
  if (length !== null) return new Uint8Array(await request.arrayBuffer());
  const body = await readBounded(request, BODY_LIMIT_BYTES);
  if (body === null) throw tooLarge();
  return body;
}

function tooLarge(): Problem {
  return new Problem(413, "BODY_TOO_LARGE", `At most ${BODY_LIMIT_BYTES} bytes.`);
}
