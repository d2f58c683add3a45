/** A slider from a shipment's creation over the receipts of its events: everything is shown as it was known then. */
import { Box, Slider, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import type { Trace } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

/** The time that the page shows stands in its address; null = now. */
export function useAsOf() {
  const { asOf = null } = useSearch({ strict: false });
  const navigate = useNavigate();
  const show = (wanted: string | null) => {
    const search = wanted === null ? {} : { asOf: wanted };
    void navigate({ to: ".", search, replace: true, resetScroll: false });
  };
  return [asOf, show] as const;
}

interface AsOfSliderProps {
  /** As it is known now. */
  readonly trace: Trace;
  readonly asOf: string | null;
  readonly onShow: (asOf: string | null) => void;
}

export function AsOfSlider({ trace, asOf, onShow }: AsOfSliderProps) {
  const { t } = useText();
  const f = useFormat();
  /** Where the thumb is while it is being moved. */
  const [held, hold] = useState<number | null>(null);
  if (trace.events.length === 0) return null;
  const { createdAt, events } = trace;
  const received = events.map(({ receivedAt }) => receivedAt);
  const stops = [...new Set([createdAt, ...received.filter((at) => at > createdAt)])].sort();
  const now = stops.length;
  const at = held ?? (asOf === null ? now : placeOf(stops, asOf));
  const nameOf = (place: number) => {
    const stop = stops[place];
    return stop === undefined ? t.shipments.now : f.second(stop);
  };
  return (
    <Box mb="lg" px="xs">
      <Text size="sm" fw={500} mb={4}>
        {t.shipments.asOf(nameOf(at))}
      </Text>
      <Slider
        value={at}
        min={0}
        max={now}
        step={1}
        label={nameOf}
        thumbLabel={t.shipments.asOfLabel}
        thumbValueText={nameOf}
        onChange={hold}
        onChangeEnd={(place) => {
          hold(null);
          onShow(stops[place] ?? null);
        }}
      />
    </Box>
  );
}

/** The latest stop that is not after it. */
function placeOf(stops: readonly string[], asOf: string): number {
  const atMs = Date.parse(asOf);
  const last = stops.findLastIndex((stop) => Date.parse(stop) <= atMs);
  return Math.max(0, last);
}
