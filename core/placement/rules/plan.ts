/** Which master should have which partition, so that the heaviest master has as little as possible and little is moved. */

export interface Placed {
  /** Such as `{k3}`. */
  readonly tag: string;
  readonly master: string;
  /** Share of what all partitions take together. */
  readonly weight: number;
}

export interface PartitionMove {
  readonly tag: string;
  readonly from: string;
  readonly to: string;
}

/** A partition with nothing in it counts as much as one that has so many bytes, so that those of an empty store are spread by number. */
export const BASE_BYTES = 1_000_000;
/** The same in calls of a day. */
export const BASE_CALLS = 10_000;
/** Of the mean weight of a master: what the heaviest one must lose by a plan, for its moves to be worth it. */
export const WORTH_MOVING = 0.05;
/** Below this share of all weight two masters carry the same. */
const SAME = 1e-9;
/** A placement counts as uneven from so many times the best one on. */
export const UNEVEN = 1.5;

/** @returns the mean of a partition's share of all bytes and of all calls; 1 in all */
export function weigh(
  partitions: readonly { readonly tag: string; readonly bytes: number; readonly calls: number }[],
): Map<string, number> {
  const sum = (of: (one: (typeof partitions)[number]) => number) =>
    partitions.reduce((total, one) => total + of(one), 0);
  const bytes = sum((one) => one.bytes + BASE_BYTES);
  const calls = sum((one) => one.calls + BASE_CALLS);
  return new Map(
    partitions.map((one) => [
      one.tag,
      ((one.bytes + BASE_BYTES) / bytes + (one.calls + BASE_CALLS) / calls) / 2,
    ]),
  );
}

/** What each master carries; those without partitions carry 0. */
export function loadsOf(
  partitions: readonly Placed[],
  masters: readonly string[],
): Map<string, number> {
  const loads = new Map(masters.map((master) => [master, 0]));
  for (const { master, weight } of partitions) {
    loads.set(master, (loads.get(master) ?? 0) + weight);
  }
  return loads;
}

/** How many times the heaviest master carries what it would in the best placement. */
export function unevenness(partitions: readonly Placed[], masters: readonly string[]): number {
  const total = partitions.reduce((sum, { weight }) => sum + weight, 0);
  const largest = Math.max(0, ...partitions.map(({ weight }) => weight));
  // Masters cannot share a partition, so some have one more than others.
  const perMaster = Math.ceil(partitions.length / masters.length) / partitions.length;
  const best = Math.max(total / masters.length, largest, total * perMaster);
  return best === 0 ? 1 : Math.max(...loadsOf(partitions, masters).values()) / best;
}

/**
 * Partitions of other masters go, the heaviest first, to the master that carries least. Then single partitions move, or change places,
 * from the heaviest master to a lighter one, if that is worth it.
 * @param masters that are to have partitions
 */
export function planPlacement(
  partitions: readonly Placed[],
  masters: readonly string[],
): PartitionMove[] {
  const isKept = ({ master }: Placed) => masters.includes(master);
  const placed = partitions.filter(isKept);
  const homeless = partitions.filter((one) => !isKept(one)).toSorted((a, b) => b.weight - a.weight);
  for (const one of homeless) placed.push({ ...one, master: lightestOf(placed, masters) });
  const even = placed.map((one) => ({ ...one }));
  // Every round lowers the heavier one of two masters: there are few.
  while (evenOut(even, masters)) {}
  const worth = (WORTH_MOVING * totalOf(placed)) / masters.length;
  const isWorth = heaviestLoad(placed, masters) - heaviestLoad(even, masters) >= worth;
  const before = new Map(partitions.map(({ tag, master }) => [tag, master]));
  return (isWorth ? even : placed)
    .map(({ tag, master }) => ({ tag, from: before.get(tag) ?? "", to: master }))
    .filter(({ from, to }) => from !== to);
}

function totalOf(partitions: readonly Placed[]): number {
  return partitions.reduce((sum, { weight }) => sum + weight, 0);
}

function heaviestLoad(partitions: readonly Placed[], masters: readonly string[]): number {
  return Math.max(...loadsOf(partitions, masters).values());
}

function lightestOf(partitions: readonly Placed[], masters: readonly string[]): string {
  const [lightest] = [...loadsOf(partitions, masters)].toSorted(([, a], [, b]) => a - b);
  return lightest?.[0] ?? "";
}

type Mutable = { -readonly [Field in keyof Placed]: Placed[Field] };

/** Takes from the heaviest master the partition by which it and another one carry least. @returns whether something was moved */
function evenOut(placed: Mutable[], masters: readonly string[]): boolean {
  const loads = loadsOf(placed, masters);
  const sorted = [...loads].toSorted(([, a], [, b]) => b - a);
  const [[heaviest, high] = ["", 0]] = sorted;
  for (const [lighter, low] of sorted.toReversed()) {
    const change = bestChange(placed, { heaviest, high, lighter, low });
    if (change) {
      change();
      return true;
    }
  }
  return false;
}

interface Pair {
  readonly heaviest: string;
  readonly high: number;
  readonly lighter: string;
  readonly low: number;
}

/** @returns moves one partition, or where none helps lets two change places; null = neither makes the heavier one lighter */
function bestChange(
  placed: readonly Mutable[],
  { heaviest, high, lighter, low }: Pair,
): (() => void) | null {
  const own = placed.filter(({ master }) => master === heaviest);
  const others = placed.filter(({ master }) => master === lighter);
  const choose = (pairs: readonly (readonly [Mutable, Mutable | null])[]) => {
    let most = high - SAME;
    let best: (() => void) | null = null;
    for (const [one, other] of pairs) {
      const shift = one.weight - (other?.weight ?? 0);
      const after = Math.max(high - shift, low + shift);
      if (after >= most) continue;
      most = after;
      best = () => {
        one.master = lighter;
        if (other) other.master = heaviest;
      };
    }
    return best;
  };
  return (
    choose(own.map((one) => [one, null] as const)) ??
    choose(own.flatMap((one) => others.map((other) => [one, other] as const)))
  );
}
