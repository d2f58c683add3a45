/** docs/mutants.json: what `bun run mutate --record` has found, file by file, and why a survivor may live. */
import { writeFile } from "node:fs/promises";

const RECORD = "docs/mutants.json";

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

export async function recordMutants(
  file: string,
  found: MutatedFile,
  mode: "new" | "more",
): Promise<void> {
  const all = await readMutants();
  const { [file]: before = { tried: 0, survivors: [] } } = all;
  const survivors = found.survivors.map(({ line, before: text, after }) => {
    const short = { line, before: text.replace(/\s+/g, " ").slice(0, 80), after };
    const known = before.survivors.find(
      (one) => one.before === short.before && one.after === after && one.reason !== undefined,
    );
    return known ? { ...short, reason: known.reason } : short;
  });
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
