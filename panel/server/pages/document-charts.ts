/** Charts of the pages with figures, drawn from the same files as their tables. */
import { readFileSync } from "node:fs";
import { type Html, html } from "#core/platform/http/html.ts";
import { ownFile } from "#core/platform/process/own-files.ts";

interface Figure {
  readonly row: number;
  readonly work: string;
  readonly ours: number;
  readonly beside?: string;
  readonly peer?: number;
  readonly unit: string;
}

interface Measured {
  readonly name: string;
  readonly recoverySeconds?: readonly number[];
}

interface Bar {
  readonly label: string;
  readonly note: string;
  readonly value: number;
}

interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly Bar[];
}

const WIDTH = 760;
const LINE = 34;
const PLOT = { left: 20, right: 690, top: 48 } as const;
/** Rows of the table that compare throughput with a peer. */
const COMPARED = /^(events|requests|1)\/s$|^1\/s$/;
const BESIDE: Readonly<Record<string, { data: string; before: string; draw(data: never): Chart }>> =
  {
    performance: {
      data: "bench/results/performance.json",
      before: "<!-- figures: always -->",
      draw: ({ figures }: { readonly figures: readonly Figure[] }) => ({
        title: "Throughput beside the limit or peer of the same run",
        unit: "times",
        bars: figures
          .filter(({ work, unit, peer }) => peer && COMPARED.test(unit) && !/everysec/.test(work))
          .map(({ row, work, ours, peer = 1, beside = "" }) => ({
            label: `${row}. ${work}`,
            note: `beside ${beside}`,
            value: ours / peer,
          })),
      }),
    },
    reliability: {
      data: "test/reliability/reliability.json",
      before: "\n## ",
      draw: ({
        parts,
      }: {
        readonly parts: ReadonlyArray<{ readonly measured: readonly Measured[] }>;
      }) => ({
        title: "Worst recovery after a kill or a fault",
        unit: "s",
        bars: parts
          .flatMap(({ measured }) => measured)
          .flatMap(({ name, recoverySeconds = [] }) =>
            recoverySeconds.length === 0
              ? []
              : [{ label: name, note: "", value: Math.max(...recoverySeconds) }],
          ),
      }),
    },
  };

/**
 * @param name of the page
 * @returns the page with its chart, if it has one
 */
export function withChart(name: string, text: string): string {
  const chart = BESIDE[name];
  if (!chart) return text;
  const at = text.indexOf(chart.before);
  if (at < 0) throw new Error(`docs/${name}.md has no place for its chart`);
  const figures = JSON.parse(readFileSync(ownFile(chart.data), "utf8")) as never;
  return `${text.slice(0, at)}\n${svgOf(chart.draw(figures)).markup}\n\n${text.slice(at)}`;
}

/** In a figure of its own, so that Markdown leaves it alone: no line of it is empty. */
function svgOf({ title, unit, bars }: Chart): Html {
  const most = Math.max(...bars.map(({ value }) => value));
  const height = PLOT.top + bars.length * LINE + 8;
  const lines = bars.map(({ label, note, value }, at) => {
    const y = PLOT.top + at * LINE;
    const width = Math.max(2, ((PLOT.right - PLOT.left) * value) / most);
    const text = note === "" ? label : `${label}, ${note}`;
    const figure = value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 0 });
    return html`<text x="${PLOT.left}" y="${y}">${text}</text>
<rect x="${PLOT.left}" y="${y + 5}" width="${width.toFixed(1)}" height="11" rx="2" fill="currentColor" opacity=".45"/>
<text x="${(PLOT.left + width + 6).toFixed(1)}" y="${y + 15}">${figure} ${unit}</text>
`;
  });
  return html`<figure>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}" fill="currentColor" font-size="12">
<text x="${PLOT.left}" y="22" font-size="15" font-weight="600">${title}</text>
${lines}</svg>
</figure>`;
}
