/** Which members of an entry count, and what is remembered of them: of a file only what it says otherwise than the last time. */
import type { SaidMembers } from "#core/setup/rules/merge-said.ts";
import { fingerprintOf } from "./setup-webhooks.ts";
import type { SetupAuthor } from "./setup-writer.ts";

interface Given<T extends object> {
  readonly entry: T;
  /** Members that are compared; the others are left to their own rules. */
  readonly names: readonly (keyof T & string)[];
  readonly said: SaidMembers | undefined;
}

/** The entry without the members that a file has repeated. */
export function newsOf<T extends object>(
  by: SetupAuthor,
  { entry, names, said = {} }: Given<T>,
): T {
  if (by === "panel") return entry;
  const repeated = names.filter((name) => said[name] === fingerprintOf({ value: entry[name] }));
  return Object.fromEntries(
    Object.entries(entry).filter(([name]) => !(repeated as string[]).includes(name)),
  ) as T;
}

/** What an earlier file has said of other members stays. */
export function saidAfterEntry<T extends object>(
  by: SetupAuthor,
  { entry, names, said = {} }: Given<T>,
): SaidMembers {
  if (by === "panel") return said;
  const named = names.filter((name) => entry[name] !== undefined);
  const now = named.map((name) => [name, fingerprintOf({ value: entry[name] })] as const);
  return { ...said, ...Object.fromEntries(now) };
}
