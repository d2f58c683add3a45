/** Of VitePress, for the pages that `main.ts` has laid out beside it. */
import { defineConfig } from "vitepress";
import { anchorOf } from "./pages.ts";

const page = (text: string, link: string, items?: { text: string; link: string }[]) => ({
  text,
  link,
  ...(items && { collapsed: true, items }),
});

const operations = (text: string, anchor: string) => page(text, `/operations#${anchor}`);

const DECISIONS = [
  page("Access and secrets", "/decisions/access-and-secrets"),
  page("Analytics", "/decisions/analytics"),
  page("Archive", "/decisions/archive"),
  page("Configuration", "/decisions/configuration"),
  page("Documents and releases", "/decisions/documents-and-releases"),
  page("Ingest and references", "/decisions/ingest-and-references"),
  page("Logs and consumers", "/decisions/logs-and-consumers"),
  page("Messages, labels and pages", "/decisions/messages-labels-and-merchants-pages"),
  page("Redis, outages and clusters", "/decisions/redis-outages-and-clusters"),
  page("Search", "/decisions/search"),
  page("State, history and mapping", "/decisions/state-history-and-mapping"),
  page("Store layout", "/decisions/store-layout"),
  page("Traces", "/decisions/traces"),
  page("Webhooks", "/decisions/webhooks"),
];

const SIDEBAR = [
  {
    text: "Start",
    items: [page("What Waybill is", "/"), page("Five minutes", "/start")],
  },
  {
    text: "Carriers",
    items: [page("Sending events", "/couriers")],
  },
  {
    text: "Merchants",
    items: [
      page("Using the API", "/merchants"),
      page("Receiving webhooks", "/webhooks"),
      page("Moving from webhooks v1", "/webhooks-v1"),
      page("Test mode", "/test-mode"),
      page("TypeScript client", "/client"),
      page("Python client", "/python"),
    ],
  },
  {
    text: "Operators",
    items: [
      page("Operating Waybill", "/operations", [
        operations("Health and metrics", "health-and-metrics"),
        operations("Alarms", "alarms"),
        operations("Backup and restore", "backup-and-restore"),
        operations("Upgrades", "upgrades"),
        operations("Keys and secrets", "secrets-of-the-installation"),
        operations("Containers", "containers"),
        operations("Kubernetes", "kubernetes"),
      ]),
      page("Compatibility", "/compatibility"),
      page("Sizing", "/scale"),
      page("Performance", "/performance"),
      page("Reliability", "/reliability"),
      page("Changelog", "/changelog"),
    ],
  },
  { text: "Data team", items: [page("Analytics", "/analytics")] },
  {
    text: "Contributors",
    items: [
      page("Contributing", "/contributing"),
      page("Architecture", "/architecture", DECISIONS),
      page("Limits", "/limits"),
    ],
  },
];

// biome-ignore lint/style/noDefaultExport: VitePress reads no other.
export default defineConfig({
  title: "Waybill",
  description: "Tracks merchants' shipments across carriers.",
  // biome-ignore lint/style/noProcessEnv: VitePress passes no arguments on to its configuration.
  base: process.env["SITE_BASE"] ?? "/docs/",
  cleanUrls: true,
  markdown: { anchor: { slugify: anchorOf } },
  themeConfig: {
    sidebar: SIDEBAR,
    outline: { level: [2, 3] },
    search: { provider: "local" },
  },
});
