/**
 * How many partitions each family of hash tags has, and how ids tell theirs: a fact of the installation, written at the first
 * start on a store and read by every process that opens it (`core/configuration/store/partitioning.ts`). A process works on one
 * store, so it is kept here once, beside the names of keys that follow from it.
 */

/** The letter of the hash tags `{e<n>}`, `{t<n>}` and `{k<n>}` (`keys.ts`). */
export type Family = "e" | "t" | "k";
export const FAMILIES: readonly Family[] = ["e", "t", "k"];

export interface Partitioning extends Readonly<Record<Family, number>> {
  /** An id is its number in its partition times this, plus the partition. */
  readonly stride: number;
}

/** Of stores from before the number was chosen at the first start. */
const FIRST_STRIDE = 16;
/** Leaves room for as many partitions. */
const STRIDE = 4_096;
/** The first byte of a digest chooses the partition of a family, evenly where their number is a power of two. */
export const PARTITIONS_MOST = 256;

export const FIRST_PARTITIONING: Partitioning = { e: 16, t: 16, k: 16, stride: FIRST_STRIDE };

/** Of a new store. @param partitions a power of two */
export function newPartitioning(partitions: number): Partitioning {
  return { e: partitions, t: partitions, k: partitions, stride: STRIDE };
}

let inForce = newPartitioning(1);

/** Called with what the store says before anything reads or writes its partitions. */
export function usePartitioning(partitioning: Partitioning): void {
  inForce = partitioning;
}

export const partitioning = (): Partitioning => inForce;

export const partitionCount = (family: Family): number => inForce[family];

/** What follows from the partitions, made again only when they are others. */
export function perPartitioning<T>(make: (of: Partitioning) => T): () => T {
  let made: { readonly of: Partitioning; readonly value: T } | null = null;
  return () => {
    if (made?.of !== inForce) made = { of: inForce, value: make(inForce) };
    return made.value;
  };
}

const numbersTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

const numbers = perPartitioning(({ e, t, k }): Readonly<Record<Family, readonly number[]>> => {
  return { e: numbersTo(e), t: numbersTo(t), k: numbersTo(k) };
});

/** The numbers of all partitions of a family. */
export const partitionsOf = (family: Family): readonly number[] => numbers()[family];

/** @param digest the other bytes choose buckets and names */
export function partitionOfDigest(family: Family, digest: Buffer): number {
  return digest.readUInt8(0) % inForce[family];
}

/** What each partition has of a limit of the whole installation. */
export function shareOf(family: Family, total: number): number {
  return Math.ceil(total / inForce[family]);
}

export const idStride = (): number => inForce.stride;

/** Shipments, orders, labels, transmissions and stock releases are numbered by partition. */
export function idAt(number: number, partition: number): number {
  return number * inForce.stride + partition;
}

export function idPartition(id: number): number {
  return id % inForce.stride;
}

/** Where ids are stored in a fixed length: 69 billion of a partition have room in both. */
export const idBytes = (): number => (inForce.stride === FIRST_STRIDE ? 5 : 6);
export const idDigits = (): number => (inForce.stride === FIRST_STRIDE ? 12 : 15);
