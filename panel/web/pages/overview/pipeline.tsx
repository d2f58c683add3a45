/** The way of an event through the product, with the figures of this moment on its arrows. */
import { Text } from "@mantine/core";
import {
  IconBell,
  IconBuildingStore,
  IconChartHistogram,
  IconDatabase,
  IconLogin2,
  IconRoute,
  IconTruck,
  IconUser,
  IconWebhook,
} from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { Lag, Overview } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./pipeline.module.css";

export function Pipeline({ overview }: { readonly overview: Overview }) {
  const { t } = useText();
  const f = useFormat();
  const { rates, ledger, lag, queues, webhooks } = overview;
  const rate = (value: number) => t.overview.perSecondShort(f.rate(value));
  const waiting = (count: number) => t.overview.waiting(f.compact(count));
  const of = (name: string) => lagOf(lag, name);
  // Every change is looked at for webhooks, so that consumer's rate is the change log's.
  const changes = [rate(of("webhooks").perSecond), waiting(queues.changeLog)];
  return (
    <div className={css["board"]}>
      <Node icon={IconTruck} name={t.overview.couriers} />
      <Arrow
        lines={[rate(rates.acceptedPerSecond), t.overview.received(f.compact(ledger.received))]}
      />
      <Node icon={IconLogin2} name={t.overview.ingest} strong />
      <Arrow lines={[rate(of("track").perSecond), waiting(of("track").entries)]} />
      <Node icon={IconRoute} name={t.overview.track} strong />
      <Arrow lines={changes} />
      <div className={css["fan"]}>
        <Node icon={IconWebhook} name={t.overview.webhooks} strong />
        <Arrow
          lines={[
            t.overview.perMinuteShort(f.rate(webhooks.succeededPerMinute)),
            waiting(ledger.pending),
          ]}
        />
        <Node icon={IconBuildingStore} name={t.overview.merchants} />
        <Node icon={IconBell} name={t.overview.notify} strong />
        <Arrow lines={[rate(of("notify").perSecond), waiting(of("notify").entries)]} />
        <Node icon={IconUser} name={t.overview.recipients} />
        <Node icon={IconChartHistogram} name={t.overview.analytics} strong />
        <Arrow
          lines={[rate(of("analytics").perSecond), freshness(overview, t.overview, f.duration)]}
        />
        <Node icon={IconDatabase} name={t.overview.clickhouse} />
      </div>
    </div>
  );
}

function freshness(
  { stores }: Overview,
  words: { readonly behind: (duration: string) => string; readonly upToDate: string },
  duration: (seconds: number) => string,
): string {
  const { behindSeconds } = stores.clickhouse;
  return behindSeconds < 1 ? words.upToDate : words.behind(duration(behindSeconds));
}

function lagOf(lags: readonly Lag[], name: string): Pick<Lag, "entries" | "perSecond"> {
  return lags.find(({ group }) => group === name) ?? { entries: 0, perSecond: 0 };
}

interface NodeProps {
  readonly icon: typeof IconTruck;
  readonly name: string;
  /** A part of the product. */
  readonly strong?: boolean;
}

function Node({ icon: Icon, name, strong = false }: NodeProps): ReactNode {
  return (
    <div className={`${css["node"]} ${strong ? css["strong"] : ""}`}>
      <Icon size={22} stroke={1.6} aria-hidden />
      <Text size="sm" fw={600}>
        {name}
      </Text>
    </div>
  );
}

function Arrow({ lines }: { readonly lines: readonly string[] }): ReactNode {
  return (
    <div className={css["arrow"]}>
      {lines.map((line) => (
        <span key={line} className="figures">
          {line}
        </span>
      ))}
    </div>
  );
}
