/** `GET /slips/{token}`: the slip of a transmission, behind an address that cannot be guessed. */

import { slipPdf } from "#core/merchants/pdf/slip-pdf.ts";
import { readSlip } from "#core/merchants/store/labels.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";

export function slipRoute({ redis }: Runtime) {
  return publicRoutes("slips").get("/slips/:token", async ({ params }) => {
    const slip = await readSlip(redis, params.token);
    if (!slip) throw new Problem(404, "NOT_FOUND", "There is no such slip.");
    return new Response(Uint8Array.from(await slipPdf(slip)), {
      headers: {
        "content-type": "application/pdf",
        "content-disposition": 'inline; filename="transmission.pdf"',
        "cache-control": "private, no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex",
      },
    });
  });
}
