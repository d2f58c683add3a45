/** `GET /v1/openapi.json` and `GET /v1/docs`: the reference, made once at the start. */
import { publicRoutes } from "#core/http/access.ts";
import { docsPage } from "#ingest/reference/docs-page.ts";
import { openapi } from "#ingest/reference/openapi.ts";

const CACHE = { "cache-control": "public, max-age=300" };

export function referenceRoutes() {
  const description = JSON.stringify(openapi());
  const page = docsPage();
  return publicRoutes("reference")
    .get("/v1/openapi.json", () => {
      return new Response(description, {
        headers: { "content-type": "application/json", ...CACHE },
      });
    })
    .get("/v1/docs", () => {
      const headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        ...CACHE,
      };
      return new Response(page, { headers });
    });
}
