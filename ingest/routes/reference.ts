/** What couriers read: description, reference page, guide, signature vectors and the doctor. Made once. */
import { publicRoutes } from "#core/platform/http/access.ts";
import { PUBLIC_CACHE, pageResponse, searched } from "#core/platform/http/reference-page.ts";
import { UNCOUNTED_HEADERS } from "#ingest/authenticate.ts";
import { docsPage } from "#ingest/reference/docs-page.ts";
import { doctorFile } from "#ingest/reference/doctor-file.ts";
import { guide, signatureVectors } from "#ingest/reference/guide.ts";

export function referenceRoutes() {
  const page = docsPage();
  const guideText = guide();
  const vectors = signatureVectors();
  const doctor = doctorFile();
  return publicRoutes("reference")
    .onAfterHandle(({ responseValue }) => {
      if (!(responseValue instanceof Response)) return;
      for (const [name, value] of Object.entries(UNCOUNTED_HEADERS)) {
        responseValue.headers.set(name, value);
      }
    })
    .get("/v1/docs", ({ request }) => pageResponse(searched(page, request)))
    .get("/v1/guide", () => fileResponse(guideText, "text/plain; charset=utf-8"))
    .get("/v1/vectors.json", () => fileResponse(vectors, "application/json"))
    .get("/v1/doctor.mjs", async () => {
      return fileResponse(await doctor(), "text/javascript; charset=utf-8");
    });
}

function fileResponse(text: string, type: string): Response {
  const headers = { "content-type": type, "x-content-type-options": "nosniff", ...PUBLIC_CACHE };
  return new Response(text, { headers });
}
