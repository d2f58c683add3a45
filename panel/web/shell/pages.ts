/** The navigation: which pages there are, and what a visitor needs for them. */
import {
  IconApi,
  IconBell,
  IconBuildingStore,
  IconChartHistogram,
  IconDatabaseSearch,
  IconGauge,
  IconHistory,
  IconHome,
  IconInbox,
  IconMailOff,
  IconPackage,
  IconProgress,
  IconStethoscope,
  IconTruck,
  IconUsers,
  IconWebhook,
} from "@tabler/icons-react";
import type { AccountKind, Capability } from "#core/accounts/rules/roles.ts";
import type { Messages } from "#panel/web/i18n/en.ts";

export interface NavPage {
  readonly to: string;
  readonly label: keyof Messages["nav"];
  readonly icon: typeof IconGauge;
  /** What the visitor must be allowed to do. */
  readonly needs: Capability;
  /** Only for members of such a party; absent = for everybody who may. */
  readonly of?: AccountKind;
}

export interface NavGroup {
  readonly label: keyof Messages["app"]["groups"];
  readonly pages: readonly NavPage[];
}

export const NAV_GROUPS: readonly NavGroup[] = [
  {
    label: "run",
    pages: [
      { to: "/overview", label: "overview", icon: IconGauge, needs: "overview:read" },
      {
        to: "/home",
        label: "home",
        icon: IconHome,
        needs: "shipments:read",
        of: "company",
      },
      { to: "/shipments", label: "shipments", icon: IconPackage, needs: "shipments:read" },
      { to: "/webhooks", label: "webhooks", icon: IconWebhook, needs: "webhooks:read" },
    ],
  },
  {
    label: "setup",
    pages: [
      { to: "/companies", label: "companies", icon: IconBuildingStore, needs: "channels:read" },
      { to: "/carriers", label: "couriers", icon: IconTruck, needs: "couriers:read" },
      { to: "/inbox", label: "inbox", icon: IconInbox, needs: "events:read" },
    ],
  },
  {
    label: "data",
    pages: [
      {
        to: "/benchmarks",
        label: "benchmarks",
        icon: IconChartHistogram,
        needs: "benchmarks:read",
      },
      { to: "/sql", label: "sql", icon: IconDatabaseSearch, needs: "sql:run" },
    ],
  },
  {
    label: "system",
    pages: [
      { to: "/alarms", label: "alarms", icon: IconBell, needs: "alarms:read" },
      { to: "/requests", label: "requests", icon: IconApi, needs: "requests:read" },
      { to: "/jobs", label: "jobs", icon: IconProgress, needs: "jobs:read" },
      { to: "/dead-letters", label: "deadLetters", icon: IconMailOff, needs: "dead-letters:read" },
      { to: "/doctor", label: "doctor", icon: IconStethoscope, needs: "doctor:read" },
      { to: "/accounts", label: "accounts", icon: IconUsers, needs: "accounts:read" },
      { to: "/audit", label: "audit", icon: IconHistory, needs: "audit:read" },
    ],
  },
];

const PAGES = NAV_GROUPS.flatMap(({ pages }) => pages);

/** Who is logged in. */
interface Visitor {
  readonly kind: AccountKind;
  readonly capabilities: readonly string[];
}

/** What a role does not include is not there for it, by a typed address either. */
export function mayOpen({ kind, capabilities }: Visitor, { needs, of }: NavPage): boolean {
  return capabilities.includes(needs) && (of === undefined || of === kind);
}

export function maySee(visitor: Visitor, path: string): boolean {
  const page = PAGES.find(({ to }) => path === to || path.startsWith(`${to}/`));
  return page === undefined || mayOpen(visitor, page);
}

/** Where a visitor begins: the first page that they may open. */
export function firstPage(visitor: Visitor): string {
  return PAGES.find((page) => mayOpen(visitor, page))?.to ?? "/me";
}
