/** Italy by region: the darker, the longer a parcel takes; without deliveries hatched. Shapes: @svg-maps/italy (CC BY 4.0). */
import { Group, Stack, Text, Tooltip } from "@mantine/core";
import italy from "@svg-maps/italy";
import type { ProvinceInsight } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./italy-map.module.css";
import { ITALIAN_NAMES, REGION_PREFIXES } from "./regions.ts";

const SHADES = [1, 2, 3, 4, 5] as const;
/** Of the pattern of a region without deliveries. */
const HATCHED = "no-deliveries";

/** The package's own type leads to one that it does not bring. */
const SHAPES = italy as {
  readonly viewBox: string;
  readonly locations: ReadonlyArray<Pick<Region, "id" | "name" | "path">>;
};

interface Region {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly deliveries: number;
  readonly leadMean: number | null;
}

export function ItalyMap({ provinces }: { readonly provinces: readonly ProvinceInsight[] }) {
  const { t, language } = useText();
  const f = useFormat();
  const regions = SHAPES.locations.map(
    ({ id, name, path }): Region => ({
      id,
      path,
      name: language === "it" ? (ITALIAN_NAMES[id] ?? name) : name,
      ...meanOf(provinces, REGION_PREFIXES[id] ?? []),
    }),
  );
  const means = regions.flatMap(({ leadMean }) => leadMean ?? []);
  const range = { low: Math.min(...means), high: Math.max(...means) };
  return (
    <Stack align="center" gap="xs">
      <figure className={css["figure"]} aria-label={t.benchmarks.map}>
        {/* biome-ignore lint/a11y/noSvgWithoutTitle: the figure is named; a title would hide the regions' own labels */}
        <svg viewBox={SHAPES.viewBox} className={css["map"]}>
          <defs>
            <pattern
              id={HATCHED}
              width="8"
              height="8"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <rect width="8" height="8" className={css["ground"]} />
              <rect width="3" height="8" className={css["line"]} />
            </pattern>
          </defs>
          {regions.map((region) => (
            <Tooltip.Floating key={region.id} label={toldOf(region)}>
              {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: a shape does nothing but tell */}
              <path
                d={region.path}
                {...fillOf(region.leadMean, range)}
                role="img"
                aria-label={toldOf(region)}
              />
            </Tooltip.Floating>
          ))}
        </svg>
      </figure>
      <Group gap="lg" justify="center">
        {means.length > 0 && (
          <Group gap={6} wrap="nowrap">
            <Text size="xs">{t.benchmarks.days(f.decimal(range.low))}</Text>
            {SHADES.map((shade) => (
              <span key={shade} className={`${css["key"]} ${css[`key${shade}`]}`} />
            ))}
            <Text size="xs">{t.benchmarks.days(f.decimal(range.high))}</Text>
          </Group>
        )}
        {means.length < regions.length && (
          <Group gap={6} wrap="nowrap">
            <span className={`${css["key"]} ${css["hatched"]}`} />
            <Text size="xs">{t.benchmarks.noDeliveries}</Text>
          </Group>
        )}
      </Group>
      <Text size="xs" c="dimmed">
        {t.benchmarks.mapSource}
      </Text>
    </Stack>
  );

  function toldOf({ name, deliveries, leadMean }: Region): string {
    if (leadMean === null) return `${name}: ${t.benchmarks.noDeliveries}`;
    return `${name}: ${t.benchmarks.days(f.decimal(leadMean))}, ${f.whole(deliveries)} ${t.benchmarks.deliveries.toLowerCase()}`;
  }
}

/** The mean over the deliveries of all provinces of a region. */
function meanOf(provinces: readonly ProvinceInsight[], prefixes: readonly string[]) {
  const own = provinces.filter(({ prefix }) => prefixes.includes(prefix));
  const deliveries = own.reduce((sum, row) => sum + row.deliveries, 0);
  if (deliveries === 0) return { deliveries, leadMean: null };
  const days = own.reduce((sum, row) => sum + row.deliveries * row.leadMean, 0);
  return { deliveries, leadMean: days / deliveries };
}

/** In five shades from the fastest to the slowest. */
function fillOf(
  mean: number | null,
  { low, high }: { readonly low: number; readonly high: number },
) {
  if (mean === null) return { fill: `url(#${HATCHED})` };
  const share = high === low ? 0 : (mean - low) / (high - low);
  const shade = Math.min(SHADES.length, 1 + Math.floor(share * SHADES.length));
  return { className: css[`shade${shade}`] };
}
