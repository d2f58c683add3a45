/** `GET /panel/api/jobs`: imports, those under way and those that have ended. */

import { Type } from "@sinclair/typebox";
import {
  type ImportJob,
  type LatestJob,
  listLatestJobs,
  readFailures,
  readJob,
} from "#core/merchants/store/jobs/import-jobs.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { listPageOf, listQuery, pageAfter } from "#panel/server/http/list-page.ts";
import { notFound } from "#panel/server/not-found.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

/** Past every time in milliseconds that a clock shows; what is left of it sorts the newest first. */
const END_OF_TIME_MS = 1e16;
const FAILURES_SHOWN = limit(
  200,
  "failed items of an import that the panel shows",
  "the merchant API has all of them",
);

const Jobs = Type.Object({
  items: Type.Array(
    Type.Object({
      jobId: Type.String(),
      companyCode: Type.String(),
      channelCode: Type.String(),
      state: Type.Union([
        Type.Literal("processing"),
        Type.Literal("completed"),
        Type.Literal("failed"),
      ]),
      totalItems: Type.Integer(),
      processedItems: Type.Integer(),
      failedItems: Type.Integer({ description: "of those processed" }),
      error: Type.Union([Type.String(), Type.Null()], { description: "why the whole job failed" }),
      createdAt: Type.String({ description: "ISO 8601" }),
      completedAt: Type.Union([Type.String(), Type.Null()], { description: "ISO 8601" }),
    }),
    { description: "the newest first, those of the last 30 days" },
  ),
  nextCursor: text,
});

const JobFailures = Type.Object({
  failedItems: Type.Integer({ description: "all of them" }),
  items: Type.Array(
    Type.Object({
      index: Type.Integer({ description: "position in the request, from 0" }),
      trackingNumber: text,
      errors: Type.Array(
        Type.Object({ code: Type.String(), field: Type.String(), message: Type.String() }),
      ),
    }),
  ),
});

export function jobsRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "jobs").get(
    "/panel/api/jobs",
    async ({ caller, query }) => {
      const asked = listPageOf(query);
      const { channels, companies } = await live.refresh();
      const codeOf = (companyId: number) => companies.get(companyId)?.code ?? "";
      const theirs = new Map(
        [...channels.values()]
          .filter(({ companyId }) =>
            isTheirs(caller, { companyCode: codeOf(companyId), courierCode: null }),
          )
          .map((channel) => [channel.id, channel]),
      );
      const partitions = new Set(
        [...theirs.values()].map(({ companyId }) => companyPartition(companyId)),
      );
      const all = await listLatestJobs(redis, [...partitions]);
      const own = all.filter(({ channelId }) => theirs.has(channelId));
      const page = pageAfter(own, keyOf, asked.after, asked.limit);
      const nowMs = live.now();
      const jobs = await Promise.all(
        page.items.map(({ partition, jobId }) => readJob(redis, partition, jobId, nowMs)),
      );
      const items = jobs
        .filter((job) => job !== null)
        .map((job) => ({
          ...viewOf(job),
          companyCode: codeOf(job.companyId),
          channelCode: theirs.get(job.channelId)?.code ?? "",
        }));
      return { items, nextCursor: page.nextCursor };
    },
    route({
      access: { can: "jobs:read", of: "caller" },
      query: listQuery,
      response: Jobs,
      summary: "Imports, under way and ended, the newest first",
    }),
  );
}

/** Of one import: `GET /panel/api/channels/{channelCode}/jobs/{jobId}/failures`. */
export function jobFailuresRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "job failures").get(
    "/panel/api/channels/:channelCode/jobs/:jobId/failures",
    async ({ params }) => {
      const channel = (await live.refresh()).channelByCode.get(params.channelCode);
      if (!channel) throw notFound("channel");
      const partition = companyPartition(channel.companyId);
      const job = await readJob(redis, partition, params.jobId, live.now());
      if (job?.channelId !== channel.id) {
        throw new Problem(404, "JOB_NOT_FOUND", "There is no such import; they are kept 30 days.");
      }
      const failures = await readFailures(redis, partition, job.jobId, FAILURES_SHOWN);
      return {
        failedItems: job.failedItems,
        items: failures.map(({ index, trackingNumber, errors }) => ({
          index,
          trackingNumber,
          errors: errors.map(({ code, field, message }) => ({ code, field, message })),
        })),
      };
    },
    route({
      access: { can: "jobs:read", of: "channel" },
      response: JobFailures,
      summary: `The first ${FAILURES_SHOWN} items of an import that were not created, and why`,
      errors: ["JOB_NOT_FOUND"],
    }),
  );
}

function keyOf({ createdAtMs, jobId }: LatestJob): string {
  return `${String(END_OF_TIME_MS - createdAtMs).padStart(17, "0")} ${jobId}`;
}

function viewOf(job: ImportJob) {
  const { jobId, status, totalItems, processedItems, failedItems, error } = job;
  return {
    jobId,
    state: status,
    totalItems,
    processedItems,
    failedItems,
    error,
    createdAt: new Date(job.createdAtMs).toISOString(),
    completedAt: job.completedAtMs === null ? null : new Date(job.completedAtMs).toISOString(),
  };
}
