/** The demo's setup: two companies, three channels, four couriers. Keys and tokens are fixed, for the README's lines. */
import { DEMO_API_KEYS, DEMO_COMPANIES } from "#core/configuration/store/demo-identity.ts";
import type { SetupChannel, SetupFile } from "#core/setup/rules/setup.ts";
import { DEMO_COURIERS, demoCourierSetup } from "./couriers.ts";

export interface DemoChannel {
  readonly code: string;
  readonly apiKey: string;
  readonly origin: string;
  /** Before the number of an order reference. */
  readonly orderPrefix: string;
  readonly webhookSecret: string;
  /** Couriers know the channel by it. */
  readonly senderAccount: string;
  readonly seat: { readonly city: string; readonly province: string; readonly cap: string };
}

const MILAN = { city: "Milano", province: "MI", cap: "20121" };
const NAPLES = { city: "Napoli", province: "NA", cap: "80121" };

export const DEMO_CHANNELS = [
  {
    code: "aurora-shop",
    apiKey: DEMO_API_KEYS.auroraShop,
    origin: "shopify",
    orderPrefix: "AUR",
    webhookSecret: `whsec_${"a1".repeat(32)}`,
    senderAccount: "ACC-AURORA-1",
    seat: MILAN,
  },
  {
    code: "aurora-market",
    apiKey: DEMO_API_KEYS.auroraMarket,
    origin: "api",
    orderPrefix: "AMK",
    webhookSecret: `whsec_${"b2".repeat(32)}`,
    senderAccount: "ACC-AURORA-2",
    seat: MILAN,
  },
  {
    code: "tirreno-it",
    apiKey: DEMO_API_KEYS.tirreno,
    origin: "magento",
    orderPrefix: "TIR",
    webhookSecret: `whsec_${"c3".repeat(32)}`,
    senderAccount: "ACC-TIRRENO",
    seat: NAPLES,
  },
] as const satisfies readonly DemoChannel[];

const [AURORA_SHOP, AURORA_MARKET, TIRRENO] = DEMO_CHANNELS;

export const BOX_CODES = ["S", "M", "L"] as const;

/** They make labels and push no events. */
const labelCarriers = (nationalCarrier: string) => [
  "GENERIC",
  `${nationalCarrier}_ITA`,
  `${nationalCarrier}-ITA-CRONO`,
];

const isNoDemoCourier = (code: string) => DEMO_COURIERS.every((courier) => courier.code !== code);

const BOXES = [
  { code: "S", length: 30, width: 20, height: 10 },
  { code: "M", length: 40, width: 30, height: 25 },
  { code: "L", length: 60, width: 40, height: 40 },
];

/**
 * @param receiverUrl base of the demo merchant's receiver, `https://host:port`
 * @param depotUrl gateway of the couriers' depots
 * @param nationalCarrier prefix of its codes
 */
export function demoSetup(
  receiverUrl: string,
  depotUrl: (mode: "sync" | "deferred") => string,
  nationalCarrier = "POSTE",
): SetupFile {
  const carriers = labelCarriers(nationalCarrier);
  const hook = (channel: DemoChannel, code: string) => ({
    code,
    url: `${receiverUrl}/hooks/${channel.code}`,
    alertEmail: `ops@${channel.code}.example`,
    secret: channel.webhookSecret,
  });
  return {
    couriers: DEMO_COURIERS.map((courier) => demoCourierSetup(courier, depotUrl)),
    platforms: ["shopify", "magento", "api"],
    companies: [
      {
        code: DEMO_COMPANIES[0],
        name: "Aurora Casa S.p.A.",
        language: "it",
        seatPostcode: MILAN.cap,
        products: ["api-parcels", "checkAddress"],
        boxes: BOXES,
        channels: [
          {
            ...demoChannel(AURORA_SHOP, "Aurora Casa Shop", true, carriers),
            webhooks: [{ ...hook(AURORA_SHOP, "order-service"), trigger: "status_change" }],
            orders: demoOrders(AURORA_SHOP, 8),
            sandbox: [
              {
                id: 1,
                stringValue: "prova",
                intValue: 1,
                boolValue: true,
                floatValue: 1.5,
                dateTimeValue: null,
              },
            ],
          },
          {
            ...demoChannel(AURORA_MARKET, "Aurora Casa Marketplace", false, carriers),
            webhooks: [
              {
                ...hook(AURORA_MARKET, "marketplace-sync"),
                trigger: "first_occurrence",
                include: ["consignee"],
              },
            ],
            orders: demoOrders(AURORA_MARKET, 4),
          },
        ],
      },
      {
        code: DEMO_COMPANIES[1],
        name: "Tirreno Sport S.r.l.",
        language: "it",
        seatPostcode: NAPLES.cap,
        products: ["checkAddress"],
        boxes: BOXES,
        channels: [
          {
            ...demoChannel(TIRRENO, "Tirreno Sport Italia", false, carriers),
            webhooks: [
              {
                ...hook(TIRRENO, "customer-care"),
                trigger: "status_change",
                statuses: ["OUT_FOR_DELIVERY", "FAILED_ATTEMPT", "EXCEPTION", "DELIVERED"],
              },
            ],
            orders: demoOrders(TIRRENO, 6),
          },
        ],
      },
    ],
  };
}

function demoChannel(
  channel: DemoChannel,
  name: string,
  companyWideRead: boolean,
  carriers: readonly string[],
): SetupChannel {
  return {
    code: channel.code,
    name,
    language: "it",
    trackingPage: true,
    addressCheck: true,
    apiKeys: [{ code: "shop-backend", key: channel.apiKey, companyWideRead }],
    couriers: [
      ...DEMO_COURIERS.map((courier) => ({
        code: courier.code,
        transcodings: [courier.name],
        senderAccounts: [channel.senderAccount],
      })),
      ...carriers.filter(isNoDemoCourier).map((code) => ({ code, errorLabel: true })),
    ],
    sender: {
      code: "HQ",
      businessName: name,
      street: "Via Roma 1",
      city: channel.seat.city,
      state: channel.seat.province,
      postcode: channel.seat.cap,
      country: "IT",
    },
    emails: {
      managed: true,
      from: `noreply@${channel.code}.example`,
      templates: [
        {
          event: "review-request",
          language: "it",
          subject: "Com'è andata la consegna?",
          body: "Ciao, la tua spedizione è arrivata. {{custom1}} Lasciaci una recensione.",
        },
      ],
    },
  };
}

const GOODS = [
  { sku: "LMP-01", name: "Lampada da tavolo", price: 49.9, weight: 1.8 },
  { sku: "TAP-02", name: "Tappeto 120x180", price: 89, weight: 4.2 },
  { sku: "TAZ-06", name: "Set di 6 tazze", price: 24.5, weight: 2.1 },
  { sku: "ZAI-30", name: "Zaino 30 litri", price: 59, weight: 0.9 },
] as const;

function demoOrders(channel: DemoChannel, count: number): NonNullable<SetupChannel["orders"]> {
  return Array.from({ length: count }, (_, at) => {
    const { sku, name, price, weight } = GOODS[at % GOODS.length] ?? GOODS[0];
    const day = String(1 + at).padStart(2, "0");
    return {
      source: channel.origin,
      reference: String(1001 + at),
      orderId: `${channel.orderPrefix.toLowerCase()}-order-${1001 + at}`,
      createdAt: `2026-11-${day}T10:${day}:00+01:00`,
      consignee: {
        name: "Giulia Bianchi",
        street: `Via Garibaldi ${1 + at}`,
        city: "Roma",
        state: "RM",
        postcode: "00184",
        country: "IT",
        email: "giulia.bianchi@cliente.example",
      },
      parcels: [{ weight, length: 30, width: 20, height: 10 }],
      items: [{ sku, name, quantity: 1, price, total: price, weight }],
    };
  });
}
