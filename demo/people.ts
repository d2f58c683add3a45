/**
 * The people of the demo, who begin once: their accounts, what they changed in the panel, the code that an operator mapped, and
 * the addresses that they had checked. So a newcomer finds accounts, an audit log, a change of a mapping and a bill, and can look
 * at the panel as a merchant or a courier does.
 */
import type { AccountKind, Role } from "#core/accounts/rules/roles.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import type { MerchantClient } from "./merchant-client.ts";
import { createPersistentFetch, pause } from "./persistent-fetch.ts";
import { PLACES } from "./places.ts";

/** Of those who have accepted their invitation. They see demo data only; nobody of them is an operator. */
export const DEMO_PASSWORD = "waybill-demo";

interface Person {
  readonly email: string;
  readonly name: string;
  readonly kind: AccountKind;
  readonly role: Role;
  readonly companyCode?: string;
  readonly courierCode?: string;
}

export const MERCHANT = {
  email: "giulia.ferri@aurora.example",
  name: "Giulia Ferri",
  kind: "company",
  role: "owner",
  companyCode: "aurora",
} as const satisfies Person;

export const COURIER = {
  email: "luca.moro@gls.example",
  name: "Luca Moro",
  kind: "courier",
  role: "owner",
  courierCode: "GLS_ITA",
} as const satisfies Person;

/** Invited, and not here yet. */
const INVITED: readonly Person[] = [
  { email: "elena.ricci@waybill.example", name: "Elena Ricci", kind: "operator", role: "operator" },
  {
    email: "dario.fonti@waybill.example",
    name: "Dario Fonti",
    kind: "operator",
    role: "read-only",
  },
  {
    email: "paolo.riva@aurora.example",
    name: "Paolo Riva",
    kind: "company",
    role: "member",
    companyCode: "aurora",
  },
  {
    email: "sara.greco@tirreno.example",
    name: "Sara Greco",
    kind: "company",
    role: "owner",
    companyCode: "tirreno",
  },
];

/** What the merchant and the courier do on their first day. */
const MERCHANTS_CHANGES = [
  [
    ...["PUT", "/channels/aurora-shop/templates/delivered/it"],
    {
      subject: "Il tuo ordine {{orderReference}} è arrivato",
      body: "<p>Ciao {{consignee.name}},</p><p>la spedizione {{trackingNumber}} è stata consegnata. Grazie!</p>",
    },
  ],
  [
    ...["PUT", "/channels/aurora-shop/templates/out_for_delivery/it"],
    {
      subject: "In consegna oggi: {{trackingNumber}}",
      body: "<p>Ciao {{consignee.name}},</p><p>il corriere ti consegna oggi la spedizione {{trackingNumber}}.</p>",
    },
  ],
  ["PUT", "/companies/aurora/boxes/XL", { length: 80, width: 60, height: 60 }],
  [
    ...["POST", "/channels/aurora-shop/api-keys"],
    { code: "warehouse", scopes: ["shipments:read", "labels:read", "labels:write"] },
  ],
] as const;
const COURIERS_CHANGES = [["POST", "/couriers/GLS_ITA/tokens", {}]] as const;

/** The code that an operator maps, once so many events had it. The other couriers' stay unmapped. */
const MAPPED = { courier: "POSTE_ITA", code: "PI-19", events: 20 };
const ASK_EVERY_MS = 500;

const CHECKS_PER_CHANNEL = 8;

export interface PeopleInput {
  readonly panelUrl: string;
  readonly panelToken: string;
  readonly merchants: MerchantClient;
  readonly signal: AbortSignal;
}

/** @throws when a call is refused */
export async function settleIn({ panelUrl, panelToken, merchants, signal }: PeopleInput) {
  const send = createPersistentFetch(signal);
  const operator = { authorization: `Bearer ${panelToken}` };

  async function call(who: Record<string, string>, method: string, path: string, body?: unknown) {
    const answer = await send(`${panelUrl}/panel/api${path}`, {
      method,
      headers: { "content-type": "application/json", origin: panelUrl, ...who },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}`);
    return answer;
  }

  async function invite(person: Person): Promise<string> {
    const answer = await call(operator, "POST", "/invitations", person);
    const { link } = (await answer.json()) as { link: string };
    return link.slice(link.lastIndexOf("/") + 1);
  }

  /** @returns the headers of their session */
  async function welcomeIn(person: Person) {
    const token = await invite(person);
    const answer = await call({}, "POST", `/invitations/${token}`, { password: DEMO_PASSWORD });
    return { cookie: (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
  }

  async function untilUnmapped(): Promise<void> {
    for (;;) {
      const answer = await call(operator, "GET", "/unmapped-codes");
      const { items } = (await answer.json()) as { items: readonly (typeof MAPPED)[] };
      const found = items.find((one) => one.courier === MAPPED.courier && one.code === MAPPED.code);
      if (found && found.events >= MAPPED.events) return;
      await pause(ASK_EVERY_MS, signal);
    }
  }

  const known = await (await call(operator, "GET", "/accounts")).json();
  const { items } = known as { items: readonly { email: string | null }[] };
  if (items.some(({ email }) => email === MERCHANT.email)) return;
  for (const person of INVITED) await invite(person);
  for (const [person, changes] of [
    [COURIER, COURIERS_CHANGES],
    [MERCHANT, MERCHANTS_CHANGES],
  ] as const) {
    const session = await welcomeIn(person);
    for (const [method, path, body] of changes) await call(session, method, path, body);
  }
  for (const channel of DEMO_CHANNELS) {
    for (const { cap, city, province } of PLACES.slice(0, CHECKS_PER_CHANNEL)) {
      await merchants.checkAddress(channel, {
        street: "Via Roma 1",
        city,
        state: province,
        postcode: cap,
      });
    }
  }
  await untilUnmapped();
  const { courier, code } = MAPPED;
  await call(operator, "PUT", `/couriers/${courier}/catalogue/${code}`, { status: "IN_TRANSIT" });
}
