/**
 * The plan of `docs/scale.md`, computed from the figures of its first tables and of `bench/results/scale.json`: `bun bench/scale-plan.ts`
 * prints it, `--write` puts it into the page. Whoever measures again changes those figures alone.
 */
import { parseArgs } from "node:util";
import { type ClusterCosts, COSTS_FILE, MESSAGE_SIZES } from "./scale-costs.ts";
import {
  companyLimit,
  DISK_PER_MEMORY,
  type Family,
  fillOf,
  type Inputs,
  installationLimit,
  type Limit,
  limitOf,
  MASTER_CPU_SHARE,
  MASTER_MEMORY_SHARE,
  mastersFor,
  memoryOf,
  needsOf,
  type Plan,
  planFor,
} from "./scale-formulas.ts";

export const PAGE = "docs/scale.md";
const [BEGIN, END] = ["<!-- plan -->", "<!-- /plan -->"];
export const RATES = [100, 10_000, 1_000_000] as const;
const ARCHIVE_DAYS = [1, 7, 30] as const;
/** Of `{e}`, `{t}` and `{k}`. */
const PARTITIONS_OF_A_FAMILY = 16;
const [GB, TB] = [1e9, 1e12];
const [DAY_SECONDS, YEAR_DAYS, MONTH_DAYS] = [86_400, 365, 30.4];
/** One machine that holds everything of an installation at the first of the rates. */
const MACHINE_DISK_TB = 1;

type Rows = (name: string) => number;

/** Rows are `| name | value | unit | from |`. @throws where the page has no such row */
function rowsOf(page: string): Rows {
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

export function inputsOf(page: string, costs: ClusterCosts): Inputs {
  const row = rowsOf(page);
  const size = MESSAGE_SIZES.find((one) => one === row("events a message"));
  if (size === undefined) throw new Error(`messages are measured with ${MESSAGE_SIZES} events`);
  return {
    messageBytes: row("message bytes"),
    fileBytes: row("append-only bytes"),
    logBytes: row("log memory"),
    eventIdBytes: row("eventId memory"),
    shipmentBytes: row("shipment memory"),
    referenceBytes: row("reference memory"),
    archivedRowBytes: row("archived row"),
    rowBytes: row("ClickHouse row"),
    archivingCpu: row("archiving CPU"),
    masterForArchiving: row("Redis CPU for archiving"),
    coreShare: row("share of a core used"),
    peakOverMean: row("peak over mean"),
    eventsPerShipment: row("events a shipment"),
    daysUnderWay: row("days until a shipment has ended"),
    archiveAfterDays: row("ARCHIVE_AFTER_DAYS"),
    referencesPerShipment: row("references a shipment"),
    archiveMonths: row("months of archived shipments"),
    eventIdDays: row("days an eventId stays"),
    rawMonths: row("months of raw events"),
    backlogMinutes: row("minutes of backlog"),
    masterGb: row("GB a master holds"),
    messageSize: size,
    webhooksPerEvent: row("webhooks an event"),
    readsPerEvent: row("reads an event"),
    receiverSeconds: row("seconds a receiver takes"),
    vcpuEur: row("EUR a vCPU month"),
    gibEur: row("EUR a GiB month"),
    tbEur: row("EUR a TB month"),
    costs,
  };
}

const whole = (value: number) => Math.round(value).toLocaleString("en");
const shown = (value: number) => (value >= 10 ? whole(value) : value.toFixed(1));

function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(bytes) / 3)));
  return `${shown(bytes / 1_000 ** at)} ${units[at]}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), `|---|${"--:|".repeat(head.length - 1)}`, ...rows.map(line)].join("\n");
}

/** The measured costs. */
function costsTable({ costs }: Inputs): string {
  const names = {
    ingest: "ingest",
    masterForIngest: "masters, for ingest",
    replicaForIngest: "replicas, for ingest",
    processors: "processors",
    analytics: "analytics, the embedded ClickHouse in it",
    masterForWork: "masters, for processors and analytics",
    replicaForWork: "replicas, for processors and analytics",
  } as const;
  const rows = Object.entries(names).map(([name, text]) => [
    text,
    ...MESSAGE_SIZES.map((one) => whole(costs.messages[one][name as keyof typeof names])),
  ]);
  const others = table(
    ["CPU, us", "api or processors", "masters"],
    [
      ["a read (`GET /v2/shipments/{id}`)", whole(costs.read.api), whole(costs.read.master)],
      ["a webhook, beside its event", whole(costs.webhook.processors), whole(costs.webhook.master)],
    ],
  );
  const heads = MESSAGE_SIZES.map((one) => `messages of ${one}`);
  return `${table(["CPU, us an event", ...heads], rows)}\n\n${others}`;
}

function planTable(input: Inputs, plans: readonly Plan[]): string {
  const each = (plan: Plan) => plan.rate / plan.installations;
  const memory = (plan: Plan, name: keyof ReturnType<typeof memoryOf>) =>
    size(memoryOf(input, each(plan))[name] * plan.installations);
  const rows: [string, (plan: Plan) => string][] = [
    ["installations", ({ installations }) => whole(installations)],
    ["Redis masters, one replica each", ({ masters }) => whole(masters)],
    ["ingest processes", ({ ingest }) => whole(ingest)],
    ["processors processes", ({ processors }) => whole(processors)],
    ["analytics processes", ({ analytics }) => whole(analytics)],
    ["api processes", ({ api }) => whole(api)],
    ["connections to receivers", ({ connections }) => whole(connections)],
    ["cores, replicas in", ({ cores }) => whole(cores)],
    ["Redis memory: eventIds", (plan) => memory(plan, "eventIds")],
    ["Redis memory: shipments", (plan) => memory(plan, "shipments")],
    ["Redis memory: references of archived shipments", (plan) => memory(plan, "references")],
    ["Redis memory: backlog", (plan) => memory(plan, "backlog")],
    ["Redis memory in all, replicas in", ({ memoryBytes }) => size(memoryBytes)],
    ["disk of Redis, replicas in", ({ diskBytes }) => size(diskBytes)],
    ["append-only file, written", ({ rate }) => `${size(rate * input.fileBytes)}/s`],
    [
      "network in, not gzipped",
      ({ rate }) => `${shown((rate * input.messageBytes * 8) / 1e6)} Mbit/s`,
    ],
    ["ClickHouse disk, raw events, one replica", ({ rowBytes }) => size(rowBytes)],
    ["ClickHouse disk, archived shipments, one replica", ({ archiveBytes }) => size(archiveBytes)],
    ["cost a month", (plan) => `EUR ${whole(Math.ceil(priceOf(input, plan) / 10) * 10)}`],
  ];
  return table(
    ["at the peak", ...plans.map(({ rate }) => `${rate.toLocaleString("en")} events/s`)],
    rows.map(([name, of]) => [name, ...plans.map(of)]),
  );
}

/** EUR a month; memory is bought with the headroom of masters. */
function priceOf(input: Inputs, plan: Plan): number {
  const { cores, memoryBytes, diskBytes, rowBytes, archiveBytes } = plan;
  const bought = memoryBytes / MASTER_MEMORY_SHARE / 2 ** 30;
  const disk = (diskBytes + 2 * (rowBytes + archiveBytes)) / TB;
  return cores * input.vcpuEur + bought * input.gibEur + disk * input.tbEur;
}

/** Partitions a master has room for, by family. */
function fitTable(input: Inputs, rate: number): string {
  const families: [Family, string][] = [
    ["e", "`{e}`"],
    ["t", "`{t}`"],
    ["k", "`{k}`"],
  ];
  const needs = needsOf(input, rate);
  const rows = families.map(([family, name]) => {
    const need = needs[family];
    const fill = fillOf(input, need);
    return [
      name,
      size(need.bytes),
      need.cpu.toFixed(3),
      `${whole(100 * fill)} %`,
      fill > 1 ? "0" : whole(Math.floor(1 / fill)),
    ];
  });
  return table(["a partition of", "memory", "cores", "of a master", "on a master"], rows);
}

function limitsTable(input: Inputs): string {
  const row = (name: string, { cpu, memory }: Limit) => [
    name,
    whole(cpu),
    whole(memory),
    `**${whole(Math.min(cpu, memory))}**`,
  ];
  const families: Family[] = ["e", "t", "k"];
  const all = families.map((family) => limitOf(input, family, PARTITIONS_OF_A_FAMILY));
  const least: Limit = {
    cpu: Math.min(...all.map(({ cpu }) => cpu)),
    memory: Math.min(...all.map(({ memory }) => memory)),
  };
  const companies = ARCHIVE_DAYS.map((archiveAfterDays) =>
    row(
      `one company, \`ARCHIVE_AFTER_DAYS=${archiveAfterDays}\``,
      limitOf({ ...input, archiveAfterDays }, "k", 1),
    ),
  );
  const head = [`events/s, with masters of ${input.masterGb} GB`, "by CPU", "by memory", "limit"];
  return table(head, [row("one installation", least), ...companies]);
}

/** What one machine keeps, by how long shipments that have ended stay in Redis. */
function machineTable(input: Inputs, rate: number): string {
  const perDay = (rate / input.peakOverMean) * DAY_SECONDS;
  const ended = perDay / input.eventsPerShipment;
  const capacity = input.masterGb * GB * MASTER_MEMORY_SHARE;
  const rows = ARCHIVE_DAYS.toReversed().map((archiveAfterDays) => {
    const own = memoryOf({ ...input, archiveAfterDays }, rate);
    const yearly = ended * YEAR_DAYS * input.referencesPerShipment * input.referenceBytes;
    const years = (capacity - own.eventIds - own.backlog - own.shipments) / yearly;
    const raw = perDay * MONTH_DAYS * input.rawMonths * input.rowBytes;
    const disk = MACHINE_DISK_TB * TB - capacity * DISK_PER_MEMORY - raw;
    const archive = ended * YEAR_DAYS * input.archivedRowBytes;
    return [
      String(archiveAfterDays),
      size(own.shipments),
      years.toFixed(1),
      (disk / archive).toFixed(1),
    ];
  });
  const head = [
    "`ARCHIVE_AFTER_DAYS`",
    "shipments in Redis",
    `years until ${whole(capacity / GB)} of ${input.masterGb} GB are used`,
    `years until ${MACHINE_DISK_TB} TB is full`,
  ];
  return table(head, rows);
}

/** @returns the generated part of the page */
export function planText(input: Inputs): string {
  const [small = 0, middle = 0] = RATES;
  const masters = mastersFor(input, middle);
  const check = input.costs.check;
  return [
    `Measured on ${input.costs.machine}: a Redis Cluster of six nodes, \`REDIS_WAIT_REPLICAS=1\`, medians of ${input.costs.runs} runs.`,
    costsTable(input),
    `A second run with messages of ${check.messageSize} had ${whole(check.measured)} us an event in all, where the table above says ${whole(check.predicted)}.`,
    planTable(
      input,
      RATES.map((rate) => planFor(input, rate)),
    ),
    `At ${middle.toLocaleString("en")} events/s, whole partitions on masters of ${input.masterGb} GB, of which ${100 * MASTER_MEMORY_SHARE} % and of whose core ${100 * MASTER_CPU_SHARE} % are used, need ${masters ?? "more than 48"} masters:`,
    fitTable(input, middle),
    limitsTable(input),
    `A company has a partition of \`{k}\` for itself at most: here ${whole(companyLimit(input))} events/s. An installation ends at ${whole(installationLimit(input))}.`,
    machineTable(input, small),
  ].join("\n\n");
}

export function pageWith(page: string, text: string): string {
  const [before = "", rest = ""] = page.split(BEGIN);
  const [, after = ""] = rest.split(END);
  return `${before}${BEGIN}\n${text}\n${END}${after}`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
  const page = await Bun.file(PAGE).text();
  const text = planText(inputsOf(page, (await Bun.file(COSTS_FILE).json()) as ClusterCosts));
  if (values.write) await Bun.write(PAGE, pageWith(page, text));
  else process.stdout.write(`${text}\n`);
}

if (import.meta.main) await main();
