/** A number with its noun; English and Italian have one form for 1 and one for all others. @param count as it is written */
export function counted(count: string, one: string, others: string): string {
  return `${count} ${count === "1" ? one : others}`;
}
