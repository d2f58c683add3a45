import { ApiProblem, type Violation } from "#panel/web/api/call.ts";
import { wordsNow } from "#panel/web/i18n/text.tsx";

/** What the server says is wrong with a field, or with an item of its list, to be shown where it was typed. */
export function faultOf(error: unknown, path: string): string | undefined {
  if (!(error instanceof ApiProblem)) return undefined;
  const isHere = (at: string) => at === path || at.startsWith(`${path}[`);
  const found = error.violations.find((one) => isHere(one.path));
  return found && faultText(found);
}

/** In the visitor's language. The server's own words say more than the code, and are English. */
export function faultText({ code, message }: Violation): string {
  const { isServersLanguage, faults } = wordsNow();
  const known: Readonly<Record<string, string>> = faults;
  return isServersLanguage ? message : (known[code] ?? message);
}
