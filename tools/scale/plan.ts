/**
 * The plan of `docs/scale.md`, computed from the figures of its first tables and of `bench/results/scale.json`: `bun tools/scale/plan.ts`
 * prints it, `--write` puts it into the page. Whoever measures again changes those figures alone.
 */
import * as scale from "./formulas.ts";

type Inputs = scale.Inputs;

export const PAGE = "docs/scale.md";
const [BEGIN, END] = ["<!-- plan -->", "<!-- /plan -->"];
const RATES = [100, 10_000, 1_000_000] as const;
const ARCHIVE_DAYS = [1, 7, 30] as const;
const [GB, TB] = [1e9, 1e12];
const [DAY_SECONDS, YEAR_DAYS, MONTH_DAYS] = [86_400, 365, 30.4];
/** One machine that holds everything of an installation at the first of the rates. */
const MACHINE_DISK_TB = 1;

/** Rows are `| name | value | unit | from |`. @throws where the page lacks one */
export function inputsOf(page: string, costs: scale.ClusterCosts): Inputs {
  const rows = new Map(
    [...page.matchAll(/^\| ([^|]+) \| ([\d.,]+) \|/gm)].map(([, name = "", value = ""]) => [
      name.trim(),
      Number(value.replaceAll(",", "")),
    ]),
  );
  const rowValue = (name: string) => {
    const value = rows.get(name);
    if (value === undefined) throw new Error(`${PAGE} has no row "${name}"`);
    return value;
  };
  const messageSize = scale.MESSAGE_SIZES.find((one) => one === rowValue("events a message"));
  if (!messageSize) throw new Error(`messages are measured with ${scale.MESSAGE_SIZES} events`);
  const values = Object.entries(scale.ROW_NAMES).map(([key, name]) => [key, rowValue(name)]);
  return { ...(Object.fromEntries(values) as Inputs), messageSize, costs };
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
function costsTable({ costs: { messages, read, webhook } }: Inputs): string {
  const names = Object.keys(scale.COST_NAMES) as (keyof typeof scale.COST_NAMES)[];
  const rows = names.map((name) => [
    scale.COST_NAMES[name],
    ...scale.MESSAGE_SIZES.map((one) => whole(messages[one][name])),
  ]);
  const others = [
    ["a read (`GET /v2/shipments/{id}`)", whole(read.api), whole(read.master)],
    ["a webhook, beside its event", whole(webhook.processors), whole(webhook.master)],
  ];
  const heads = scale.MESSAGE_SIZES.map((one) => `messages of ${one}`);
  return [
    table(["CPU, us an event", ...heads], rows),
    table(["CPU, us", "api or processors", "masters"], others),
  ].join("\n\n");
}

function planTable(input: Inputs): string {
  const plans = RATES.map((rate) => scale.planFor(input, rate));
  const rows: string[][] = [];
  const row = (name: string, of: (plan: scale.Plan) => string) =>
    rows.push([name, ...plans.map(of)]);
  const count = (name: string, key: keyof scale.Plan) => row(name, (plan) => whole(plan[key]));
  const bytes = (name: string, key: keyof scale.Plan) => row(name, (plan) => size(plan[key]));
  const memory = (name: string, key: keyof ReturnType<typeof scale.memoryOf>) =>
    row(`Redis memory: ${name}`, ({ rate, installations }) =>
      size(scale.memoryOf(input, rate / installations)[key] * installations),
    );
  count("installations", "installations");
  count("Redis masters, one replica each", "masters");
  count("ingest processes", "ingest");
  count("processors processes", "processors");
  count("analytics processes", "analytics");
  count("api processes", "api");
  count("connections to receivers", "connections");
  count("cores, replicas in", "cores");
  memory("eventIds", "eventIds");
  memory("shipments", "shipments");
  memory("references of archived shipments", "references");
  memory("backlog", "backlog");
  bytes("Redis memory in all, replicas in", "memoryBytes");
  bytes("disk of Redis, replicas in", "diskBytes");
  row("append-only file, written", ({ rate }) => `${size(rate * input.fileBytes)}/s`);
  const megabits = ({ rate }: scale.Plan) => (rate * input.messageBytes * 8) / 1e6;
  row("network in, not gzipped", (plan) => `${shown(megabits(plan))} Mbit/s`);
  bytes("ClickHouse disk, raw events, one replica", "rowBytes");
  bytes("ClickHouse disk, archived shipments, one replica", "archiveBytes");
  row("cost a month", (plan) => `EUR ${whole(Math.ceil(priceOf(input, plan) / 10) * 10)}`);
  const heads = plans.map(({ rate }) => `${rate.toLocaleString("en")} events/s`);
  return table(["at the peak", ...heads], rows);
}

/** EUR a month; memory is bought with the headroom of masters. */
function priceOf(input: Inputs, plan: scale.Plan): number {
  const { cores, memoryBytes, diskBytes, rowBytes, archiveBytes } = plan;
  const bought = memoryBytes / scale.MASTER_MEMORY_SHARE / 2 ** 30;
  const disk = (diskBytes + 2 * (rowBytes + archiveBytes)) / TB;
  return cores * input.vcpuEur + bought * input.gibEur + disk * input.tbEur;
}

/** Partitions a master has capacity for, by family. */
function fitTable(input: Inputs, rate: number): string {
  const rows = Object.entries(scale.needsOf(input, rate)).map(([family, need]) => {
    const fill = scale.fillOf(input, need);
    return [
      `\`{${family}}\``,
      size(need.bytes),
      need.cpu.toFixed(3),
      `${whole(100 * fill)} %`,
      fill > 1 ? "0" : whole(Math.floor(1 / fill)),
    ];
  });
  return table(["a partition of", "memory", "cores", "of a master", "on a master"], rows);
}

function limitsTable(input: Inputs): string {
  const row = (name: string, { cpu, memory }: scale.Limit) => {
    return [name, whole(cpu), whole(memory), `**${whole(Math.min(cpu, memory))}**`];
  };
  const companies = ARCHIVE_DAYS.map((archiveAfterDays) => {
    const limit = scale.limitOf({ ...input, archiveAfterDays }, "k", 1);
    return row(`one company, \`ARCHIVE_AFTER_DAYS=${archiveAfterDays}\``, limit);
  });
  const head = [`events/s, with masters of ${input.masterGb} GB`, "by CPU", "by memory", "limit"];
  return table(head, [row("one installation", scale.installationLimits(input)), ...companies]);
}

/** What one machine keeps, by how long shipments that have ended stay in Redis. */
function machineTable(input: Inputs, rate: number): string {
  const perDay = (rate / input.peakOverMean) * DAY_SECONDS;
  const ended = perDay / input.eventsPerShipment;
  const capacity = input.masterGb * GB * scale.MASTER_MEMORY_SHARE;
  const rows = ARCHIVE_DAYS.toReversed().map((archiveAfterDays) => {
    const own = scale.memoryOf({ ...input, archiveAfterDays }, rate);
    const yearly = ended * YEAR_DAYS * input.referencesPerShipment * input.referenceBytes;
    const years = (capacity - own.eventIds - own.backlog - own.shipments) / yearly;
    const raw = perDay * MONTH_DAYS * input.rawMonths * input.rowBytes;
    const disk = MACHINE_DISK_TB * TB - capacity * scale.DISK_PER_MEMORY - raw;
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
  const masters = scale.mastersFor(input, middle);
  const check = input.costs.check;
  return [
    `Measured on ${input.costs.machine}: a Redis Cluster of six nodes, \`REDIS_WAIT_REPLICAS=1\`, medians of ${input.costs.runs} runs.`,
    costsTable(input),
    `A second run with messages of ${check.messageSize} had ${whole(check.measured)} us an event in all, where the table above says ${whole(check.predicted)}.`,
    planTable(input),
    `At ${middle.toLocaleString("en")} events/s, whole partitions on masters of ${input.masterGb} GB, of which ${100 * scale.MASTER_MEMORY_SHARE} % and of whose core ${100 * scale.MASTER_CPU_SHARE} % are used, need ${masters ?? "more than 48"} masters:`,
    fitTable(input, middle),
    limitsTable(input),
    `A company has a partition of \`{k}\` for itself at most: here ${whole(scale.companyLimit(input))} events/s. An installation ends at ${whole(scale.installationLimit(input))}.`,
    machineTable(input, small),
  ].join("\n\n");
}

export function pageWith(page: string, text: string): string {
  const [before = "", rest = ""] = page.split(BEGIN);
  const [, after = ""] = rest.split(END);
  return `${before}${BEGIN}\n${text}\n${END}${after}`;
}

if (import.meta.main) {
  const page = await Bun.file(PAGE).text();
  const text = planText(
    inputsOf(page, (await Bun.file(scale.COSTS_FILE).json()) as scale.ClusterCosts),
  );
  if (process.argv.includes("--write")) await Bun.write(PAGE, pageWith(page, text));
  else process.stdout.write(`${text}\n`);
}
