/** Charts of the explorer, as SVG with a name and a description for who does not see them. */
import type { DayCounts } from "#core/domain/benchmarks/day-counts.ts";
import { type Html, html } from "#panel/html.ts";

const WIDTH = 280;
const HEIGHT = 120;
const BASE = 96;
/** Days with a bar of their own; later ones are joined in the last. */
const DAYS_SHOWN = 10;

/** How many deliveries took how many days, as shares of all. */
export function distributionChart(title: string, counts: DayCounts): Html {
  const shares = sharesByDay(counts);
  const step = WIDTH / (DAYS_SHOWN + 1);
  const highest = Math.max(...shares);
  const bars = shares.map((share, day) => {
    const height = Math.round((share / highest) * (BASE - 20));
    const x = day * step + 2;
    const label = day === DAYS_SHOWN ? `${day}+` : day;
    return html`<rect class="bar" x="${x}" y="${BASE - height}" width="${step - 4}" height="${height}"><title>${label} days: ${percent(share)}</title></rect>
<text x="${x + step / 2 - 2}" y="${BASE + 14}" text-anchor="middle">${label}</text>${
      share >= 0.1
        ? html`<text x="${x + step / 2 - 2}" y="${BASE - height - 4}" text-anchor="middle">${Math.round(share * 100)}</text>`
        : null
    }`;
  });
  const description = shares
    .map((share, day) =>
      share > 0 ? `${day}${day === DAYS_SHOWN ? " or more" : ""} days ${percent(share)}` : "",
    )
    .filter((text) => text !== "")
    .join(", ");
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${title}: share of deliveries by lead days. ${description}">
<line class="axis" x1="0" x2="${WIDTH}" y1="${BASE}" y2="${BASE}"/>
${bars}
</svg>`;
}

function sharesByDay(counts: DayCounts): number[] {
  const shares = new Array<number>(DAYS_SHOWN + 1).fill(0);
  const size = counts.reduce((sum, [, deliveries]) => sum + deliveries, 0);
  for (const [days, deliveries] of counts) {
    const at = Math.min(days, DAYS_SHOWN);
    shares[at] = (shares[at] ?? 0) + deliveries / size;
  }
  return shares;
}

export interface Series {
  readonly name: string;
  /** One a label; null where there is nothing. */
  readonly values: readonly (number | null)[];
}

/** Lines differ in colour and dashes. */
const DASHES = ["none", "6 3", "2 3", "8 3 2 3", "12 4", "4 2"] as const;
export const SERIES_LIMIT = DASHES.length;
const LINE_WIDTH = 720;
const LINE_HEIGHT = 260;
const LEFT = 36;
const BOTTOM = 220;

/** @param series at most `SERIES_LIMIT` */
export function trendChart(
  title: string,
  labels: readonly string[],
  series: readonly Series[],
): Html {
  const all = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const top = Math.max(1, Math.ceil(Math.max(...all)));
  const x = (at: number) =>
    Math.round(LEFT + (at * (LINE_WIDTH - LEFT - 20)) / Math.max(1, labels.length - 1));
  const y = (value: number) => Math.round(BOTTOM - (value / top) * (BOTTOM - 16));
  const lines = series.map(
    ({ name, values }, at) =>
      html`<polyline class="series series-${at}" stroke-dasharray="${DASHES[at] ?? "none"}" points="${values
        .flatMap((value, index) => (value === null ? [] : [`${x(index)},${y(value)}`]))
        .join(" ")}"><title>${name}</title></polyline>`,
  );
  const grid = [0, top / 2, top].map(
    (
      value,
    ) => html`<line class="axis" x1="${LEFT}" x2="${LINE_WIDTH}" y1="${y(value)}" y2="${y(value)}"/>
<text x="${LEFT - 6}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  );
  const months = labels.map((label, at) =>
    at % 2 === 0
      ? html`<text x="${x(at)}" y="${BOTTOM + 18}" text-anchor="middle">${label}</text>`
      : null,
  );
  return html`<svg viewBox="0 0 ${LINE_WIDTH} ${LINE_HEIGHT}" width="${LINE_WIDTH}" height="${LINE_HEIGHT}" role="img" aria-label="${title}; the figures are in the table below">
${grid}
${months}
${lines}
</svg>
<p class="note">${series.map(({ name }, at) => legend(name, at))}</p>`;
}

function legend(name: string, at: number): Html {
  return html`<svg width="32" height="10" aria-hidden="true"><line class="series series-${at}" stroke-dasharray="${DASHES[at] ?? "none"}" x1="0" x2="30" y1="5" y2="5"/></svg> ${name} `;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
