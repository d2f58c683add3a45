/** A search of shipments, as the store is asked (document 1, `GET /v2/shipments`). */

import type { ExactField } from "#core/platform/redis/keys.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import type { SortOrder } from "./index-ranges.ts";

export interface ShipmentQuery {
  readonly companyId: number;
  readonly channelIds: readonly number[];
  readonly trackingNumber: string | null;
  readonly exact: Readonly<Partial<Record<ExactField, string>>>;
  /** Days since 1970, inclusive. */
  readonly shipFrom: number | null;
  readonly shipTo: number | null;
  /** Null = any; else without repetition. */
  readonly statuses: readonly Status[] | null;
  /** Seconds since 1970: statusUpdatedAt at or after it. */
  readonly updatedFrom: number | null;
  /** Seconds since 1970: statusUpdatedAt before or at it, or never. */
  readonly updatedTo?: number;
  /** The highest id. */
  readonly idTo?: number;
  /** By channel, in ascending order: these alone. No other values are asked for beside them. */
  readonly ids?: ReadonlyMap<number, readonly number[]>;
  readonly order: SortOrder;
  readonly offset: number;
  /** At most 1,000. */
  readonly limit: number;
}
