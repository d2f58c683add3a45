/** Lists cut into parts, in their order, for calls and commands that take so much and no more. */

/** At most `size` items each. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, at) => items.slice(at * size, (at + 1) * size));
}

/** Of at most `most` together by `sizeOf`; what is larger stands alone. */
export function chunksBySize<T>(
  items: readonly T[],
  most: number,
  sizeOf: (item: T) => number,
): T[][] {
  const parts: T[][] = [];
  let sum = 0;
  for (const item of items) {
    sum += sizeOf(item);
    const part = parts.at(-1);
    if (part && sum <= most) part.push(item);
    else {
      parts.push([item]);
      sum = sizeOf(item);
    }
  }
  return parts;
}
