/** The shape of a body: names and types of its members, and none of their values, which may be personal data. */
import { limit } from "#core/platform/schema/limit.ts";

const DEPTH = 6;
const MEMBERS = limit(
  40,
  "members of an object in the shape of a refused call's body",
  "not shown",
);
/** Names of ours have this form; anything else may be a value. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/;

/** @returns null if there is no body */
export function bodyShape(value: unknown, depth = DEPTH): unknown {
  if (value === undefined || value === null) return value === null ? "null" : null;
  if (typeof value !== "object") return typeof value;
  if (depth === 0) return "...";
  if (Array.isArray(value)) {
    if (value.length === 0) return [];
    const rest = value.length > 1 ? [`${value.length - 1} more`] : [];
    return [bodyShape(value[0], depth - 1), ...rest];
  }
  const members = Object.entries(value).filter(([name]) => NAME.test(name));
  return Object.fromEntries(
    members.slice(0, MEMBERS).map(([name, own]) => [name, bodyShape(own, depth - 1)]),
  );
}
