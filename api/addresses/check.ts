/** `POST /v2/addresses/check` (document 1, "Addresses"): always 200 for what was accepted, and billed once. */

import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { jsonBody } from "#api/http/read-json.ts";
import type { CarrierAnswer } from "#api/labels/label-carrier.ts";
import {
  AddressCheckRequest,
  AddressCheckView,
  type CheckedAddress,
  type Match,
} from "#core/merchants/rules/address-check.ts";
import { isNational } from "#core/merchants/rules/label-carrier.ts";
import { countAddressCheck } from "#core/merchants/store/address-checks.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { json } from "#core/platform/openapi/operation.ts";
import { gazetteer, matchOffline } from "./gazetteer.ts";
import { matchByNominatim } from "./nominatim.ts";
import { splitCity } from "./place-names.ts";
import { matchByRegistry } from "./registry-provider.ts";

const operation = repeatable({
  access: { scope: null, check: checkEnabled },
  id: "checkAddress",
  summary: "Check a postal address",
  description:
    "Every request answered 200 is billed once, whatever its match. Needs the product checkAddress and the channel's address check.",
  body: jsonBody(AddressCheckRequest, {
    street: "Via Roma 1",
    city: "Milano",
    state: "MI",
    postcode: "20121",
  }),
  answers: {
    200: json("The match; `match.status` is NONE for an address nobody knows.", AddressCheckView, {
      provider: "geocoder",
      match: {
        status: "PARTIAL",
        level: "MUNICIPALITY",
        differing: [],
        unchecked: ["street"],
      },
      address: {
        street: "Via Roma 1",
        city: "Milano",
        state: "MI",
        postcode: "20121",
        country: "IT",
      },
      coordinates: { latitude: 45.46427, longitude: 9.18951 },
      delivery: null,
      candidates: [],
    }),
  },
  errors: [
    "PRODUCT_NOT_OWNED",
    "ADDRESS_CHECK_NOT_ENABLED",
    "PROVIDER_CANNOT_SERVE",
    "PROVIDER_UNREACHABLE",
    "PROVIDER_UNREADABLE",
  ],
});

type Provider = AddressCheckView["provider"];

export function addressCheckRoute(deps: ApiDeps) {
  const { config, redis, live } = deps;
  return merchantRoutes(deps).post(
    "/v2/addresses/check",
    async ({ body, request, caller, set }): Promise<AddressCheckView> => {
      const { provider = "geocoder", ...given } = body;
      const { country = "IT" } = given;
      const state = given.state?.trim() || null;
      const postcode = given.postcode?.trim() || null;
      const address = { ...given, state, postcode, country };
      if (provider === "national-carrier") checkServed(config, caller, address);
      return onceByKey(deps, { request, caller, set }, [provider, address], async () => {
        const answer = await match(config, provider, address, caller.channel.testOf !== null);
        if (answer.kind !== "ok") throw away(answer);
        // An answer that cannot be counted is not given: accepted and billed are the same requests.
        const owner = { companyId: caller.company.id, channelId: caller.channel.id };
        if (caller.channel.testOf === null) await countAddressCheck(redis, owner, live.now());
        return { provider, ...answer.value };
      });
    },
    route(operation),
  );
}

/** @throws {Problem} 403 */
function checkEnabled({ company, channel }: Caller): void {
  if (!company.products.includes("checkAddress")) {
    const detail = "The company does not own the product checkAddress.";
    throw new Problem(403, "PRODUCT_NOT_OWNED", detail);
  }
  if (!channel.addressCheck) {
    const detail = "Address check is not enabled on the channel.";
    throw new Problem(403, "ADDRESS_CHECK_NOT_ENABLED", detail);
  }
}

/** The registry knows Italian streets, for channels that ship with its carrier. @throws {Problem} 422 */
function checkServed(config: Config, { channel }: Caller, { country }: CheckedAddress): void {
  const ships = [...channel.couriers.values()].some(
    ({ code, shippingEnabled }) => shippingEnabled && isNational(code, config.nationalCarrier),
  );
  const message = !ships
    ? "The national carrier is not configured on the channel."
    : "The street registry knows Italian addresses only.";
  if (ships && country === "IT") return;
  const violations = [{ path: ships ? "country" : "provider", code: "NOT_ALLOWED", message }];
  throw new Problem(422, "PROVIDER_CANNOT_SERVE", message, { members: { violations } });
}

async function match(
  { geocoderUrl, nationalCarrierUrl }: Config,
  provider: Provider,
  asked: CheckedAddress,
  isTest: boolean,
): Promise<CarrierAnswer<Match>> {
  const address = splitCity(asked);
  // Test mode asks nobody.
  if (isTest) return { kind: "ok", value: matchOffline(address, gazetteer()) };
  if (provider === "national-carrier") return matchByRegistry(nationalCarrierUrl, address);
  if (geocoderUrl !== null) return matchByNominatim(geocoderUrl, address);
  return { kind: "ok", value: matchOffline(address, gazetteer()) };
}

function away(answer: Exclude<CarrierAnswer<Match>, { readonly kind: "ok" }>): Problem {
  return answer.kind === "away" && !answer.unreadable
    ? new Problem(502, "PROVIDER_UNREACHABLE", "The address provider cannot be reached.")
    : new Problem(502, "PROVIDER_UNREADABLE", "The address provider answered unreadably.");
}
