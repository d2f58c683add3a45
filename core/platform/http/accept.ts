/** What the header Accept says about JSON (RFC 9110, 12.5.1). */
import { Problem } from "#core/platform/errors/problem.ts";

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";

/** @throws {Problem} 406 */
export function requireJsonAccepted({ headers }: Request): void {
  if (acceptsJson(headers.get("accept"))) return;
  throw new Problem(
    406,
    "NOT_ACCEPTABLE",
    "The answers are JSON, which the header Accept excludes.",
  );
}

/** Of the ranges that include JSON the most precise counts. A header without any readable range excludes nothing. */
export function acceptsJson(accept: string | null): boolean {
  const ranges = (accept ?? "").split(",").flatMap(rangeOf);
  if (ranges.length === 0) return true;
  const qualityOf = (type: string) => ranges.find((range) => range.type === type)?.quality;
  // A caller that names problem documents alone gets no other answer than those where a call has no body.
  const quality =
    qualityOf(JSON_TYPE) ??
    qualityOf(PROBLEM_TYPE) ??
    qualityOf("application/*") ??
    qualityOf("*/*") ??
    0;
  return quality > 0;
}

interface Range {
  readonly type: string;
  readonly quality: number;
}

function rangeOf(text: string): Range[] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  // Some clients of old write a lone asterisk.
  const type = name === "*" ? "*/*" : name;
  if (!/^[^\s/]+\/[^\s/]+$/.test(type)) return [];
  const given = parameters.find((part) => part.startsWith("q="))?.slice(2);
  const quality = given === undefined ? 1 : Number(given);
  return [{ type, quality: Number.isNaN(quality) ? 1 : quality }];
}
