/** What a deliverer may have under way (the table in `deliver.ts`). */
import { START_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import { mostSilent } from "./silent-endpoints.ts";

export interface DeliverLimits {
  /** Slots; three times as many are under way without one, and half as many leased ahead of one. */
  readonly inFlight: number;
  readonly slowMs: number;
  /** Concurrency that an endpoint begins with. */
  readonly startConcurrency: number;
  readonly inFlightPerFailingEndpoint: number;
  /** Under way to silent endpoints: each is a socket and some 50 KB. */
  readonly silentInFlight: number;
  readonly silentInFlightPerEndpoint: number;
  readonly leaseMs: number;
  /** Longer than the client takes to reconnect, 2.2 s, and than a result waits for its next attempt. */
  readonly recoveryMs: number;
}

export const LIMITS: DeliverLimits = {
  inFlight: 400,
  slowMs: 1_000,
  startConcurrency: START_CONCURRENCY,
  inFlightPerFailingEndpoint: 2,
  silentInFlight: mostSilent(openFilesLimit()),
  silentInFlightPerEndpoint: 1_000,
  leaseMs: 6_000,
  recoveryMs: 3_000,
};

/** Null if the system does not report it. */
function openFilesLimit(): number | null {
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } };
  };
  const soft = Number(report.userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? null : soft;
}
