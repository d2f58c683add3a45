/** What `bench/cluster-costs.ts` measures and `bench/scale-plan.ts` computes with: `bench/results/scale.json`. */

export const COSTS_FILE = "bench/results/scale.json";

/** Events of a message. */
export const MESSAGE_SIZES = [1, 20, 500] as const;
export type MessageSize = (typeof MESSAGE_SIZES)[number];

/**
 * How far a second measurement may be from the first. CPU time does not contain the time of others, but caches and the two threads of a
 * core are shared with them.
 */
export const CHECK_FACTOR = 2;

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
  /** One line that was measured once more on a cluster: microseconds of all processes and nodes an event. */
  readonly check: {
    readonly messageSize: MessageSize;
    readonly predicted: number;
    readonly measured: number;
  };
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

export function totalOf(costs: SizeCosts): number {
  return Object.values(costs).reduce((sum, us) => sum + us, 0);
}
