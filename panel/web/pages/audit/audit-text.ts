/** A change as a person says it: what was done, and to what, from the call that did it. */
import type { Messages } from "#panel/web/i18n/en.ts";

const FIRST_PART = 1;

/**
 * @param action method and route, such as `PUT /couriers/:code/catalogue/:statusCode`
 * @param target the path of the call, such as `/couriers/GLS_ITA/catalogue/NEW`
 */
export function auditText(
  { verbs, words }: Messages["audit"],
  action: string,
  target: string,
): { readonly done: string; readonly what: string } {
  const [method = "", route = ""] = action.split(" ");
  const known = new Map<string, string>(Object.entries(words));
  const values = target.split("/");
  const parts: string[] = [];
  for (const [at, name] of route.split("/").entries()) {
    if (at < FIRST_PART) continue;
    const before = parts.at(-1);
    if (name.startsWith(":") && before !== undefined) {
      parts[parts.length - 1] = `${before} ${values[at] ?? ""}`;
    } else {
      parts.push(known.get(name) ?? name);
    }
  }
  const done = new Map<string, string>(Object.entries(verbs)).get(method) ?? method;
  return { done, what: parts.join(" › ") };
}
