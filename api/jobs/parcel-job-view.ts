/** A creation of parcels as a job (document 1, "Job"): it is done as soon as it is stored. */
import { type Static, Type } from "@sinclair/typebox";
import type { ParcelJob } from "#core/merchants/store/jobs/parcel-jobs.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import { ImportSummary, importSummary } from "#core/shipments/rules/import-result.ts";

export const ParcelJobView = Type.Object({
  jobId: Type.String(),
  type: Type.Literal("parcels_create"),
  status: Type.Literal("completed"),
  totalItems: Type.Integer(),
  processedItems: Type.Integer(),
  failedItems: Type.Integer(),
  result: Type.Object({
    summary: ImportSummary,
    hashes: Type.Array(Type.String(), { description: "of the parcels, in the order given" }),
  }),
  error: Type.Null(),
  createdAt: Type.String({ description: "ISO 8601" }),
  completedAt: Type.String({ description: "ISO 8601" }),
  callback: Type.Null(),
});

export function parcelJobView(job: ParcelJob): Static<typeof ParcelJobView> {
  const { jobId, hashes, createdAtMs } = job;
  const count = hashes.length;
  return {
    jobId,
    type: "parcels_create",
    status: "completed",
    totalItems: count,
    processedItems: count,
    failedItems: 0,
    result: {
      summary: importSummary(count, count),
      hashes: [...hashes],
    },
    error: null,
    createdAt: romeIso(createdAtMs),
    completedAt: romeIso(createdAtMs),
    callback: null,
  };
}
