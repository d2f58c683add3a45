/** What a chart says of one instant. */
import { Table, Text } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./charts.module.css";
import type { TimeChartProps } from "./series.ts";

interface ChartTipProps extends TimeChartProps {
  readonly at: number;
  /** Where it stands, and how much room there is, in pixels. */
  readonly x: number;
  readonly width: number;
}

const GAP_PX = 12;

export function ChartTip({ series, at, x, width, write, writeAt }: ChartTipProps) {
  const { t } = useText();
  const isRight = x > width / 2;
  const points = series.flatMap(({ name, tone, points: own }) => {
    const point = own.find((one) => one.at === at);
    return point ? [{ name, tone, point }] : [];
  });
  const side = isRight ? { right: width - x + GAP_PX } : { left: x + GAP_PX };
  return (
    <div className={css["tip"]} style={side} aria-hidden>
      <Text size="xs" fw={600}>
        {writeAt(at)}
      </Text>
      <Table withRowBorders={false} verticalSpacing={1} horizontalSpacing={4} fz="xs">
        <Table.Tbody className="figures">
          {points.map(({ name, tone, point }) => (
            <Table.Tr key={name}>
              <Table.Td>
                <span className={css["key"]}>
                  <span className={css["swatch"]} data-tone={tone} />
                  {name}
                </span>
              </Table.Td>
              <Table.Td ta="right" fw={600}>
                {point.value === null ? "–" : write(point.value)}
              </Table.Td>
              <Table.Td c="dimmed">
                {[point.note, point.isPartial ? t.charts.partialShort : ""]
                  .filter(Boolean)
                  .join(" · ")}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
