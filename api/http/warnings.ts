/** Warnings of a request, an extension of document 1: they stand in the answer, and of an import in its job too. */
import { limit } from "#core/platform/schema/limit.ts";
import { WARNINGS_LISTED, type Warning } from "#core/platform/schema/unknown-members.ts";

const noted = new WeakMap<Request, readonly Warning[]>();

export function noteWarnings(request: Request, found: readonly Warning[]): void {
  if (found.length > 0) noted.set(request, found.slice(0, WARNINGS_LISTED));
}

export function warningsOf(request: Request): readonly Warning[] {
  return noted.get(request) ?? [];
}

/** A list has no place for them: its answer has a header instead. */
export const WARNINGS_HEADER = "x-warnings";
const WARNINGS_IN_HEADER = limit(5, "unknown members in the header `X-Warnings`", "not listed");

interface Answered {
  readonly request: Request;
  readonly responseValue?: unknown;
  readonly set: { readonly headers: Record<string, string | number> };
}

/** The answer with the warnings of its request; undefined = as it is. */
export function withWarnings({ request, responseValue: answer, set }: Answered): unknown {
  const found = noted.get(request);
  if (!found) return undefined;
  if (answer?.constructor === Object) return { ...answer, warnings: found };
  if (Array.isArray(answer)) set.headers[WARNINGS_HEADER] = inAscii(found);
  return undefined;
}

/** Header values are Latin-1 at the most. */
function inAscii(found: readonly Warning[]): string {
  const text = JSON.stringify(found.slice(0, WARNINGS_IN_HEADER));
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replaceAll(/[^\x20-\x7e]/g, escaped);
}
