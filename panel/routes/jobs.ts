/** `GET /panel/api/jobs`: imports that are under way. */
import { Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/domain/schema/nullable.ts";
import { readOpenJobs } from "#core/redis/merchant/import-jobs.ts";
import type { Runtime } from "#core/runtime.ts";
import { listPageOf, listQuery, pageAfter } from "#panel/list-page.ts";
import { isTheirs } from "#panel/owners.ts";
import { panelRoutes } from "#panel/panel-routes.ts";

const Jobs = Type.Object({
  items: Type.Array(
    Type.Object({
      jobId: Type.String(),
      companyCode: Type.String(),
      channelCode: Type.String(),
      totalItems: Type.Integer(),
      processedItems: Type.Integer(),
      failedItems: Type.Integer({ description: "of those processed" }),
      createdAt: Type.String({ description: "ISO 8601" }),
    }),
    { description: "the oldest first" },
  ),
  nextCursor: text,
});

export function jobsRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "jobs").get(
    "/panel/api/jobs",
    async ({ caller, query }) => {
      const { after, limit } = listPageOf(query);
      const { channels, companies } = await live.refresh();
      const codeOf = (companyId: number) => companies.get(companyId)?.code ?? "";
      const theirs = [...channels.values()].filter(({ companyId }) =>
        isTheirs(caller, { companyCode: codeOf(companyId), courierCode: null }),
      );
      const jobs = await readOpenJobs(redis, theirs, live.now());
      const keyOf = (job: (typeof jobs)[number]) =>
        `${String(job.createdAtMs).padStart(16, "0")} ${job.jobId}`;
      const page = pageAfter(jobs, keyOf, after, limit);
      const items = page.items.map((job) => {
        const { jobId, totalItems, processedItems, failedItems, createdAtMs } = job;
        return {
          ...{ jobId, totalItems, processedItems, failedItems },
          companyCode: codeOf(job.companyId),
          channelCode: channels.get(job.channelId)?.code ?? "",
          createdAt: new Date(createdAtMs).toISOString(),
        };
      });
      return { items, nextCursor: page.nextCursor };
    },
    {
      needs: { can: "jobs:read", of: "caller" },
      query: listQuery,
      response: Jobs,
      detail: { summary: "Imports that are under way, the oldest first" },
    },
  );
}
