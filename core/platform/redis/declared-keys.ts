/** The keys of a script call, each once; the script's arguments refer to a key by its index in KEYS. */
export interface DeclaredKeys {
  readonly declared: string[];
  /**
   * Declares a key, unless it is declared already.
   * @returns its index, from 1
   */
  readonly declare: (name: string) => number;
  /**
   * Declares keys that always follow one another in this order.
   * @returns the index of the first
   */
  readonly declareRun: (first: string, ...others: readonly string[]) => number;
}

export function declaredKeys(first: readonly string[]): DeclaredKeys {
  const declared = [...first];
  const known = new Map<string, number>();
  const declare = (name: string, ...others: readonly string[]): number => {
    const at = known.get(name);
    if (at !== undefined) return at;
    declared.push(name, ...others);
    const index = declared.length - others.length;
    known.set(name, index);
    return index;
  };
  return { declared, declare, declareRun: declare };
}
