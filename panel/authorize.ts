/** Operators: the bearer token `PANEL_TOKEN`. */
import { timingSafeEqual } from "node:crypto";
import { Problem } from "#core/problem.ts";
import { hashToken } from "#core/secrets.ts";

/** @throws {Problem} 401 */
export function authorizeOperator(authorization: string | null, panelToken: string): void {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? "";
  const same = timingSafeEqual(Buffer.from(hashToken(given)), Buffer.from(hashToken(panelToken)));
  if (same) return;
  throw new Problem(401, "UNKNOWN_OPERATOR", "The bearer token is missing or wrong.", {
    headers: { "www-authenticate": "Bearer" },
  });
}
