/** A setup whose channels ship with carriers that make labels. */
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { testSetup } from "./setup.ts";

const HEAD = {
  code: "HQ",
  businessName: "Acme S.p.A.",
  street: "Via Roma 1",
  city: "Milano",
  state: "MI",
  postcode: "20121",
  country: "IT",
};

/** Channel `acme-it` prints PDF and error labels, `acme-outlet` ZPL, `beta-it` PDF without error labels. */
export function labelSetup(): SetupFile {
  const setup = testSetup();
  const [acme, beta] = setup.companies ?? [];
  const [main, outlet] = acme?.channels ?? [];
  const [other] = beta?.channels ?? [];
  const carriers = (members: object) =>
    ["GENERIC", "POSTE_ITA", "POSTE-ITA-CRONO"].map((code) => ({ code, ...members }));
  const gls = { code: "GLS_ITA" };
  const off = { code: "POSTE-ITA-OFF", shippingEnabled: false };
  const pdf = { labelFormat: "PDF" as const, errorLabel: true };
  const zpl = { labelFormat: "ZPL" as const, errorLabel: true };
  Object.assign(main ?? {}, { sender: HEAD, couriers: [gls, off, ...carriers(pdf)] });
  Object.assign(outlet ?? {}, { sender: HEAD, couriers: [gls, ...carriers(zpl)] });
  Object.assign(other ?? {}, { couriers: [gls, ...carriers({ labelFormat: "PDF" as const })] });
  return setup;
}

export const CONSIGNEE = {
  name: "Łukasz Παπαδόπουλος",
  street: "Via dei Fori Imperiali 12",
  city: "Roma",
  state: "RM",
  postcode: "00184",
  country: "IT",
  phone: "+39061234",
};

let counter = 0;

/** A valid body of `POST /v2/labels`, its reference new; members given replace its own. */
export function labelBody(members: Readonly<Record<string, unknown>> = {}) {
  counter += 1;
  return {
    courier: "GENERIC",
    reference: `L-${counter}`,
    source: "shopify",
    consignee: CONSIGNEE,
    weight: 1.5,
    ...members,
  };
}
