/** Work for one company after the other that may take longer than a round. */

export interface Stage {
  readonly isStopping: () => boolean;
  /** The next round goes on. */
  readonly isTimeUp: () => boolean;
}

/**
 * Does something for each company, first for those that the round before had no time for.
 * @param after what the round before returned
 * @returns the last company that there was time for; 0 = all
 */
export async function forCompanies(
  { isStopping, isTimeUp }: Stage,
  ids: Iterable<number>,
  after: number,
  work: (companyId: number) => Promise<unknown>,
): Promise<number> {
  const sorted = [...ids].sort((one, other) => one - other);
  const next = sorted.filter((id) => id > after);
  for (const id of [...next, ...sorted.filter((one) => one <= after)]) {
    await work(id);
    if (isStopping() || isTimeUp()) return id;
  }
  return 0;
}
