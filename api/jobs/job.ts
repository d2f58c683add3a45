/** `GET /v2/jobs/{jobId}` (document 1, "Jobs"): jobs are private to the channel and kept 30 days. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged, taggedText } from "#api/http/paging.ts";
import {
  type ImportJob,
  importResultText,
  readJob,
} from "#core/merchants/store/jobs/import-jobs.ts";
import { readParcelJob } from "#core/merchants/store/jobs/parcel-jobs.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { inPath, json } from "#core/platform/openapi/operation.ts";
import { jsonObject } from "#core/platform/process/json-text.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { ImportCallbackView, PENDING_CALLBACK } from "#core/shipments/rules/import-callback.ts";
import { ImportResult } from "#core/shipments/rules/import-result.ts";
import { ParcelJobView, parcelJobView } from "./parcel-job-view.ts";

export const JobView = Type.Object({
  jobId: Type.String(),
  type: Type.Literal("shipments_import"),
  status: Type.Union(
    ["pending", "processing", "completed", "failed"].map((name) => Type.Literal(name)),
  ),
  totalItems: Type.Integer(),
  processedItems: Type.Integer(),
  failedItems: Type.Integer(),
  result: Type.Union([ImportResult, Type.Null()]),
  error: text,
  createdAt: Type.String({ description: "ISO 8601" }),
  completedAt: text,
  callback: Type.Union([ImportCallbackView, Type.Null()], {
    description: "what came of the call to webhookUrl; null without one",
  }),
  warnings,
});
type JobView = Static<typeof JobView>;

const JOB_ID = "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11";
const operation = declared({
  access: { scope: "jobs:read" },
  id: "readJob",
  summary: "Read a background job",
  description: "Ask every few seconds until `status` is `completed` or `failed`.",
  parameters: [inPath("jobId", Type.String(), JOB_ID)],
  answers: {
    200: {
      ...json(
        "The job; `result` is null until it has ended.",
        Type.Union([JobView, ParcelJobView]),
        {
          jobId: JOB_ID,
          type: "shipments_import",
          status: "completed",
          totalItems: 2,
          processedItems: 2,
          failedItems: 1,
          result: {
            summary: { totalRequested: 2, totalSuccess: 1, totalFailed: 1 },
            successes: [{ index: 0, id: 4096, trackingNumber: "AB1", trackingUrl: null }],
            errors: [
              {
                index: 1,
                trackingNumber: "AB1",
                errors: [
                  {
                    code: "DUPLICATE_SHIPMENT",
                    message: "The channel has a shipment with this courier and tracking number.",
                    field: "trackingNumber",
                    existingId: 4096,
                  },
                ],
              },
            ],
          },
          error: null,
          createdAt: "2026-11-20T09:00:00.000Z",
          completedAt: "2026-11-20T09:00:02.000Z",
          callback: null,
        },
      ),
      headers: TAG_HEADERS,
    },
    ...NOT_MODIFIED,
  },
  errors: ["JOB_NOT_FOUND"],
});

const ID_FORM = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function jobRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return merchantRoutes(deps).get(
    "/v2/jobs/:jobId",
    async ({ request, params, caller: { channel, configuration } }) => {
      const partition = companyPartition(channel.companyId);
      const jobId = ID_FORM.test(params.jobId) ? params.jobId : "none";
      const job = await readJob(redis, partition, jobId, live.now());
      if (job?.channelId !== channel.id) {
        const parcels = await readParcelJob(redis, channel, jobId);
        if (parcels) return tagged(request, parcelJobView(parcels));
        throw new Problem(404, "JOB_NOT_FOUND", "There is no such job.");
      }
      const view = jobView(job);
      if (job.status === "processing") return tagged(request, { ...view, result: null });
      const result = await importResultText(redis, partition, job, configuration.publicUrl);
      const members = Object.entries(view).map(([name, value]) => [name, JSON.stringify(value)]);
      return taggedText(request, jsonObject({ ...Object.fromEntries(members), result }));
    },
    route(operation),
  );
}

function jobView(job: ImportJob): Omit<JobView, "result"> {
  const { jobId, status, totalItems, processedItems, failedItems, error, warnings } = job;
  return {
    jobId,
    type: "shipments_import",
    status,
    totalItems,
    processedItems,
    failedItems,
    error,
    createdAt: new Date(job.createdAtMs).toISOString(),
    completedAt: job.completedAtMs === null ? null : new Date(job.completedAtMs).toISOString(),
    callback: job.webhookUrl === null ? null : (job.callback ?? PENDING_CALLBACK),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  };
}
