/** What the demo's data are recognized by, in stores that an earlier version has written too. */

/** Codes of its companies. */
export const DEMO_COMPANIES = ["aurora", "tirreno"] as const;
/** API keys of its channels. */
export const DEMO_API_KEYS = {
  auroraShop: "demo_key_aurora_shop",
  auroraMarket: "demo_key_aurora_market",
  tirreno: "demo_key_tirreno_it",
} as const;
/** Deliveries of the year before the demo have ids from here on, beyond those that shipments are given. */
export const DEMO_FIRST_ID = 900_000_000_000;
