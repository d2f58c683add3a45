/** The navigation: which pages there are, and what a visitor needs for them. */
import { IconGauge } from "@tabler/icons-react";
import type { Messages } from "#panel/web/i18n/en.ts";

export interface NavPage {
  readonly to: string;
  readonly label: keyof Messages["nav"];
  readonly icon: typeof IconGauge;
  /** What the visitor must be allowed to do. */
  readonly needs: string;
}

export interface NavGroup {
  readonly label: keyof Messages["app"]["groups"];
  readonly pages: readonly NavPage[];
}

export const NAV_GROUPS: readonly NavGroup[] = [
  {
    label: "run",
    pages: [{ to: "/overview", label: "overview", icon: IconGauge, needs: "overview:read" }],
  },
];
