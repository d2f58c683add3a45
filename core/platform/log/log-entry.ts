/**
 * What stands in a log. A producer puts all that one call of its script brings into one entry: reading, acknowledging and
 * remembering what is pending then cost once for all of it.
 */
export type Fields = Readonly<Record<string, string>>;

/** One event or change, as a handler is given it. */
export interface LogItem {
  /** Key of the log it stands in. */
  readonly key: string;
  /** Id of the entry in the log, and behind a dot its index among those that stand there together. */
  readonly id: string;
  readonly fields: Fields;
}

/** An entry as it stands in the log. */
export interface LogEntry {
  readonly key: string;
  readonly id: string;
  readonly items: readonly LogItem[];
}

/** @param split tells apart what stands together */
export function logEntry(
  key: string,
  id: string,
  fields: Fields,
  split: (fields: Fields) => readonly Fields[],
): LogEntry {
  const parts = split(fields);
  const items = parts.map((part, index) => ({
    key,
    id: index === 0 ? id : `${id}.${index}`,
    fields: part,
  }));
  return { key, id, items };
}

/** Order of two ids of one log. */
export function compareIds(one: string, other: string): number {
  const [time, sequence, index] = partsOf(one);
  const [otherTime, otherSequence, otherIndex] = partsOf(other);
  return time - otherTime || Number(sequence - otherSequence) || index - otherIndex;
}

function partsOf(id: string): readonly [time: number, sequence: bigint, index: number] {
  const [, time = "0", sequence = "0", index = "0"] =
    /^(\d+)(?:-(\d+))?(?:\.(\d+))?$/.exec(id) ?? [];
  return [Number(time), BigInt(sequence), Number(index)];
}
