/** `GET /panel/errors` and `/panel/errors.json`: what every error code of the panel's HTTP API means. */

import { errorRoutes } from "#core/platform/http/errors-page.ts";
import { FAULT_CODES } from "#core/platform/schema/fault.ts";

export const operatorErrors = () =>
  errorRoutes({
    api: "operator",
    title: "Error codes of the control panel's API",
    shapes:
      "An error is a problem document (RFC 7807): {type, title, status, code, detail, requestId}, with violations[] where a body or a query is invalid.",
    lists: [{ title: "Codes of violations[]", name: "violations", codes: FAULT_CODES }],
    links: {},
  });
