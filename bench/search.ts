/**
 * Answer time of the shipment search (row 11): `bun bench/search.ts [--shipments 1m] [--questions 40] [--quick] [--json]`.
 * Every documented filter and combination is asked with random values, in every sort, for the first page and a deep one;
 * ours is the search and the reading of the page's shipments, the peer is `HGETALL` of the same shipments, turn by turn. Then
 * once more while shipments change between the questions. `--all` prints every sort and page by itself.
 */
import { parseArgs } from "node:util";
import { type Figure, machine, percentile, print, redisVersion } from "#bench/table.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { searchShipments } from "#core/search/store/search.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";
import { CHANNEL, COMPANY, changeSome, type Loaded, loadShipments } from "./search-load.ts";
import { FILTERS, OFFSETS, PAGE, type Question, SORTS } from "./search-questions.ts";

const WARM_UP = 3;
/** No command may hold Redis longer. */
const COMMAND_LIMIT_MS = 5;
const LIMIT_MS = 20;
/** For CI: its machines are small and shared. */
const ALARM_MS = 250;
/** At 50 questions a second this is 1,000 changes a second. */
const CHANGES_PER_QUESTION = 20;

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "1m" },
    questions: { type: "string", default: "40" },
    quick: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const SHIPMENTS = values.quick ? 30_000 : numberOf(values.shipments);
/** Of each filter in each sort, for the first page and for a deep one. */
const QUESTIONS = values.quick ? 3 : Number(values.questions);

interface Times {
  readonly ours: number[];
  readonly peer: number[];
}

async function timed<T>(work: () => Promise<T>): Promise<[ms: number, value: T]> {
  const from = performance.now();
  const value = await work();
  return [performance.now() - from, value];
}

/** What the route does for one page. */
async function answer(redis: Redis, query: ShipmentQuery): Promise<number[]> {
  const { hits } = await searchShipments(redis, query);
  const ids = hits.map(({ id }) => id);
  await readShipments(redis, ids);
  return ids;
}

async function readHashes(redis: Redis, ids: readonly number[]): Promise<void> {
  const keys = companyKeys(companyPartition(COMPANY));
  const pipeline = redis.multi();
  for (const id of ids) pipeline.hGetAll(keys.shipment(id));
  await pipeline.execAsPipeline();
}

/** @returns milliseconds of each question */
async function ask(
  redis: Redis,
  loaded: Loaded,
  filters: Question[1],
  page: Pick<ShipmentQuery, "order" | "offset">,
  changes: number,
): Promise<Times> {
  const times: Times = { ours: [], peer: [] };
  for (let n = -WARM_UP; n < QUESTIONS; n += 1) {
    const query: ShipmentQuery = {
      companyId: COMPANY,
      channelIds: [CHANNEL],
      trackingNumber: null,
      exact: {},
      shipFrom: null,
      shipTo: null,
      statuses: null,
      updatedFrom: null,
      limit: PAGE,
      ...page,
      ...filters(loaded),
    };
    if (changes > 0) await changeSome(redis, loaded, changes);
    const [ours, ids] = await timed(() => answer(redis, query));
    const [peer] = await timed(() => readHashes(redis, ids));
    if (n < 0) continue;
    times.ours.push(ours);
    times.peer.push(peer);
  }
  return times;
}

/** Every sort, the first page and a deep one. */
async function askEverySort(
  redis: Redis,
  loaded: Loaded,
  [name, filters]: Question,
  changes: number,
): Promise<Times> {
  const all: Times = { ours: [], peer: [] };
  for (const [sort, order] of SORTS) {
    for (const offset of OFFSETS) {
      const times = await ask(redis, loaded, filters, { order, offset }, changes);
      all.ours.push(...times.ours);
      all.peer.push(...times.peer);
      if (values.all) tell(`${name}, ${sort}, from ${offset}, ${changes} changes`, times.ours);
    }
  }
  return all;
}

function tell(name: string, times: readonly number[]): void {
  const [half, most] = [0.5, 0.99].map((share) => percentile(times, share).toFixed(1).padStart(8));
  process.stderr.write(`${name.padEnd(76)} ${half} ${most}\n`);
}

const GOAL = { goal: { oursMost: LIMIT_MS }, alarm: { oursMost: ALARM_MS } };

interface Asked {
  readonly name: string;
  /** p99, ms. */
  readonly ours: number;
  readonly peer: number;
}

async function measure(redis: Redis, loaded: Loaded): Promise<Figure[]> {
  const plain: Asked[] = [];
  const changing: Asked[] = [];
  for (const question of FILTERS) {
    plain.push(asked(question, await askEverySort(redis, loaded, question, 0)));
    const changed = await askEverySort(redis, loaded, question, CHANGES_PER_QUESTION);
    changing.push(asked(question, changed));
  }
  return [
    slowestOf("search, p99 of the slowest question", plain),
    slowestOf(`the same with ${CHANGES_PER_QUESTION} changes before each`, changing),
    await longestCommand(redis),
    ...plain.map((one) => ({
      ...figureOf(`search, p99: ${one.name}`, one),
      isDetail: true as const,
    })),
  ];
}

function asked([name]: Question, { ours, peer }: Times): Asked {
  return { name, ours: percentile(ours, 0.99), peer: percentile(peer, 0.99) };
}

function slowestOf(work: string, questions: readonly Asked[]): Figure {
  const [slowest] = questions.toSorted((one, other) => other.ours - one.ours);
  if (!slowest) throw new Error("no question");
  return figureOf(`${work}: ${slowest.name}`, slowest);
}

const PEER = "HGETALL of the rows";

function figureOf(work: string, { ours, peer }: Asked): Figure {
  return { row: 11, work, ours, peer, beside: PEER, unit: "ms", ...GOAL };
}

type SlowEntry = readonly [id: number, at: number, microseconds: number, command: string[]];

async function longestCommand(redis: Redis): Promise<Figure> {
  const entries = (await redis.sendCommand(["SLOWLOG", "GET", "-1"])) as unknown as SlowEntry[];
  const [longest] = [...entries].sort(([, , one], [, , other]) => other - one);
  if (values.all && longest) process.stderr.write(`${longest[3].slice(0, 4)}\n`);
  return {
    row: 11,
    work: "search, the longest Redis command",
    ours: (longest?.[2] ?? 0) / 1_000,
    beside: null,
    peer: null,
    unit: "ms",
    goal: { oursMost: COMMAND_LIMIT_MS },
    alarm: { oursMost: ALARM_MS },
  };
}

function numberOf(text: string): number {
  const [, digits = "0", unit = ""] = /^(\d+)([km]?)$/i.exec(text) ?? [];
  return Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
}

const server = await startTestRedis();
const redis = await connectRedis(server.address, createLog("warn"));
try {
  const loaded = await loadShipments(redis, SHIPMENTS);
  await redis.configSet({ "slowlog-log-slower-than": "500", "slowlog-max-len": "100000" });
  await redis.sendCommand(["SLOWLOG", "RESET"]);
  const figures = await measure(redis, loaded);
  const version = await redisVersion(redis);
  const about = `${loaded.ids.length.toLocaleString("en")} shipments in the channel`;
  print(figures, `${machine(version)}, ${about}`, values.json);
} finally {
  await redis.close();
  await server.stop();
}
