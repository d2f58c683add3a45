/** `POST /v2/shipments/import` (document 1, "Shipments"): up to 5,000 shipments, created by a background job. */
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/error-response.ts";
import { readChecked } from "#api/read-json.ts";
import { SHIPMENTS_PER_IMPORT } from "#core/domain/shipment.ts";
import { faultOfWebhookUrl } from "#core/domain/webhook-url.ts";
import { Problem } from "#core/problem.ts";
import { acceptJob } from "#core/redis/import-jobs.ts";

/** Items are judged one by one in the background. */
export const ImportBody = Type.Object({
  shipments: Type.Array(Type.Unknown(), { minItems: 1, maxItems: SHIPMENTS_PER_IMPORT }),
  webhookUrl: Type.Optional(Type.String({ minLength: 1 })),
});
const checker = TypeCompiler.Compile(ImportBody);

const RETRY_AFTER_SECONDS = "10";

export function importRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return new Elysia().use(authenticated(deps)).post(
    "/v2/shipments/import",
    async ({ request, caller: { channel }, set }) => {
      const { shipments, webhookUrl = null } = await readChecked(request, checker);
      checkUrl(webhookUrl);
      const { companyId, id: channelId } = channel;
      const job = { companyId, channelId, items: shipments, webhookUrl };
      const jobId = await acceptJob(redis, job, live.now());
      if (jobId === null) throw tooManyJobs();
      set.status = 202;
      const statusUrl = `/jobs/${jobId}`;
      return { jobId, status: "processing", statusUrl, totalShipments: shipments.length };
    },
    { scope: "shipments:write", parse: "none" },
  );
}

/** @throws {Problem} 422 */
function checkUrl(webhookUrl: string | null): void {
  const message = webhookUrl === null ? null : faultOfWebhookUrl(webhookUrl, ["https:", "http:"]);
  if (message !== null) {
    throw validationFailed([{ path: "webhookUrl", code: "BAD_FORMAT", message }]);
  }
}

function tooManyJobs(): Problem {
  return new Problem(503, "IMPORT_QUEUE_FULL", "The channel has too many unfinished imports.", {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}
