/** An import and its job, as one. */

import type { Api } from "./api.ts";
import type { ImportJob, ShipmentsImport } from "./generated/types.gen.ts";
import { pause } from "./pause.ts";

const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 10_000;

/** Imports and waits until the job has ended. The signal ends the wait, not the job. */
export function runImport(api: Api) {
  return async (body: ShipmentsImport, signal?: AbortSignal): Promise<ImportJob> => {
    const options = signal === undefined ? {} : { signal };
    const { jobId } = await api.importShipments({ body, ...options });
    for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_POLL_MS)) {
      await pause(waitMs, signal);
      const job = await api.readJob({ path: { jobId }, ...options });
      if (job.type !== "shipments_import") throw new Error(`job ${jobId} is no import`);
      if (job.status !== "pending" && job.status !== "processing") return job;
    }
  };
}
