/**
 * Reading millions of archived shipments beside those that Redis has (rows 23 to 25): details, search pages with every filter and
 * sort, and late events. `bun bench/archive-reads.ts [--archived 10m] [--hot 1m] [--questions 4] [--quick] [--json] [--all]`.
 * `archive-load.ts` tells how the archive is filled.
 */
import { parseArgs } from "node:util";
import { openRow, readRows, type SealedRow } from "#analytics/archive/archive-table.ts";
import { openArchive } from "#analytics/archive.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type ArchivedLoad, loadArchive, ORIGINALS } from "#bench/archive-load.ts";
import { STEPS } from "#bench/ordinary-shipments.ts";
import { CHANNEL, COMPANY, type Loaded, loadShipments } from "#bench/search-load.ts";
import { FILTERS, OFFSETS, PAGE, SORTS } from "#bench/search-questions.ts";
import { type Figure, machine, percentile, print, redisVersion } from "#bench/table.ts";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { type SearchableArchive, searchBoth } from "#core/search/store/archive-search.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { readMomentAnywhere } from "#core/webhooks/store/shipment-moment.ts";
import { startIngest } from "#ingest/main.ts";
import { startProcessors } from "#processors/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const [DETAILS, LATE_EVENTS] = [500, 200];
const WARM_UP = 20;
const LATE_LIMIT_MS = 10_000;

const { values } = parseArgs({
  options: {
    archived: { type: "string", default: "10m" },
    hot: { type: "string", default: "1m" },
    questions: { type: "string", default: "4" },
    quick: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

function numberOf(text: string): number {
  const [, digits = "0", unit = ""] = /^(\d+)([km]?)$/i.exec(text) ?? [];
  return Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
}

const ARCHIVED = values.quick ? 4 * ORIGINALS : numberOf(values.archived);
const HOT = values.quick ? 5_000 : numberOf(values.hot);
/** Of each filter in each sort, for the first page and for a deep one. */
const QUESTIONS = values.quick ? 1 : Number(values.questions);
const AMONG = `${ARCHIVED.toLocaleString("en")} archived`;

/** The product's own, but for the rows that were copied: they are opened under the id of what they are copies of. */
function archiveOf(
  runtime: TestRuntime,
  load: ArchivedLoad,
  reader: Clickhouse,
): SearchableArchive {
  const { vault } = runtime.secrets;
  const open = (row: SealedRow) => {
    const { whole, ...rest } = openRow(vault, { ...row, id: load.originalOf(row.id) });
    return { ...rest, whole: { ...whole, id: row.id } };
  };
  const archive = openArchive(runtime.config, vault);
  closing.push(archive.close);
  return {
    ...archive,
    read: async (ids, channelIds) => (await readRows(reader, ids, channelIds)).map(open),
  };
}

type Clickhouse = Awaited<ReturnType<typeof openClickhouse>>;
const closing: (() => Promise<void>)[] = [];

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

function tell(name: string, times: readonly number[]): void {
  const [half, most] = [0.5, 0.99].map((share) => percentile(times, share).toFixed(1).padStart(8));
  process.stderr.write(`${name.padEnd(76)} ${half} ${most}\n`);
}

const random = (below: number) => Math.floor(Math.random() * below);

async function detailTimes({ redis }: TestRuntime, archive: SearchableArchive, load: ArchivedLoad) {
  const times: number[] = [];
  for (let n = -WARM_UP; n < DETAILS; n += 1) {
    const id = load.idAt(random(load.count));
    const ms = await timed(async () => {
      const moment = await readMomentAnywhere(redis, archive, id, [CHANNEL]);
      const facts = moment?.facts().length;
      if (facts !== STEPS.length) throw new Error(`the detail of ${id} has ${facts} facts`);
    });
    if (n >= 0) times.push(ms);
  }
  tell("detail", times);
  return times;
}

async function searchTimes({ redis }: TestRuntime, archive: SearchableArchive, loaded: Loaded) {
  const times: number[] = [];
  for (const [name, filters] of FILTERS) {
    const own: number[] = [];
    for (const [sort, order] of SORTS) {
      for (const offset of OFFSETS) {
        const asked: number[] = [];
        for (let n = 0; n < QUESTIONS; n += 1) {
          const query = {
            companyId: COMPANY,
            channelIds: [CHANNEL],
            trackingNumber: null,
            exact: {},
            shipFrom: null,
            shipTo: null,
            statuses: null,
            updatedFrom: null,
            limit: PAGE,
            order,
            offset,
            ...filters(loaded),
          };
          asked.push(
            await timed(async () => {
              const { hits } = await searchBoth(redis, archive, query);
              const ids = hits.map(({ id }) => id);
              await readShipmentsAnywhere(redis, archive, ids, [CHANNEL]);
            }),
          );
        }
        if (values.all) tell(`${name}, ${sort}, from ${offset}`, asked);
        own.push(...asked);
      }
    }
    tell(name, own);
    times.push(...own);
  }
  return times;
}

/** From the answer ACCEPTED until the state has the event, one late event after the other, of the product's own shipments. */
async function lateTimes(runtime: TestRuntime, load: ArchivedLoad): Promise<number[]> {
  const { redis, config, secrets } = runtime;
  const archive = openArchive(config, secrets.vault);
  closing.push(archive.close);
  const roles: Running[] = [];
  const times: number[] = [];
  try {
    for (const start of [startProcessors, startIngest]) roles.push(await start(runtime));
    const url = roles.find(({ name }) => name === "ingest")?.url ?? "";
    for (let n = -WARM_UP; n < LATE_EVENTS; n += 1) {
      const id = load.originals[(n + WARM_UP) * 17] ?? 0;
      const [row] = await archive.read([id], [CHANNEL]);
      const [trackingNumber] = row?.whole.numbers ?? [];
      const occurredAt = new Date().toISOString();
      const late = event({ ...(trackingNumber && { trackingNumber }), occurredAt });
      const { body } = await push(url, [late]);
      if (body.results?.[0]?.outcome !== "ACCEPTED") throw new Error(JSON.stringify(body));
      const ms = await timed(() => untilApplied(redis, id));
      if (n >= 0) times.push(ms);
    }
  } finally {
    for (const { stop } of roles.reverse()) await stop();
  }
  tell("late event", times);
  return times;
}

async function untilApplied(redis: TestRuntime["redis"], id: number): Promise<void> {
  const untilMs = performance.now() + LATE_LIMIT_MS;
  while (performance.now() < untilMs) {
    const hot = (await readHotShipments(redis, [id])).get(id);
    if ((hot?.state.keys.length ?? 0) > STEPS.length) return;
    await Bun.sleep(1);
  }
  throw new Error(`${id} did not come back`);
}

const runtime = await openTestRuntime(testSetup(), { ARCHIVE_AFTER_DAYS: "0" });
const clickhouse = await openClickhouse(runtime.config, "write");
closing.push(() => clickhouse.close());
try {
  const { redis } = runtime;
  const load = await loadArchive(runtime, clickhouse, ARCHIVED);
  process.stderr.write(`${load.count} archived in ${load.parts} parts after ${uptime()} s\n`);
  const hot = await loadShipments(redis, HOT, { days: 30, firstRank: ORIGINALS });
  process.stderr.write(`${HOT} in Redis after ${uptime()} s\n`);
  const reader = await openClickhouse(runtime.config, "read");
  closing.push(() => reader.close());
  const archive = archiveOf(runtime, load, reader);
  const details = await detailTimes(runtime, archive, load);
  const searches = await searchTimes(runtime, archive, { ...hot, firstDay: load.firstDay });
  const late = await lateTimes(runtime, load);
  const own = { unit: "ms", beside: null, peer: null };
  const p99 = (times: readonly number[]) => percentile(times, 0.99);
  const figures: Figure[] = [
    {
      ...own,
      row: 23,
      work: `detail of an archived shipment of ${AMONG}, p99`,
      ours: p99(details),
      goal: { oursMost: 25 },
      alarm: { oursMost: 250 },
    },
    {
      ...own,
      row: 24,
      work: `search pages over ${AMONG}, every filter and sort, p99`,
      ours: p99(searches),
      goal: { oursMost: 60 },
      alarm: { oursMost: 600 },
    },
    {
      ...own,
      row: 25,
      work: "late event on an archived shipment, accepted to state, p99",
      ours: p99(late),
      goal: { oursMost: 200 },
      alarm: { oursMost: 2_000 },
    },
  ];
  print(figures, machine(await redisVersion(redis)), values.json);
} finally {
  for (const close of closing.reverse()) await close();
  await runtime.end();
}

function uptime(): string {
  return (performance.now() / 1_000).toFixed(0);
}
