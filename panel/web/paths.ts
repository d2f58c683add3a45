/** Addresses of the application's pages. The server answers each of them with the shell; the router shows the page. */
export const PAGE_PATHS = [
  "/",
  "/login",
  "/invitation/:token",
  "/overview",
  "/shipments",
  "/shipments/:id",
  "/webhooks",
  "/webhooks/:id",
  "/carriers",
  "/carriers/:code",
  "/benchmarks",
  "/sql",
  "/dead-letters",
  "/accounts",
  "/audit",
  "/me",
] as const;
