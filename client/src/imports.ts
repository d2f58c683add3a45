/** An import and its job, as one. */

import type { Api } from "./api.ts";
import type { paths } from "./api-types.ts";
import { pause } from "./pause.ts";
import { unwrap } from "./waybill-error.ts";

export type ImportRequest = NonNullable<
  paths["/v2/shipments/import"]["post"]["requestBody"]
>["content"]["application/json"];
export type ImportJob = Extract<
  paths["/v2/jobs/{jobId}"]["get"]["responses"][200]["content"]["application/json"],
  { readonly type: "shipments_import" }
>;

const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 10_000;

/** Imports and waits until the job has ended. The signal ends the wait, not the job. */
export function runImport(api: Api) {
  return async (body: ImportRequest, signal?: AbortSignal): Promise<ImportJob> => {
    const options = signal === undefined ? {} : { signal };
    const { jobId } = unwrap(await api.POST("/v2/shipments/import", { body, ...options }));
    const params = { path: { jobId } };
    for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_POLL_MS)) {
      await pause(waitMs, signal);
      const job = unwrap(await api.GET("/v2/jobs/{jobId}", { params, ...options }));
      if (job.type !== "shipments_import") throw new Error(`job ${jobId} is no import`);
      if (job.status !== "pending" && job.status !== "processing") return job;
    }
  };
}
