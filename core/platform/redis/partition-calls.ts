/**
 * How many scripts this process has run on each partition: nearly all of its work, and all of its writes, are scripts. Counted here,
 * since Redis counts by command and not by slot, and added up over the processes by `partition-load.ts`.
 */

/** Of `{e<n>}`, `{t<n>}` and `{k<n>}`: calls since they were last taken, by tag. */
const calls = new Map<string, number>();

const BRACE = "{".charCodeAt(0);

/** @param key the first of a script; one without a partition's tag counts as nothing */
export function countCall(key: string | undefined): void {
  if (key === undefined || key.charCodeAt(0) !== BRACE) return;
  const tag = key.slice(0, key.indexOf("}") + 1);
  calls.set(tag, (calls.get(tag) ?? 0) + 1);
}

/** @returns what was counted since the last time; counted no more */
export function takeCalls(): Map<string, number> {
  const taken = new Map(calls);
  calls.clear();
  return taken;
}

/** After a failure: counts them again. */
export function giveBackCalls(taken: ReadonlyMap<string, number>): void {
  for (const [tag, count] of taken) calls.set(tag, (calls.get(tag) ?? 0) + count);
}
