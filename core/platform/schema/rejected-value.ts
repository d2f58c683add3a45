/** The value that a fault is about, as far as it may be repeated to whoever sent it. */
import { limit } from "./limit.ts";

/** Longest text shown, in code points; the rest is cut off. */
const VALUE_LENGTH = limit(100, "characters of a rejected value in a violation", "cut off");
/** Members whose values are secrets, or addresses that may carry one. */
const SECRET = /key|secret|token|passw|pwd|pass$|credential|auth|url$/i;

/**
 * @param path dotted, as in a fault
 * @returns undefined if there is none, or it is a secret, a list or an object, the request itself, or a number that JSON
 *   cannot say, such as 1e400
 */
export function rejectedValue(request: unknown, path: string): unknown {
  const steps = path.match(/[^.[\]]+/g) ?? [];
  if (steps.length === 0 || steps.some((step) => SECRET.test(step))) return undefined;
  let value = request;
  for (const step of steps) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[step];
  }
  if (typeof value === "string") return shortened(value.toWellFormed());
  return Number.isFinite(value) || typeof value === "boolean" ? value : undefined;
}

/** At most `VALUE_LENGTH` code points of it. */
export function shortened(text: string): string {
  // A code point has at most two units.
  const points = [...text.slice(0, 2 * VALUE_LENGTH + 2)];
  return points.length > VALUE_LENGTH ? `${points.slice(0, VALUE_LENGTH).join("")}…` : text;
}
