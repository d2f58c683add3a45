/** The chart of row 14: CPU time an event over the number of shipments, on a logarithmic axis. */
const WIDTH = 760;
const HEIGHT = 420;
const PLOT = { left: 74, right: 560, top: 64, bottom: 350 } as const;
const TICKS = 5;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #333; }
  .title { font-size: 16px; font-weight: 600; }
  .grid { stroke: #ddd; }
  .axis { stroke: #888; }
  .line { stroke-width: 2.5; }
  polyline.line { fill: none; }
  .whole { stroke: #2563a8; fill: #2563a8; }
  .state { stroke: #b4541a; fill: #b4541a; }
  .linear { stroke: #888; stroke-dasharray: 2 5; }
  .redis { stroke-dasharray: 7 5; stroke-width: 1.5; }
  .note { fill: #777; font-size: 12px; }
  text.whole, text.state { stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd; } .grid { stroke: #3a3a3a; } .note { fill: #999; }
    .whole { stroke: #74aee8; fill: #74aee8; } .state { stroke: #e89a66; fill: #e89a66; }
    text.whole, text.state { stroke: none; }
  }`;

export interface Cost {
  readonly perSecond: number;
  /** CPU microseconds an event. */
  readonly redisUs: number;
  readonly ownUs: number;
}

export interface Size {
  readonly shipments: number;
  /** Of Redis memory, all of it. */
  readonly bytesPerShipment: number;
  readonly wholeWay: Cost;
  readonly toState: Cost;
}

interface Series {
  readonly name: string;
  readonly kind: string;
  readonly usOf: (size: Size) => number;
}

const whole = (cost: Cost) => cost.redisUs + cost.ownUs;

const SERIES: readonly Series[] = [
  { name: "end to end", kind: "whole", usOf: (one) => whole(one.wholeWay) },
  { name: "of it Redis", kind: "whole redis", usOf: (one) => one.wholeWay.redisUs },
  { name: "event log to state", kind: "state", usOf: (one) => whole(one.toState) },
  { name: "of it Redis", kind: "state redis", usOf: (one) => one.toState.redisUs },
];

/** @param about machine and versions */
export function growthChart(sizes: readonly Size[], about: string): string {
  const highest = Math.max(...sizes.flatMap((size) => SERIES.map(({ usOf }) => usOf(size))));
  const step = niceStep((highest * 1.1) / TICKS);
  const top = step * Math.ceil((highest * 1.1) / step);
  const logs = sizes.map(({ shipments }) => Math.log10(shipments));
  const [from = 0, to = 1] = [Math.min(...logs), Math.max(...logs)];
  const x = (shipments: number) =>
    PLOT.left + ((Math.log10(shipments) - from) / (to - from || 1)) * (PLOT.right - PLOT.left);
  const y = (us: number) => PLOT.bottom - (us / top) * (PLOT.bottom - PLOT.top);
  const parts = [
    `<text class="title" x="${PLOT.left}" y="26">CPU time of an event as shipments grow</text>`,
    `<text class="note" x="${PLOT.left}" y="45">${Bun.escapeHTML(about)}</text>`,
    ...yAxis(top, step, y),
    ...xAxis(sizes, x),
    ...linear(sizes[0], top, x, y),
    ...SERIES.map((series) => line(series, sizes, x, y)),
    ...labels(sizes.at(-1), y),
  ];
  const label = "CPU microseconds of an event over the number of shipments";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">
<style>${STYLE}
</style>
${parts.join("\n")}
</svg>
`;
}

type Scale = (value: number) => number;

/** 1, 2 or 5 times a power of ten. */
function niceStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return (([1, 2, 5].find((times) => times * power >= atLeast) ?? 10) as number) * power;
}

function yAxis(top: number, step: number, y: Scale): string[] {
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, n) => n * step);
  const middle = (PLOT.top + PLOT.bottom) / 2;
  return [
    ...ticks.map(
      (us) =>
        `<line class="grid" x1="${PLOT.left}" x2="${PLOT.right}" y1="${y(us)}" y2="${y(us)}"/>` +
        `<text x="${PLOT.left - 8}" y="${y(us) + 4}" text-anchor="end">${us}</text>`,
    ),
    `<text x="18" y="${middle}" text-anchor="middle" transform="rotate(-90 18 ${middle})">CPU, µs an event</text>`,
  ];
}

function xAxis(sizes: readonly Size[], x: Scale): string[] {
  return [
    `<line class="axis" x1="${PLOT.left}" x2="${PLOT.right}" y1="${PLOT.bottom}" y2="${PLOT.bottom}"/>`,
    ...sizes.map(
      ({ shipments }) =>
        `<text x="${x(shipments)}" y="${PLOT.bottom + 20}" text-anchor="middle">${shipments.toLocaleString("en")}</text>`,
    ),
    `<text x="${(PLOT.left + PLOT.right) / 2}" y="${PLOT.bottom + 44}" text-anchor="middle">shipments (logarithmic)</text>`,
  ];
}

/** What linear growth from the smallest size would be, as far as it stays on the chart. */
function linear(first: Size | undefined, top: number, x: Scale, y: Scale): string[] {
  if (!first) return [];
  const start = whole(first.toState);
  const most = top / start;
  const points = Array.from({ length: 25 }, (_, n) => most ** (n / 24)).map(
    (times) => `${x(first.shipments * times).toFixed(1)},${y(start * times).toFixed(1)}`,
  );
  const end = x(first.shipments * most);
  return [
    `<polyline class="line linear" points="${points.join(" ")}"/>`,
    `<text class="note" x="${end + 6}" y="${PLOT.top + 12}">linear growth</text>`,
  ];
}

function line({ kind, usOf }: Series, sizes: readonly Size[], x: Scale, y: Scale): string {
  const points = sizes.map((size) => [x(size.shipments), y(usOf(size))] as const);
  const path = points.map(([left, down]) => `${left.toFixed(1)},${down.toFixed(1)}`).join(" ");
  const [family = ""] = kind.split(" ");
  const dots = points.map(
    ([left, down]) =>
      `<circle class="${family}" cx="${left.toFixed(1)}" cy="${down.toFixed(1)}" r="3.5"/>`,
  );
  return `<polyline class="line ${kind}" points="${path}"/>${dots.join("")}`;
}

/** Beside the last point, moved apart where they would meet. */
function labels(last: Size | undefined, y: Scale): string[] {
  if (!last) return [];
  const wanted = SERIES.map((series) => ({ ...series, at: y(series.usOf(last)) }));
  wanted.sort((one, other) => one.at - other.at);
  let above = Number.NEGATIVE_INFINITY;
  return wanted.map(({ name, kind, usOf, at }) => {
    above = Math.max(at, above + 17);
    const text = `${name} ${usOf(last).toFixed(0)}`;
    return `<text class="${kind.split(" ")[0]}" x="${PLOT.right + 12}" y="${above + 4}">${text}</text>`;
  });
}
