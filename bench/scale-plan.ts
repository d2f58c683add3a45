/**
 * The partition plan of `docs/scale.md`, computed from the measured costs in its first table: `bun bench/scale-plan.ts`
 * prints it, `--write` puts it into the page. Whoever measures again changes that table alone.
 */
import { parseArgs } from "node:util";

const PAGE = "docs/scale.md";
const [BEGIN, END] = ["<!-- plan -->", "<!-- /plan -->"];
const RATES = [100, 10_000, 1_000_000];
/** Up to this rate one Redis holds all families. */
const SMALL = 1_000;
const DAY_SECONDS = 86_400;
const GIB = 2 ** 30;
const [GB, TB] = [1e9, 1e12];
/** One machine that holds everything of an installation at the first of the rates. */
const MACHINE = { memoryGb: 64, diskTb: 1 };
/** Of its disk: the append-only file, and once more while it is rewritten. */
const FILES_PER_MEMORY = 2;
const MONTH_DAYS = 30.4;
const YEAR_DAYS = 365;
/** Of each family of hash tags, and so masters that have something to do. */
const PARTITIONS = 16;

/** Names of the rows of the first table. */
type Name =
  | "ingest CPU"
  | "Redis CPU for ingest"
  | "Redis CPU for processors and analytics"
  | "processors CPU"
  | "analytics CPU"
  | "message bytes"
  | "append-only bytes"
  | "log memory"
  | "eventId memory"
  | "shipment memory"
  | "ClickHouse row"
  | "archiving CPU"
  | "Redis CPU for archiving"
  | "reference memory"
  | "archived row"
  | "share of a core used"
  | "peak over mean"
  | "events a shipment"
  | "days until a shipment has ended"
  | "ARCHIVE_AFTER_DAYS"
  | "references a shipment"
  | "months of archived shipments"
  | "days an eventId stays"
  | "months of raw events"
  | "minutes of backlog"
  | "GB a master holds"
  | "GB of Redis on a machine of 64"
  | "EUR a vCPU month"
  | "EUR a GiB month"
  | "EUR a TB month";

type Inputs = (name: Name) => number;

/** Rows are `| name | value | unit | from |`. */
function readInputs(page: string): Inputs {
  const rows = new Map(
    [...page.matchAll(/^\| ([^|]+) \| ([\d.,]+) \|/gm)].map(([, name = "", value = ""]) => [
      name.trim(),
      Number(value.replaceAll(",", "")),
    ]),
  );
  return (name) => {
    const value = rows.get(name);
    if (value === undefined) throw new Error(`${PAGE} has no row "${name}"`);
    return value;
  };
}

interface Plan {
  readonly rate: number;
  readonly cells: Readonly<Record<string, string>>;
}

function plan(input: Inputs, rate: number): Plan {
  const mean = rate / input("peak over mean");
  const processes = (us: number, least: number) =>
    Math.max(least, Math.ceil((rate * us) / 1e6 / input("share of a core used")));
  const ingest = processes(input("ingest CPU"), 2);
  const processors = processes(input("processors CPU"), 2);
  const perDay = mean * DAY_SECONDS;
  const ended = perDay / input("events a shipment");
  // Archiving follows the mean: it waits while others are busy.
  const archiving = (mean / input("events a shipment") / rate) * input("archiving CPU");
  const analytics = processes(input("analytics CPU") + archiving, 1);
  const seen = perDay * input("days an eventId stays") * input("eventId memory");
  const hotDays = input("days until a shipment has ended") + input("ARCHIVE_AFTER_DAYS");
  const shipments = ended * hotDays * input("shipment memory");
  const archived = ended * MONTH_DAYS * input("months of archived shipments");
  const references = archived * input("references a shipment") * input("reference memory");
  const backlog = rate * 60 * input("minutes of backlog") * input("log memory");
  const mastersFor = (us: number, bytes: number) =>
    Math.max(processes(us, 1), Math.ceil(bytes / GB / input("GB a master holds")));
  const events = mastersFor(input("Redis CPU for ingest"), seen + backlog);
  const places = Math.ceil(references / GB / input("GB a master holds"));
  const redisUs =
    input("Redis CPU for processors and analytics") +
    (mean / input("events a shipment") / rate) * input("Redis CPU for archiving");
  const companies = mastersFor(redisUs, shipments);
  const masters = rate <= SMALL ? companies : events + places + companies;
  const memory = ((seen + shipments + references + backlog) * 2) / GIB;
  const rows = (perDay * MONTH_DAYS * input("months of raw events") * input("ClickHouse row")) / TB;
  const cores = ingest + processors + analytics + 2 * masters;
  const archive = (archived * input("archived row")) / TB;
  const diskTb = (rows + archive) * 2 + (memory * 2 * GIB) / TB;
  const cost =
    cores * input("EUR a vCPU month") +
    memory * input("EUR a GiB month") +
    diskTb * input("EUR a TB month");
  return {
    rate,
    cells: {
      "ingest processes": whole(ingest),
      "processors processes": whole(processors),
      "analytics processes": whole(analytics),
      "Redis masters, one replica each": whole(masters),
      "for `{e}`, of 16": rate <= SMALL ? "in `{k}`'s" : ofPartitions(events),
      "for `{t}`, of 16": rate <= SMALL ? "in `{k}`'s" : ofPartitions(places),
      "for `{k}`, of 16": ofPartitions(companies),
      "of them by CPU alone": `${processes(input("Redis CPU for ingest"), 1)} and ${processes(redisUs, 1)}`,
      "cores, replicas in": whole(cores),
      "Redis memory: eventIds": size(seen),
      "Redis memory: shipments": size(shipments),
      "Redis memory: references of archived shipments": size(references),
      "Redis memory: backlog": size(backlog),
      "Redis memory in all, replicas in": size(memory * GIB),
      "append-only file, written": `${size(rate * input("append-only bytes"))}/s`,
      "network in, not gzipped": `${shown((rate * input("message bytes") * 8) / 1e6)} Mbit/s`,
      "ClickHouse disk, raw events, one replica": size(rows * TB),
      "ClickHouse disk, archived shipments, one replica": size(archive * TB),
      "cost a month": `EUR ${whole(Math.ceil(cost / 10) * 10)}`,
    },
  };
}

function ofPartitions(masters: number): string {
  return masters > PARTITIONS ? `**${whole(masters)}**` : whole(masters);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function shown(value: number): string {
  return value >= 10 ? whole(value) : value.toFixed(1);
}

function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(bytes) / 3)));
  return `${shown(bytes / 1_000 ** at)} ${units[at]}`;
}

function tableOf(plans: readonly Plan[]): string {
  const names = Object.keys(plans[0]?.cells ?? {});
  const heads = plans.map(({ rate }) => `${rate.toLocaleString("en")} events/s`);
  return [
    `| at the peak | ${heads.join(" | ")} |`,
    `|---|${plans.map(() => "--:|").join("")}`,
    ...names.map((name) => `| ${name} | ${plans.map(({ cells }) => cells[name]).join(" | ")} |`),
  ].join("\n");
}

/** What 16 partitions of each family bound, however many masters there are. */
function limits(input: Inputs): string {
  const perMaster = (name: Name) => (input("share of a core used") * 1e6) / input(name);
  const events = perMaster("Redis CPU for ingest");
  const companies = perMaster("Redis CPU for processors and analytics");
  return [
    "| a master for every partition | events/s |",
    "|---|--:|",
    `| 16 of \`{e}\` and \`{t}\` together | ${whole(PARTITIONS * events)} |`,
    `| 16 of \`{k}\`: what one installation does | ${whole(PARTITIONS * companies)} |`,
    `| one of \`{k}\`: what one company can have | ${whole(companies)} |`,
  ].join("\n");
}

/** What one machine keeps, by how long shipments that have ended stay in Redis. */
function oneMachine(input: Inputs, rate: number): string {
  const perDay = (rate / input("peak over mean")) * DAY_SECONDS;
  const ended = perDay / input("events a shipment");
  const redis = input("GB of Redis on a machine of 64") * GB;
  const seen = perDay * input("days an eventId stays") * input("eventId memory");
  const backlog = rate * 60 * input("minutes of backlog") * input("log memory");
  const references = ended * YEAR_DAYS * input("references a shipment") * input("reference memory");
  const rows = perDay * MONTH_DAYS * input("months of raw events") * input("ClickHouse row");
  const archive = ended * YEAR_DAYS * input("archived row");
  const disk = MACHINE.diskTb * TB - redis * FILES_PER_MEMORY - rows;
  const lines = [30, 7, 1].map((afterDays) => {
    const hotDays = input("days until a shipment has ended") + afterDays;
    const hot = ended * hotDays * input("shipment memory");
    const years = (redis - seen - backlog - hot) / references;
    return `| ${afterDays} | ${size(hot)} | ${years.toFixed(1)} | ${whole(disk / archive)} |`;
  });
  return [
    `| \`ARCHIVE_AFTER_DAYS\` | shipments in Redis | years until ${MACHINE.memoryGb} GB are full | years until ${MACHINE.diskTb} TB is full |`,
    "|--:|--:|--:|--:|",
    ...lines,
  ].join("\n");
}

const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
const page = await Bun.file(PAGE).text();
const input = readInputs(page);
const text = `${tableOf(RATES.map((rate) => plan(input, rate)))}\n\n${oneMachine(input, RATES[0] ?? 0)}\n\n${limits(input)}`;
if (values.write) {
  const [before = "", rest = ""] = page.split(BEGIN);
  const [, after = ""] = rest.split(END);
  await Bun.write(PAGE, `${before}${BEGIN}\n${text}\n${END}${after}`);
} else {
  process.stdout.write(`${text}\n`);
}
