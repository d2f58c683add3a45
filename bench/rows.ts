/**
 * Every published row: who measures it (`bench/<part>.ts`) and under which name, its number, what it says, what ours stands beside, its
 * goal, and the alarm that CI fails at, which is wide, since CI's machines are shared. `x` bounds the ratio of ours to the peer,
 * anything else our own figure in its unit. A goal in brackets is a note in its place. What has a `*` is measured with
 * `appendfsync everysec` too.
 */

import type { Bound, Figure } from "./table.ts";

const TABLE = `
ingest plain *        |  1 | 500-event messages, signed | bare scripts | events/s | x >= 0.6 | x >= 0.25
ingest jobs           |  2 | 1-event messages, signed | a route that adds a BullMQ job | requests/s | x >= 2 | x >= 0.2
ingest paced          |  5 | answer time of 500 events at 20/s, p99 | a route that only parses | ms | x <= 4 | x <= 40
track state *         |  3 | event log to shipment state, {shipments} shipments | the bare commit script | events/s | x >= 0.6 | x >= 0.12
end-to-end rate *     |  4 | end to end, sustained over {seconds} s | the same work as BullMQ jobs | events/s | x >= 8 | x >= 1.2
end-to-end cost *     |  4 | CPU of an event, all processes and Redis | the same work as BullMQ jobs | us | < 110 |
end-to-end lag *      |  4 | lag of the slowest stage, second half | its first half; below 1 s counts as 1 s | s | x <= 1.5 |
first-attempt 1000p50 |  6 | received -> first webhook attempt at 1,000 events/s, p50 | | ms | |
first-attempt 1000p95 |  6 | received -> first webhook attempt at 1,000 events/s, p95 | | ms | < 500 | < 3000
first-attempt 1000p99 |  6 | received -> first webhook attempt at 1,000 events/s, p99 | | ms | |
first-attempt 100p50  | 19 | received -> first webhook attempt at 100 events/s, p50 | | ms | < 15 | < 500
first-attempt 100p99  | 19 | received -> first webhook attempt at 100 events/s, p99 | | ms | < 60 | < 3000
webhooks bare         |  7 | webhooks, 2 KB, signed, {endpoints} endpoints | bare loop, same transport | 1/s | x >= 0.6 | x >= 0.25
webhooks bullmq *     |  8 | webhooks, 2 KB, signed, {endpoints} endpoints | BullMQ + fetch | 1/s | x >= 3 | x >= 1
webhooks connections  |  7 | connections opened by {requests} requests to each of {receivers} receivers | receivers | connections | x <= 1.25 | x <= 2
seen bytes            |  9 | a remembered eventId, {ids} ids | SET NX EX, {peer} ids | bytes | < 10, x <= 0.0909 | < 10, x <= 0.0909
shipment-memory bytes | 10 | a shipment of 8 events, 1 parcel, 2 lines | JSON text of its detail | bytes | < 2560, x <= 1 | < 3500, x <= 1.5
search slowest        | 11 | search, p99 of the slowest question: {question} | HGETALL of the rows | ms | < 20 | < 250
search changing       | 11 | the same with {changes} changes before each: {question} | HGETALL of the rows | ms | < 20 | < 250
search command        | 11 | search, the longest Redis command | | ms | < 5 | < 250
benchmarks times      | 12 | delivery times, 4 couriers, {rows} M deliveries, p99 | | ms | < 50 | < 500
benchmarks index      | 12 | efficiency index, 4 of 20, {rows} M deliveries, p99 | | ms | < 50 | < 500
benchmarks promise    | 12 | courier promises, 4 couriers, {rows} M deliveries, p99 | | ms | < 50 | < 500
growth state          | 14 | event log to state, {many} shipments (linear: x {times}) | {few} shipments | CPU us/event | x <= 1.5 | x <= 3
growth whole          | 14 | end to end, {many} shipments (linear: x {times}) | {few} shipments | CPU us/event | x <= 1.5 | x <= 3
webhooks one          | 16 | webhooks, one endpoint, 2 KB, signed | BullMQ + fetch, {workers} workers | 1/s | x >= 3, >= 5000 | x >= 1
webhooks cost         | 16 | CPU of the machine for a delivery, its receiver in it | | us | < 300 |
webhooks 100ms        | 17 | webhooks, one endpoint whose receiver takes 100 ms | | 1/s | >= 1500 | >= 300
webhooks 1000ms       | 17 | webhooks, one endpoint whose receiver takes 1000 ms | | 1/s | >= 200 | >= 50
idle cpu              | 18 | at rest, all roles in one process and Redis, CPU of a core | | % | < 2 | < 20
idle memory           | 18 | at rest, all roles in one process, resident after full load | | MiB | < 250 |
archive redis         | 20 | an archived shipment of 8 events, 2 references, in Redis | | bytes | < 48 | < 60
archive disk          | 21 | the same in ClickHouse, on disk | | bytes | < 450 | < 500
archive rate          | 22 | archiving, in a second of one core, the embedded ClickHouse's in it | | shipments | >= 5000 | >= 500
panel first           | 26 | panel, first page without a cache, until it takes input | | ms | < 1000 | < 10000
panel files           | 26 | panel, files of the first page, as the browser takes them | | kB | < 350 |
`;
export interface Part {
  readonly file: string;
  readonly rows: Set<number>;
  /** Those that are measured with `appendfsync everysec` too. */
  readonly everysec: Set<number>;
}

type Row = Readonly<Record<"work" | "beside" | "unit" | "goal" | "alarm", string>>;

const ROWS = new Map<string, Row & { readonly row: number }>();
const FOUND = new Map<string, Part>();
for (const line of TABLE.trim().split("\n")) {
  const [name = "", row = "", ...texts] = line.split("|").map((cell) => cell.trim());
  const [work = "", beside = "", unit = "", goal = "", alarm = ""] = texts;
  const [file = "", key = "", twice] = name.split(/ +/);
  ROWS.set(`${file} ${key}`, { row: Number(row), work, beside, unit, goal, alarm });
  const part = FOUND.get(file) ?? { file, rows: new Set(), everysec: new Set() };
  FOUND.set(file, part);
  part.rows.add(Number(row));
  if (twice) part.everysec.add(Number(row));
}

export const PARTS: readonly Part[] = [...FOUND.values()];

function boundOf(text: string): Bound | null {
  if (text === "" || text.startsWith("(")) return null;
  const bounds = text.split(", ").map((one) => {
    const [, ratio, sign, value] = /^(x )?(>=|<=|<) ([\d.]+)$/.exec(one) ?? [];
    if (value === undefined) throw new Error(`no bound: ${one}`);
    const side = sign === ">=" ? "least" : "most";
    return [ratio ? side : side === "least" ? "oursLeast" : "oursMost", Number(value)] as const;
  });
  return Object.fromEntries(bounds);
}

type Names = Readonly<Record<string, string | number>>;

function filled(text: string, names: Names): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = names[name];
    if (value === undefined) throw new Error(`"${text}" needs ${name}`);
    return typeof value === "number" ? value.toLocaleString("en") : value;
  });
}

/** @param name its part and name, as in the table; `names` fill its texts */
export function figureOf(
  name: string,
  { ours, peer = null }: { readonly ours: number; readonly peer?: number | null },
  names: Names = {},
): Figure {
  const row = ROWS.get(name);
  if (!row) throw new Error(`no row ${name}`);
  return {
    row: row.row,
    work: filled(row.work, names),
    ours,
    beside: row.beside === "" ? null : filled(row.beside, names),
    peer,
    unit: row.unit,
    goal: boundOf(row.goal),
    ...(row.goal.startsWith("(") && { note: row.goal.slice(1, -1) }),
    alarm: boundOf(row.alarm),
  };
}
