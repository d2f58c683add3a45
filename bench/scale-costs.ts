/** What `bench/cluster-costs.ts` measures and `bench/scale-plan.ts` computes with: `docs/scale.json`. */

export const COSTS_FILE = "docs/scale.json";

/** Events of a message. */
export const MESSAGE_SIZES = [1, 20, 500] as const;
export type MessageSize = (typeof MESSAGE_SIZES)[number];

/** Microseconds of CPU an event. */
export interface SizeCosts {
  readonly ingest: number;
  readonly masterForIngest: number;
  readonly replicaForIngest: number;
  readonly processors: number;
  readonly analytics: number;
  /** For processors and analytics. */
  readonly masterForWork: number;
  readonly replicaForWork: number;
}

export interface ClusterCosts {
  readonly machine: string;
  readonly shipments: number;
  /** Of which the figures are medians. */
  readonly runs: number;
  readonly messages: Readonly<Record<MessageSize, SizeCosts>>;
  /** Microseconds of a `GET /v2/shipments/{id}`. */
  readonly read: { readonly api: number; readonly master: number };
  /** Microseconds of a webhook, beside those of its event. */
  readonly webhook: {
    readonly processors: number;
    readonly analytics: number;
    readonly master: number;
    readonly replica: number;
  };
}
