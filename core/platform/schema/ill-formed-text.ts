/**
 * Texts that are no Unicode: half a surrogate pair, which JSON can write as an escape (`"\ud83d"`) and UTF-8 cannot
 * hold. Typical of a sender that cuts a text in the middle of an emoji.
 */
import { FAULTS_LISTED, type Fault } from "./fault.ts";

/** Every text or key in `value` that is no Unicode, at most `limit`. */
export function illFormedText(value: unknown, path = "", limit = FAULTS_LISTED): Fault[] {
  if (typeof value === "string") return value.isWellFormed() ? [] : [fault(path)];
  if (typeof value !== "object" || value === null) return [];
  const faults: Fault[] = [];
  for (const [key, inner] of Object.entries(value)) {
    const innerPath = Array.isArray(value)
      ? `${path}[${key}]`
      : path === ""
        ? key
        : `${path}.${key}`;
    if (!key.isWellFormed()) faults.push(fault(innerPath.toWellFormed()));
    faults.push(...illFormedText(inner, innerPath.toWellFormed(), limit));
    if (faults.length >= limit) break;
  }
  return faults.slice(0, limit);
}

function fault(path: string): Fault {
  const message = "The text contains half of a surrogate pair, which is not a character.";
  return { path, code: "BAD_FORMAT", message };
}
