/** Binary search: once `holds` is true it stays true. @returns the first place where it is; `end` if there is none below `end` */
export function firstWhere(end: number, holds: (at: number) => boolean): number {
  let [low, high] = [0, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
