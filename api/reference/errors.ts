/** `GET /v2/errors`, for people, and `GET /v2/errors.json`, for programs: what every error code means. */
import { FAULT_CODES } from "#core/domain/schema/fault.ts";
import { publicRoutes } from "#core/http/access.ts";
import {
  escapeHtml,
  PUBLIC_CACHE,
  pageResponse,
  referencePage,
  table,
} from "#core/http/reference-page.ts";
import { ERROR_CODES, ITEM_CODES } from "./error-codes.ts";

const PATH = "/v2/errors";
const LISTED = new Set(ERROR_CODES.map(({ code }) => code));

/** Where a code is explained; null for one that is none of the merchant API's. */
export function explanationOf(code: string): string | null {
  return LISTED.has(code) ? `${PATH}#${code}` : null;
}

export function errorsRoute() {
  const page = errorsPage();
  const list = JSON.stringify({
    errors: ERROR_CODES,
    violations: listOf(FAULT_CODES),
    items: listOf(ITEM_CODES),
  });
  return publicRoutes("errors")
    .get(PATH, () => pageResponse(page))
    .get(`${PATH}.json`, () => {
      const headers = { "content-type": "application/json", ...PUBLIC_CACHE };
      return new Response(list, { headers });
    });
}

function listOf(codes: Readonly<Record<string, string>>) {
  return Object.entries(codes).map(([code, meaning]) => ({ code, meaning }));
}

function errorsPage(): string {
  return referencePage(
    "Error codes of the merchant API",
    `<p>Codes are stable; messages may change. <a href="${PATH}.json">The same as JSON</a>,
<a href="/v2/openapi.json">OpenAPI description</a></p>
<p>${escapeHtml(SHAPES)}</p>
<h2 id="errors">Errors</h2>
${table(
  ["Code", "Status", "Meaning", "What to do"],
  ERROR_CODES.map(({ status, code, meaning, remedy }) => ({
    id: code,
    cells: [code, String(status), meaning, remedy],
  })),
)}
<h2 id="violations">Codes of violations[]</h2>
${meanings(FAULT_CODES)}
<h2 id="items">Codes of the items of a creation or an import</h2>
${meanings(ITEM_CODES, "item-")}`,
  );
}

const SHAPES =
  "An error is {status, code, message}. Validation failures (422) and errors of labels are problem documents (RFC 7807): {type, title, status, code, detail}, with violations[] for validation. The header X-Error-Message repeats the text in ASCII, and the header Link leads to this page.";

/** @param prefix of the ids of the rows: some codes of items are codes of errors too */
function meanings(codes: Readonly<Record<string, string>>, prefix = ""): string {
  const rows = Object.entries(codes).map(([code, meaning]) => ({
    id: `${prefix}${code}`,
    cells: [code, meaning],
  }));
  return table(["Code", "Meaning"], rows);
}
