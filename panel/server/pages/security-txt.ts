/** `/.well-known/security.txt` (RFC 9116): who takes reports of weaknesses. */
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";

const PATH = "/.well-known/security.txt";
const DAY_MS = 86_400_000;
/** RFC 9116, 2.5.5: less than a year. */
const VALID_DAYS = 180;

export function securityTxtRoute({ config, live }: Runtime) {
  return publicRoutes("security.txt").get(PATH, () => {
    const { securityContact, publicUrl } = config;
    if (securityContact === null) {
      throw new Problem(404, "NOT_FOUND", "This installation names no contact.");
    }
    const today = Math.floor(live.now() / DAY_MS) * DAY_MS;
    const lines = [
      `Contact: ${new URL(securityContact).href}`,
      `Expires: ${new Date(today + VALID_DAYS * DAY_MS).toISOString()}`,
      "Preferred-Languages: en, it",
      `Canonical: ${publicUrl}${PATH}`,
    ];
    return new Response(`${lines.join("\n")}\n`, {
      headers: { "content-type": "text/plain; charset=utf-8" },
    });
  });
}
