/** test/mutation/mutants.json: what `npm run tool -- mutate --record` has found, file by file, and why a survivor may live. */
import { writeFile } from "node:fs/promises";

const RECORD = "test/mutation/mutants.json";

export interface Survivor {
  readonly line: number;
  readonly before: string;
  readonly after: string;
  /** Why no test can tell it apart; written by hand, and kept as long as it survives. */
  readonly reason?: string;
}

export interface MutatedFile {
  readonly tried: number;
  readonly survivors: readonly Survivor[];
}

export type MutantRecord = Readonly<Record<string, MutatedFile>>;

export async function readMutants(): Promise<MutantRecord> {
  const file = Bun.file(RECORD);
  return (await file.exists()) ? await file.json() : {};
}

/** A reason stays with its survivor on the same line, and on another one if no other survivor has the same change. */
export function withReasons(
  found: readonly Survivor[],
  known: readonly Survivor[],
): readonly Survivor[] {
  const change = ({ before, after }: Survivor) => `${before} -> ${after}`;
  const same = (all: readonly Survivor[], one: Survivor) =>
    all.filter((other) => change(other) === change(one));
  return found.map((one) => {
    const candidates = same(known, one);
    const isAlone = candidates.length === 1 && same(found, one).length === 1;
    const before = candidates.find(({ line }) => line === one.line);
    const { reason } = before ?? (isAlone ? candidates[0] : undefined) ?? one;
    return reason === undefined ? one : { ...one, reason };
  });
}

export async function recordMutants(
  file: string,
  found: MutatedFile,
  mode: "new" | "more",
): Promise<void> {
  const all = await readMutants();
  const { [file]: before = { tried: 0, survivors: [] } } = all;
  const shortened = found.survivors.map(({ line, before: text, after }) => {
    return { line, before: text.replace(/\s+/g, " ").slice(0, 80), after };
  });
  const survivors = withReasons(shortened, before.survivors);
  const kept = mode === "new" ? { tried: 0, survivors: [] } : before;
  const merged = {
    ...all,
    [file]: {
      tried: kept.tried + found.tried,
      survivors: [...kept.survivors, ...survivors].toSorted((one, two) => one.line - two.line),
    },
  };
  const sorted = Object.fromEntries(
    Object.entries(merged).toSorted(([one], [two]) => (one < two ? -1 : 1)),
  );
  await writeFile(RECORD, `${JSON.stringify(sorted, null, 2)}\n`);
}
