/**
 * Every change of the store's layout since it was first released, in order. CONTRIBUTING.md says how to add one. The list is
 * empty: the layout is still the first one.
 */
import type { Redis } from "#core/platform/redis/client.ts";

export interface Migration {
  /** The layout that it makes of the one before. */
  readonly version: number;
  /** The oldest layout whose processes may keep running: `version - 1` for a change that they can read and write. */
  readonly oldest: number;
  /**
   * One step of bounded size. It may be repeated, since a process may be killed before its progress is stored, and it may
   * run beside processes of the layout before.
   * @param cursor what the step before returned; "" = the first step
   * @returns null = this was the last step
   */
  readonly step: (redis: Redis, cursor: string) => Promise<string | null>;
}

export const MIGRATIONS: readonly Migration[] = [];
