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
  | "share of a core used"
  | "peak over mean"
  | "events a shipment"
  | "days a shipment stays in Redis"
  | "days an eventId stays"
  | "months of raw events"
  | "minutes of backlog"
  | "GB a master holds"
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
  const analytics = processes(input("analytics CPU"), 1);
  const perDay = mean * DAY_SECONDS;
  const seen = perDay * input("days an eventId stays") * input("eventId memory");
  const kept = (perDay / input("events a shipment")) * input("days a shipment stays in Redis");
  const shipments = kept * input("shipment memory");
  const backlog = rate * 60 * input("minutes of backlog") * input("log memory");
  const mastersFor = (us: number, bytes: number) =>
    Math.max(processes(us, 1), Math.ceil(bytes / GB / input("GB a master holds")));
  const events = mastersFor(input("Redis CPU for ingest"), seen + backlog);
  const companies = mastersFor(input("Redis CPU for processors and analytics"), shipments);
  const masters = rate <= SMALL ? companies : events + companies;
  const memory = ((seen + shipments + backlog) * 2) / GIB;
  const rows = (perDay * 30.4 * input("months of raw events") * input("ClickHouse row")) / TB;
  const cores = ingest + processors + analytics + 2 * masters;
  const diskTb = rows * 2 + (memory * 2 * GIB) / TB;
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
      "for `{e}` and `{t}`, of 16": rate <= SMALL ? "in `{k}`'s" : ofPartitions(events),
      "for `{k}`, of 16": ofPartitions(companies),
      "of them by CPU alone": `${processes(input("Redis CPU for ingest"), 1)} and ${processes(input("Redis CPU for processors and analytics"), 1)}`,
      "days of shipments that 16 masters hold": shown(
        (PARTITIONS * input("GB a master holds") * GB) /
          ((perDay / input("events a shipment")) * input("shipment memory")),
      ),
      "cores, replicas in": whole(cores),
      "Redis memory: eventIds": size(seen),
      "Redis memory: shipments": size(shipments),
      "Redis memory: backlog": size(backlog),
      "Redis memory in all, replicas in": size(memory * GIB),
      "append-only file, written": `${size(rate * input("append-only bytes"))}/s`,
      "network in, not gzipped": `${shown((rate * input("message bytes") * 8) / 1e6)} Mbit/s`,
      "ClickHouse disk, raw events, one replica": size(rows * TB),
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

const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
const page = await Bun.file(PAGE).text();
const input = readInputs(page);
const text = `${tableOf(RATES.map((rate) => plan(input, rate)))}\n\n${limits(input)}`;
if (values.write) {
  const [before = "", rest = ""] = page.split(BEGIN);
  const [, after = ""] = rest.split(END);
  await Bun.write(PAGE, `${before}${BEGIN}\n${text}\n${END}${after}`);
} else {
  process.stdout.write(`${text}\n`);
}
