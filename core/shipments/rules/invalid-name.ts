/** The message about a name that a registry must have: it names the value, the allowed ones and the nearest. */
import { limit } from "#core/platform/schema/limit.ts";
import { nearest } from "#core/platform/schema/nearest.ts";
import { shortened } from "#core/platform/schema/rejected-value.ts";

const NAMES_LISTED = limit(
  20,
  "allowed names that an error of an item lists",
  "the rest is not listed; `GET /v2/channel` has all",
);

/**
 * @param problem with `{}` where the value stands
 * @param allowed names to use
 * @param others names that are understood too, with the one to use for each
 */
export function invalidName(
  problem: string,
  value: string,
  allowed: Iterable<string>,
  others: ReadonlyMap<string, string> = new Map(),
): string {
  const names = [...allowed];
  const near = nearest(value, [...names, ...others.keys()]);
  const hint = near === null ? "" : ` Did you mean ${others.get(near) ?? near}?`;
  const more = names.length > NAMES_LISTED ? ", …" : "";
  const listed = names.slice(0, NAMES_LISTED).join(", ");
  const list = listed === "" ? "None is allowed." : `Allowed: ${listed}${more}.`;
  return `${notAllowed(problem, value)}${hint} ${list}`;
}

/** The value alone. */
export function notAllowed(problem: string, value: string): string {
  return problem.replace("{}", () => JSON.stringify(shortened(value)));
}
