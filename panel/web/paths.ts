/** Of a link that is its own password. */
export const SHARED_QUALITY_PATH = "/quality/:token";

/** Addresses of the application's pages. The server answers each of them with the shell; the router shows the page. */
export const PAGE_PATHS = [
  "/",
  "/login",
  "/invitation/:token",
  SHARED_QUALITY_PATH,
  "/overview",
  "/home",
  "/shipments",
  "/shipments/:id",
  "/webhooks",
  "/webhooks/:id",
  "/carriers",
  "/carriers/:code",
  "/inbox",
  "/requests",
  "/companies",
  "/companies/:code",
  "/channels/:code",
  "/benchmarks",
  "/sql",
  "/alarms",
  "/jobs",
  "/dead-letters",
  "/doctor",
  "/accounts",
  "/audit",
  "/me",
] as const;
export type PagePath = (typeof PAGE_PATHS)[number];
