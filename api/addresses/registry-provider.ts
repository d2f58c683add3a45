/**
 * The national carrier's street registry, through its gateway: `POST /addresses` with `{street, city, state, postcode,
 * country}` -> 2xx `{candidates: [{street, city, state, postcode}], delivery: {deliverable, office, zone} | null}`.
 */

import { type Static, Type } from "@sinclair/typebox";
import { callGateway } from "#api/http/gateway.ts";
import type { CarrierAnswer } from "#api/labels/label-carrier.ts";
import {
  CANDIDATES_LIMIT,
  type CheckedAddress,
  type Match,
  NO_MATCH,
} from "#core/merchants/rules/address-check.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { differingParts } from "./differing.ts";

const text = Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Null()]));

const RegistryAnswer = Type.Object({
  candidates: Type.Array(Type.Object({ street: text, city: text, state: text, postcode: text }), {
    maxItems: CANDIDATES_LIMIT,
  }),
  delivery: Type.Optional(
    Type.Union([
      Type.Object({ deliverable: Type.Boolean(), office: text, zone: text }),
      Type.Null(),
    ]),
  ),
});
type RegistryAnswer = Static<typeof RegistryAnswer>;
const checker = compileSchema(RegistryAnswer);

export async function matchByRegistry(
  base: string | null,
  address: CheckedAddress,
): Promise<CarrierAnswer<Match>> {
  const call = { method: "POST", path: "/addresses", checker, body: address } as const;
  const answer = await callGateway(base, call);
  if (answer.kind === "away") return answer;
  // What the registry refuses to look up it does not know.
  if (answer.kind === "refused" || answer.value === null) return { kind: "ok", value: NO_MATCH };
  return { kind: "ok", value: matchOf(answer.value, address) };
}

/** One candidate with a street is the match; several are for the merchant to choose among. */
function matchOf({ candidates, delivery }: RegistryAnswer, asked: CheckedAddress): Match {
  const shown = candidates.map(({ street, city, state, postcode }) => ({
    street: street || null,
    city: city ?? null,
    state: state ?? null,
    postcode: postcode ?? null,
    country: "IT",
  }));
  const [only] = shown;
  if (!only) return NO_MATCH;
  const isOne = shown.length === 1;
  const differing = differingParts(asked, { ...only, cities: only.city ? [only.city] : [] });
  return {
    match: {
      status: isOne && differing.length === 0 ? "MATCHED" : "PARTIAL",
      level: only.street === null ? "MUNICIPALITY" : "STREET",
      differing,
      unchecked: [],
    },
    address: isOne ? only : null,
    coordinates: null,
    delivery: delivery
      ? {
          deliverable: delivery.deliverable,
          office: delivery.office ?? null,
          zone: delivery.zone ?? null,
        }
      : null,
    candidates: shown,
  };
}
