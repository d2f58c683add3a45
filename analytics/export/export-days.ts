/**
 * One pass of the export: every day of every table that has changed since the pass before becomes one Parquet file, in the
 * layout of a lake: `deliveries/day=2026-11-22/deliveries.parquet`. What a manifest beside them says of a day (rows and a
 * digest) tells whether it has changed, so late corrections are exported too, and a pass that was cut short is repeated.
 */
import { createWriteStream } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ClickHouseClient } from "@clickhouse/client";
import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { withTexts } from "#analytics/sql/text-columns.ts";
import type { Config } from "#core/platform/environment/config.ts";
import type { Log } from "#core/platform/process/log.ts";
import { exportedFiles } from "#core/platform/process/metrics.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { ExportTarget } from "./open-target.ts";

export const MANIFEST = "waybill-export.json";
const DAY_MS = 86_400_000;
/** Rows at the end of their retention leave one by one: files of such days stay as they are. */
export const EXPIRING_DAYS = limit(
  2,
  "end of a retention whose days are not exported again",
  "their files stay as they are",
);
const PARQUET_MAGIC = "PAR1";

/** 2: texts of a fixed length are texts, and deliveries have `is_evidence`. */
const FILES_VERSION = 2;

const Day = Type.Object({ rows: Type.Number(), digest: Type.String() });
const Manifest = Type.Object({
  /** Of what the files hold: another one has everything exported again. */
  version: Type.Literal(FILES_VERSION),
  /** When the latest pass ended that left nothing out, UTC milliseconds. */
  finishedAtMs: Type.Number(),
  tables: Type.Record(Type.String(), Type.Record(Type.String(), Day)),
});
export type Manifest = Static<typeof Manifest>;
const manifestChecker = TypeCompiler.Compile(Manifest);

interface Exported {
  readonly table: string;
  /** The UTC day of a row. */
  readonly day: string;
  /** Days that its rows are kept; null = for ever. */
  readonly keptDays: number | null;
  /** Columns that are computed when they are asked for, and not among all. */
  readonly computed?: readonly string[];
}

type Retention = Pick<Config, "eventRetentionMonths" | "attemptRetentionDays">;

function exportedTables({ eventRetentionMonths, attemptRetentionDays }: Retention): Exported[] {
  // A month has 28 days at least: no day is read whose rows may be leaving.
  const eventDays = eventRetentionMonths * 28;
  return [
    { table: "deliveries", day: "delivered_on", keptDays: null, computed: ["is_evidence"] },
    { table: "events", day: "toDate(received_at)", keptDays: eventDays },
    { table: "event_outcomes", day: "toDate(hour)", keptDays: eventDays },
    { table: "attempts", day: "toDate(at)", keptDays: attemptRetentionDays },
  ];
}

export interface ExportDeps {
  readonly clickhouse: ClickHouseClient;
  readonly target: ExportTarget;
  readonly config: Retention;
  readonly isStopping: () => boolean;
  /** Called before a file is replaced. @throws when somebody else exports by now */
  readonly assertHeld: () => Promise<void>;
}

/** @returns null if there is none, or none that can be read: then everything is exported */
export async function readManifest({ target, log }: { target: ExportTarget; log: Log }) {
  const text = await target.readText(MANIFEST);
  if (text === null) return null;
  try {
    const manifest: unknown = JSON.parse(text);
    if (manifestChecker.Check(manifest)) return manifest;
  } catch {}
  log.warn({ file: MANIFEST }, "the manifest of the export cannot be read; exporting everything");
  return null;
}

/** @returns how many files were written; null = stopped before the end */
export async function exportDays(
  deps: ExportDeps,
  known: Manifest | null,
  nowMs: number,
): Promise<number | null> {
  const tables: Manifest["tables"] = { ...known?.tables };
  let files = 0;
  for (const exported of exportedTables(deps.config)) {
    const before = tables[exported.table] ?? {};
    const fromMs =
      exported.keptDays === null ? 0 : nowMs - (exported.keptDays - EXPIRING_DAYS) * DAY_MS;
    const from = new Date(fromMs).toISOString().slice(0, 10);
    const found = await daysOf(deps.clickhouse, exported, from);
    const changed = changedDays(before, found, from);
    for (const day of changed) {
      if (deps.isStopping()) return null;
      await exportDay(deps, exported, day);
      exportedFiles.inc({ table: exported.table });
    }
    files += changed.length;
    tables[exported.table] = { ...before, ...emptied(changed), ...found };
    // Written with every table: a pass that is cut short need not repeat all of them.
    const isLast = exported.table === "attempts";
    const finishedAtMs = isLast ? nowMs : (known?.finishedAtMs ?? 0);
    await writeManifest(deps, { version: FILES_VERSION, finishedAtMs, tables });
  }
  return files;
}

type Days = Manifest["tables"][string];

/** A day that has lost all its rows counts as changed: its deliveries turned out to be none. */
function changedDays(before: Days, found: Days, from: string): string[] {
  const gone = Object.keys(before).filter((day) => day >= from && !Object.hasOwn(found, day));
  const others = Object.entries(found).filter(
    ([day, { digest }]) => before[day]?.digest !== digest,
  );
  const wasFull = gone.filter((day) => before[day]?.rows !== 0);
  return [...wasFull, ...others.map(([day]) => day)].sort();
}

function emptied(days: readonly string[]): Days {
  return Object.fromEntries(days.map((day) => [day, { rows: 0, digest: "0" }]));
}

async function daysOf(
  clickhouse: ClickHouseClient,
  { table, day }: Exported,
  from: string,
): Promise<Days> {
  const answer = await clickhouse.query({
    query: `SELECT toString(${day}) AS the_day, count() AS rows, toString(sum(sipHash64(toString(tuple(*))))) AS digest
            FROM ${table} FINAL WHERE ${day} >= toDate32({from:String}) GROUP BY the_day`,
    query_params: { from },
    format: "JSONEachRow",
  });
  const rows = await answer.json<{ the_day: string; rows: number | string; digest: string }>();
  return Object.fromEntries(
    rows.map(({ the_day, rows, digest }) => [the_day, { rows: Number(rows), digest }]),
  );
}

async function exportDay(deps: ExportDeps, exported: Exported, day: string) {
  const { clickhouse, target, assertHeld } = deps;
  const { table, day: dayOf, computed = [] } = exported;
  await mkdir(target.workFolder, { recursive: true, mode: 0o700 });
  const path = join(target.workFolder, `${table}.parquet`);
  const columns = ["*", ...computed].join(", ");
  const select = `SELECT ${columns} FROM ${table} FINAL WHERE ${dayOf} = toDate32({day:String})`;
  const { stream } = await clickhouse.exec({
    query: `${await withTexts(clickhouse, select, { day })} ORDER BY ALL FORMAT Parquet`,
    query_params: { day },
  });
  await pipeline(stream as Readable, createWriteStream(path));
  if (!(await isWhole(path)))
    throw new Error(`ClickHouse gave no whole file for ${table} of ${day}`);
  await assertHeld();
  await target.take(`${table}/day=${day}/${table}.parquet`, path);
}

/** A server that fails in the middle of its answer ends it with words: a whole file ends with the format's mark. */
async function isWhole(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const end = Buffer.alloc(PARQUET_MAGIC.length);
    if (size < 2 * end.length) return false;
    await file.read(end, 0, end.length, size - end.length);
    return end.toString("latin1") === PARQUET_MAGIC;
  } finally {
    await file.close();
  }
}

async function writeManifest({ target, assertHeld }: ExportDeps, manifest: Manifest) {
  await mkdir(target.workFolder, { recursive: true, mode: 0o700 });
  const path = join(target.workFolder, MANIFEST);
  await writeFile(path, JSON.stringify(manifest));
  await assertHeld();
  await target.take(MANIFEST, path);
}
