/** Setup files of the tests: two companies, three channels, two couriers. */
import type { Channel } from "#core/configuration/store/configuration.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile, SetupWebhook } from "#core/setup/rules/setup.ts";

export const WEBHOOK_SECRET = `whsec_${"0123456789abcdef".repeat(4)}`;

export type WebhookOptions = Partial<SetupWebhook> & { readonly url: string };

/** With endpoints of channel acme-it: `main`, `second`, … unless they name themselves. */
export function webhookSetup(...webhooks: readonly WebhookOptions[]): SetupFile {
  const setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  if (!channel) throw new Error("the test setup has no channel");
  channel.webhooks = webhooks.map((webhook, at) => ({
    code: ["main", "second", "third", "fourth", "fifth"][at] ?? "more",
    alertEmail: "ops@acme.test",
    secret: WEBHOOK_SECRET,
    ...webhook,
  }));
  return setup;
}

/** A fresh copy each time, so that a test can change it. */
export function testSetup(): SetupFile {
  return {
    platforms: ["shopify", "magento", "api"],
    couriers: [
      {
        code: "GLS_ITA",
        name: "GLS Italy",
        tokens: ["tok_gls_1"],
        signingSecrets: ["sig_gls_1"],
        rateLimit: { perSecond: 10_000, burst: 10_000 },
        catalogue: [
          { code: "INF", description: "Dati ricevuti", terminal: false, status: "INFO_RECEIVED" },
          { code: "DEP", description: "Partita", terminal: false, status: "DEPARTED" },
          { code: "TRN", description: "In transito", terminal: false, status: "IN_TRANSIT" },
          { code: "OUT", description: "In consegna", terminal: false, status: "OUT_FOR_DELIVERY" },
          {
            code: "HLD",
            description: "In giacenza",
            terminal: false,
            status: "EXCEPTION",
            statusDetail: 4,
          },
          { code: "DLV", description: "Consegnata", terminal: true, status: "DELIVERED" },
          { code: "XYZ", description: "not yet mapped", terminal: false },
        ],
      },
      {
        code: "BRT_ITA",
        name: "BRT",
        tokens: ["tok_brt_1"],
        rateLimit: { perSecond: 10_000, burst: 10_000 },
        catalogue: [
          { code: "700", description: "In transito", terminal: false, status: "IN_TRANSIT" },
          { code: "704", description: "Consegnata", terminal: true, status: "DELIVERED" },
        ],
      },
    ],
    companies: [
      {
        code: "acme",
        name: "Acme S.p.A.",
        language: "it",
        seatPostcode: "20121",
        boxes: [{ code: "S", length: 30, width: 20, height: 10 }],
        channels: [
          {
            code: "acme-it",
            name: "Acme Italia",
            rateLimit: { bucketSize: 100_000, refillRate: 100_000 },
            apiKeys: [{ code: "main", key: "key_acme_main", companyWideRead: true }],
            couriers: [
              { code: "GLS_ITA", transcodings: ["GLS", "corriere gls"], senderAccounts: ["ACC-1"] },
              { code: "BRT_ITA" },
            ],
          },
          {
            code: "acme-outlet",
            rateLimit: { bucketSize: 100_000, refillRate: 100_000 },
            apiKeys: [{ code: "main", key: "key_acme_outlet" }],
            couriers: [{ code: "GLS_ITA" }],
          },
        ],
      },
      {
        code: "beta",
        seatPostcode: "80121",
        channels: [
          {
            code: "beta-it",
            rateLimit: { bucketSize: 100_000, refillRate: 100_000 },
            apiKeys: [{ code: "main", key: "key_beta_main" }],
            couriers: [{ code: "GLS_ITA" }],
          },
        ],
      },
    ],
  };
}

/** A channel of the installation as it is configured. */
export function channelOf({ live }: Pick<Runtime, "live">, code = "acme-it"): Channel {
  const channel = live.configuration().channelByCode.get(code);
  if (!channel) throw new Error(`no channel ${code}`);
  return channel;
}
