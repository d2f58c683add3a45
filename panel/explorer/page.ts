/** The benchmark explorer: one page, drawn by the server. */
import type {
  CarrierQuality,
  LaneInsight,
  ProvinceInsight,
  Silence,
  TrendInsight,
} from "#analytics/insights.ts";
import type { DayInterval } from "#core/domain/benchmarks/day-counts.ts";
import { type Html, html } from "#panel/html.ts";
import { distributionChart, percent, SERIES_LIMIT, trendChart } from "./charts.ts";

/** As the form has it; empty = not asked. */
export interface ExplorerQuestion {
  readonly destCap: string;
  readonly originCap: string;
  readonly weightKg: string;
  readonly courier: string;
}

export interface ExplorerFindings {
  /** Null while no destination is asked for. */
  readonly lane: readonly LaneInsight[] | null;
  readonly provinces: readonly ProvinceInsight[];
  readonly trend: readonly TrendInsight[];
  readonly quality: readonly CarrierQuality[];
  readonly silence: readonly Silence[];
}

/** @param findings a text instead of them says why there are none */
export function explorerPage(
  question: ExplorerQuestion,
  findings: ExplorerFindings | string,
): Html {
  const content =
    typeof findings === "string"
      ? html`<p class="fault" role="alert">${findings}</p>`
      : html`${laneSection(question, findings.lane)}
${trendSection(question, findings.trend)}
${provinceSection(question, findings.provinces)}
${qualitySection(findings)}`;
  return html`<header>
<h1>Benchmark explorer</h1>
<form method="post" action="/panel/logout"><button>Log out</button></form>
</header>
<main>
${questionForm(question)}
${content}
</main>`;
}

function questionForm({ destCap, originCap, weightKg, courier }: ExplorerQuestion): Html {
  return html`<form method="get" action="/panel/explorer" aria-label="Lane">
<label>Destination CAP <input name="destCap" value="${destCap}" inputmode="numeric" pattern="[0-9]{5}" size="6"></label>
<label>Origin CAP <input name="originCap" value="${originCap}" inputmode="numeric" pattern="[0-9]{5}" size="6"></label>
<label>Weight in kg <input name="weightKg" value="${weightKg}" inputmode="decimal" size="6"></label>
<label>Courier of the province table <input name="courier" value="${courier}" size="14"></label>
<button>Show</button>
</form>`;
}

function laneSection(
  { destCap, originCap }: ExplorerQuestion,
  lane: readonly LaneInsight[] | null,
): Html {
  if (lane === null) return html`<p class="note">Name a destination CAP to see its couriers.</p>`;
  const title = `Couriers to ${destCap}${originCap === "" ? "" : ` from ${originCap}`}`;
  if (lane.length === 0) return html`<h2>${title}</h2><p>No deliveries in the last 12 months.</p>`;
  const rows = lane.map((row) => [
    row.courier,
    row.grain,
    number(row.deliveries),
    number(row.leadMedian),
    interval(row.leadMedianInterval),
    number(row.leadMean),
    number(row.leadP90),
    number(row.transitMedian),
    percent(row.troubleShare),
    row.isPublic ? "yes" : "no, under 20",
  ]);
  const head = ["Courier", "Grain", "Deliveries", "Lead median", "95 % interval", "Lead mean"];
  return html`<section>
<h2>${title}</h2>
<p class="note">Calendar days, last 12 months. Trouble: more than one attempt, or an exception.</p>
<div class="charts">
${lane.map((row) => html`<figure><figcaption>${row.courier}, % of deliveries by lead days</figcaption>${distributionChart(row.courier, row.leads)}</figure>`)}
</div>
${table("Comparison, the fastest first", [...head, "Lead p90", "Transit median", "Trouble", "Shown to merchants"], rows, 2)}
</section>`;
}

function trendSection({ destCap }: ExplorerQuestion, trend: readonly TrendInsight[]): Html {
  const title = `Mean lead days by month${destCap === "" ? "" : `, to ${destCap}`}`;
  if (trend.length === 0)
    return html`<section><h2>${title}</h2><p>No deliveries yet.</p></section>`;
  const months = [...new Set(trend.map(({ month }) => month))].sort();
  const byCourier = [...Map.groupBy(trend, ({ courier }) => courier)].sort(
    ([, one], [, other]) => volume(other) - volume(one),
  );
  const series = byCourier.slice(0, SERIES_LIMIT).map(([name, own]) => ({
    name,
    values: months.map((month) => own.find((row) => row.month === month)?.leadMean ?? null),
  }));
  const labels = months.map((month) => month.slice(0, 7));
  const rows = byCourier.map(([courier, own]) => [
    courier,
    ...months.map((month) => number(own.find((row) => row.month === month)?.leadMean ?? null)),
  ]);
  return html`<section>
<h2>${title}</h2>
${byCourier.length > SERIES_LIMIT ? html`<p class="note">Drawn: the ${SERIES_LIMIT} couriers with the most deliveries.</p>` : null}
${trendChart(title, labels, series)}
${table(title, ["Courier", ...labels], rows, 1)}
</section>`;
}

function volume(rows: readonly TrendInsight[]): number {
  return rows.reduce((sum, { deliveries }) => sum + deliveries, 0);
}

function provinceSection(
  { courier }: ExplorerQuestion,
  provinces: readonly ProvinceInsight[],
): Html {
  const rows = provinces.map((row) => [
    row.prefix,
    row.provinces,
    number(row.deliveries),
    number(row.leadMedian),
    number(row.leadMean),
    percent(row.troubleShare),
  ]);
  const head = ["CAP", "Provinces", "Deliveries", "Lead median", "Lead mean", "Trouble"];
  return html`<section>
<h2>Destinations by province</h2>
${table(courier === "" ? "All couriers, last 12 months" : `${courier}, last 12 months`, head, rows, 2)}
</section>`;
}

function qualitySection({ quality, silence }: ExplorerFindings): Html {
  const heard = new Map(silence.map((row) => [row.courier, row]));
  const rows = quality.map((row) => [
    row.courier,
    number(row.received),
    seconds(row.delayP50),
    seconds(row.delayP95),
    share(row.outOfOrderShare),
    share(row.duplicateShare),
    share(row.invalidShare),
    share(row.unmappedShare),
    heardText(heard.get(row.courier)),
  ]);
  const head = ["Courier", "Received", "Delay p50", "Delay p95", "Out of order", "Duplicates"];
  return html`<section>
<h2>How couriers report</h2>
${table("Last 7 days", [...head, "Invalid", "Unmapped", "Last hours against usual"], rows, 1)}
</section>`;
}

function heardText(row: Silence | undefined): string {
  if (!row || row.weeks === 0) return "too early to tell";
  const figures = `${row.seen} of ${row.expected.toFixed(0)}`;
  return row.silent ? `SILENT: ${figures}` : figures;
}

/** @param texts how many columns at the left are no numbers */
function table(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  texts: number,
): Html {
  const kind = (at: number) => (at < texts ? "text" : "number");
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table>
<caption>${caption}</caption>
<thead><tr>${head.map((name, at) => html`<th scope="col" class="${kind(at)}">${name}</th>`)}</tr></thead>
<tbody>
${rows.map(
  (
    cells,
  ) => html`<tr>${cells.map((cell, at) => (at === 0 ? html`<th scope="row">${cell}</th>` : html`<td class="${kind(at)}">${cell}</td>`))}</tr>
`,
)}</tbody>
</table></div>`;
}

function number(value: number | null): string {
  return value === null ? "–" : value.toLocaleString("en-GB");
}

function share(value: number | null): string {
  return value === null ? "–" : percent(value);
}

function interval(value: DayInterval | null): string {
  return value === null ? "–" : `${value.low} to ${value.high}`;
}

function seconds(value: number | null): string {
  if (value === null) return "–";
  return value < 120 ? `${value} s` : `${Math.round(value / 60).toLocaleString("en-GB")} min`;
}
