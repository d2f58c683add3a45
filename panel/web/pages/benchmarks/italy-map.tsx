/** Italy by region: the darker, the longer a parcel takes. Shapes: @svg-maps/italy (CC BY 4.0). */
import { Group, Stack, Text, Tooltip } from "@mantine/core";
import italy from "@svg-maps/italy";
import type { ProvinceInsight } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./italy-map.module.css";
import { ITALIAN_NAMES, REGION_PREFIXES } from "./regions.ts";

const SHADES = [1, 2, 3, 4, 5] as const;

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
          {regions.map((region) => (
            <Tooltip.Floating key={region.id} label={toldOf(region)}>
              {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: a shape does nothing but tell */}
              <path
                d={region.path}
                className={css[`shade${shadeOf(region.leadMean, range)}`]}
                role="img"
                aria-label={toldOf(region)}
              />
            </Tooltip.Floating>
          ))}
        </svg>
      </figure>
      {means.length > 0 && (
        <Group gap={6} wrap="nowrap">
          <Text size="xs">{t.benchmarks.days(f.decimal(range.low))}</Text>
          {SHADES.map((shade) => (
            <span key={shade} className={`${css["key"]} ${css[`key${shade}`]}`} />
          ))}
          <Text size="xs">{t.benchmarks.days(f.decimal(range.high))}</Text>
        </Group>
      )}
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

/** From 1, the fastest, to 5; 0 without deliveries. */
function shadeOf(
  mean: number | null,
  { low, high }: { readonly low: number; readonly high: number },
): number {
  if (mean === null) return 0;
  const share = high === low ? 0 : (mean - low) / (high - low);
  return Math.min(SHADES.length, 1 + Math.floor(share * SHADES.length));
}
