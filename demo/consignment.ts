/** One simulated shipment: what the merchant registers and what the courier will tell about it. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import type { DemoCourier } from "./couriers.ts";
import { BOX_CODES, type DemoChannel } from "./demo-setup.ts";
import { type Journey, planJourney, type Random, type Stop } from "./journey.ts";
import { FAMILY_NAMES, FIRST_NAMES, HUBS, type Place, STREETS } from "./places.ts";

export interface Consignment {
  readonly courier: DemoCourier;
  readonly channel: DemoChannel;
  /** An item of `POST /v2/shipments`. */
  readonly shipment: object;
  /** In the order in which they happened. */
  readonly events: readonly CourierEvent[];
}

export interface ConsignmentInput {
  readonly courier: DemoCourier;
  readonly channel: DemoChannel;
  /** Unique over all runs; at most 11 digits. */
  readonly number: number;
  readonly destination: Place;
  readonly daysAgo: number;
  readonly mustArrive: boolean;
}

interface Details {
  readonly input: ConsignmentInput;
  readonly trackingNumber: string;
  readonly orderReference: string;
  readonly recipient: string;
  readonly hub: Place;
  readonly random: Random;
}

/** Events that carry the order's reference and no tracking number. */
const BY_REFERENCE_SHARE = 0.02;

export function planConsignment(
  input: ConsignmentInput,
  random: Random,
  nowMs: number,
): Consignment {
  const { courier, channel, number, daysAgo, mustArrive } = input;
  const daysUnderway = pick(courier.daysUnderway, random);
  const journey = planJourney({ daysUnderway, daysAgo, mustArrive }, random, nowMs);
  const details: Details = {
    input,
    trackingNumber: `${courier.numberPrefix}${String(number).padStart(11, "0")}`,
    orderReference: `${channel.orderPrefix}-${number}`,
    recipient: `${pick(FIRST_NAMES, random)} ${pick(FAMILY_NAMES, random)}`,
    hub: pick(HUBS, random),
    random,
  };
  return {
    courier,
    channel,
    shipment: shipmentOf(details, journey),
    events: journey.stops.map((stop, at) => eventOf(details, stop, at)),
  };
}

export function pick<T>(from: readonly T[], random: Random): T {
  return from[Math.floor(random() * from.length)] as T;
}

function shipmentOf({ input, random, ...details }: Details, { shipDate }: Journey): object {
  const { courier, channel, destination, number } = input;
  const weight = Math.round((0.2 + random() ** 3 * 34) * 100) / 100;
  const totalValue = Math.round(1_500 + random() * 20_000) / 100;
  const codAmount = random() < 0.1 ? totalValue : 0;
  return {
    trackingNumber: details.trackingNumber,
    courier: courier.code,
    shipDate,
    orderReference: details.orderReference,
    orderDate: shipDate,
    platformOrderId: `order-${number}`,
    origin: channel.origin,
    language: random() < 0.9 ? "it" : "en",
    consignee: {
      name: details.recipient,
      street: `${pick(STREETS, random)} ${1 + Math.floor(random() * 120)}`,
      city: destination.city,
      postcode: destination.cap,
      state: destination.province,
      country: "IT",
      email: `${details.recipient.toLowerCase().replaceAll(" ", ".")}@cliente.example`,
      phone: `+39 000 ${String(Math.floor(random() * 10_000_000)).padStart(7, "0")}`,
    },
    monetary: { totalValue, codAmount, shippingCost: 5.9, currency: "EUR" },
    parcels: [{ id: "1", weight, boxCode: pick(BOX_CODES, random), content: "Merce varia" }],
    orderItems: [{ sku: "SKU-1", name: "Articolo dimostrativo", quantity: 1, parcelId: "1" }],
  };
}

function eventOf(details: Details, stop: Stop, at: number): CourierEvent {
  const { courier, channel } = details.input;
  const [code, description] = courier.vocabulary[stop.step];
  const identity =
    details.random() < BY_REFERENCE_SHARE
      ? { externalId: details.orderReference, senderAccount: channel.senderAccount }
      : { trackingNumber: details.trackingNumber };
  return {
    eventId: `${courier.code}-${details.trackingNumber}-${at + 1}`,
    ...identity,
    occurredAt: romeIso(stop.atMs),
    status: { code, description },
    location: locationOf(details, stop),
    ...particularsOf(details, stop),
  };
}

function locationOf(
  { input, hub }: Details,
  { where }: Stop,
): NonNullable<CourierEvent["location"]> {
  const { channel, destination } = input;
  const here = where === "origin" ? channel.seat : where === "hub" ? hub : destination;
  return { name: here.city, countryCode: "IT", postalCode: here.cap };
}

type Particulars = Pick<CourierEvent, "delivery" | "reason" | "pickupPoint" | "isReturn">;

/** The optional fields that couriers fill at this step. */
function particularsOf(details: Details, { step, atMs, attempt }: Stop): Particulars {
  const { courier, destination } = details.input;
  switch (step) {
    case "out":
      return { delivery: { estimatedDeliveryDate: romeIso(atMs).slice(0, 10) } };
    case "absent":
      return {
        reason: { code: "ABS", description: "Destinatario assente" },
        delivery: { attemptNumber: attempt },
      };
    case "delivered":
      return {
        delivery: {
          deliveredTo: details.random() < 0.85 ? "RECIPIENT" : "NEIGHBOUR",
          signedBy: details.recipient,
          attemptNumber: attempt,
        },
      };
    case "atPoint":
      return {
        pickupPoint: {
          id: `PP-${destination.cap}`,
          name: `${courier.pickupPoint} ${destination.city}`,
          postalCode: destination.cap,
          countryCode: "IT",
        },
      };
    case "collected":
      return { delivery: { deliveredTo: "PICKUP_POINT" } };
    case "returning":
    case "returned":
      return { isReturn: true };
    default:
      return {};
  }
}
