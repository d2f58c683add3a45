/** Where a text stops being JSON, for whoever wrote it: `JSON.parse` does not say. */
import { limit } from "#core/platform/schema/limit.ts";

/** About 10 ms. */
const LOOKED_AT_BYTES = limit(
  256 * 1024,
  "bytes of a body in which the place of a syntax error is looked for",
  "the answer says that it comes later",
);

const TOKEN =
  /[ \t\r\n]*(?:("(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)|([{}[\],:]))/y;
const BLANKS = /[ \t\r\n]*/y;

type Expected = "value" | "value or end" | "key" | "key or end" | "colon" | "comma or end";

/** Such as ` It stops being JSON at line 3, column 14.`; empty if it is JSON after all. */
export function placeOfFault(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes.subarray(0, LOOKED_AT_BYTES));
  const at = faultAt(text);
  if (at === null) return "";
  if (at >= text.length && bytes.length > LOOKED_AT_BYTES) {
    return ` It stops being JSON after the first ${LOOKED_AT_BYTES} bytes.`;
  }
  if (at >= text.length) return " It ends too early.";
  const before = text.slice(0, at).split("\n");
  const column = (before.at(-1) ?? "").length + 1;
  return ` It stops being JSON at line ${before.length}, column ${column}.`;
}

/** @returns null for JSON; the length of the text if it ends too early */
function faultAt(text: string): number | null {
  const open: string[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    BLANKS.lastIndex = at;
    BLANKS.exec(text);
    const start = BLANKS.lastIndex;
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (!token) {
      const isWhole = start === text.length && open.length === 0 && expected === "comma or end";
      return isWhole ? null : start;
    }
    const next = afterToken(expected, token, open);
    if (next === null) return start;
    expected = next;
    at = TOKEN.lastIndex;
  }
}

/** @returns null for a token that must not stand there */
function afterToken(expected: Expected, token: RegExpExecArray, open: string[]): Expected | null {
  const [, text, , mark] = token;
  const isKey = expected === "key" || expected === "key or end";
  if (isKey && text !== undefined) return "colon";
  if (expected === "colon") return mark === ":" ? "value" : null;
  if (mark === "}" || mark === "]") {
    const isEnd = expected.endsWith("or end") && open.pop() === (mark === "}" ? "{" : "[");
    return isEnd && (expected !== "key or end" || mark === "}") ? "comma or end" : null;
  }
  if (expected === "comma or end") {
    if (mark !== "," || open.length === 0) return null;
    return open.at(-1) === "{" ? "key" : "value";
  }
  if (isKey || mark === "," || mark === ":") return null;
  if (mark === undefined) return "comma or end";
  open.push(mark);
  return mark === "{" ? "key or end" : "value or end";
}
