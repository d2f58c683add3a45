/**
 * The simulated national carrier: the gateway that `api/labels/national-carrier.ts` describes, with real labels. A word in
 * an order's reference gives it a mood, a word in a street tells what its registry knows.
 */

import { labelPdf } from "#api/labels/label-pdf.ts";
import { type LabelSheet, labelSheets } from "#api/labels/label-sheet.ts";
import { labelZpl } from "#api/labels/label-zpl.ts";
import type {
  LabelFormat,
  LabelParcel,
  LabelRequest,
  LabelSender,
} from "#core/merchants/rules/label.ts";

export interface GatewayOrder extends LabelRequest {
  readonly contract: string | null;
  readonly parcels: LabelParcel[];
  readonly sender: LabelSender;
  readonly labelFormat: LabelFormat;
}

interface MadeByUs {
  readonly trackingNumbers: ReadonlyArray<{
    readonly number: string;
    readonly description: string;
  }>;
  readonly extShipmentId: string;
  readonly labels: readonly string[];
  readonly reference: string;
}

export interface SimulatedCarrier {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** Orders that have arrived, refused ones included. */
  readonly orders: readonly GatewayOrder[];
  /** Bodies of the confirmations that have arrived. */
  readonly confirmations: readonly GatewayConfirmation[];
  readonly stop: () => Promise<void>;
}

export interface GatewayConfirmation {
  readonly courier: string;
  readonly pickupDate: string | null;
  readonly pickupTime: string | null;
  readonly labels: ReadonlyArray<{ readonly labelId: number; readonly trackingNumbers: string[] }>;
}

interface GatewayAddress {
  readonly street: string;
  readonly city: string;
  readonly state?: string;
  readonly postcode: string;
}

/** "lost": the label is made and the answer does not arrive. */
const MOODS = ["refuse", "fail", "babble", "hang", "lost", "busy"] as const;
const KEPT = 10_000;

export function startNationalCarrier(): SimulatedCarrier {
  const orders: GatewayOrder[] = [];
  const confirmations: GatewayConfirmation[] = [];
  const made = new Map<string, MadeByUs>();
  const answered = new Map<string, object>();
  let ordersMade = 0;

  async function make(key: string, order: GatewayOrder): Promise<MadeByUs> {
    const known = made.get(key);
    if (known) return known;
    ordersMade += 1;
    const label = await makeLabel(key, order, ordersMade);
    if (made.size < KEPT) made.set(key, label);
    return label;
  }

  async function takeOrder(request: Request): Promise<Response> {
    const order = (await request.json()) as GatewayOrder;
    orders.push(order);
    if (orders.length > KEPT) orders.shift();
    const key = request.headers.get("idempotency-key") ?? "";
    switch (MOODS.find((word) => order.reference.includes(word))) {
      case "refuse":
        return Response.json({ message: "CAP non servito: 深圳 / È chiuso" }, { status: 422 });
      case "fail":
        return new Response("down", { status: 500 });
      case "babble":
        return new Response("<html>");
      case "hang":
        return new Promise(() => {});
      case "busy":
        return new Response("slow down", { status: 429 });
      case "lost":
        await make(key, order);
        return new Response("down", { status: 500 });
      case undefined:
        return Response.json(await make(key, order), { status: 201 });
    }
  }

  /** A key that was answered before gets the same answer, and nothing is done for it. */
  async function confirmOnce(request: Request): Promise<Response> {
    const key = request.headers.get("idempotency-key") ?? "";
    const before = answered.get(key);
    if (before !== undefined) return Response.json(before);
    const answer = await confirm(request);
    if (answer.ok && answered.size < KEPT)
      answered.set(key, (await answer.clone().json()) as object);
    return answer;
  }

  async function confirm(request: Request): Promise<Response> {
    const confirmation = (await request.json()) as GatewayConfirmation;
    confirmations.push(confirmation);
    if (confirmations.length > KEPT) confirmations.shift();
    return answerTo(confirmation);
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const [, path, key = ""] = new URL(request.url).pathname.split("/");
      const call = `${request.method} ${path}`;
      if (call === "POST labels") return takeOrder(request);
      if (call === "POST confirmations") return confirmOnce(request);
      if (call === "POST addresses") return checkAddress((await request.json()) as GatewayAddress);
      if (call === "DELETE labels") return voidLabel(made, key);
      const label = call === "GET labels" ? made.get(key) : undefined;
      return label ? Response.json(label) : new Response(null, { status: 404 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    orders,
    confirmations,
    stop: () => server.stop(true),
  };
}

/** Refuses to void what is on its way, or to void at all, where the reference says so. */
function voidLabel(made: Map<string, MadeByUs>, key: string): Response {
  const label = made.get(key);
  if (label?.reference.includes("keep")) {
    return Response.json({ message: "Già in lavorazione" }, { status: 409 });
  }
  if (label?.reference.includes("unvoidable")) return new Response(null, { status: 405 });
  return new Response(null, { status: made.delete(key) ? 204 : 404 });
}

async function makeLabel(key: string, order: GatewayOrder, made: number): Promise<MadeByUs> {
  const number = `NC${String(made).padStart(11, "0")}IT`;
  const trackingNumbers = order.parcels.map((_, at) => ({
    number: at === 0 ? number : `${number}${at + 1}`,
    description: at === 0 ? "lettera di vettura" : `collo ${at + 1}`,
  }));
  const sheets = labelSheets({
    request: order,
    sender: order.sender,
    language: "it",
    trackingNumbers: trackingNumbers.map((one) => one.number),
  });
  const labels = await Promise.all(sheets.map((sheet) => draw(sheet, order.labelFormat)));
  return { trackingNumbers, extShipmentId: `EXT-${key}`, labels, reference: order.reference };
}

async function draw(sheet: LabelSheet, format: LabelFormat): Promise<string> {
  return format === "ZPL" ? labelZpl(sheet) : labelPdf(sheet);
}

/** Refuses every number with a certain ending at the counter, and fails on one pick-up date. */
function answerTo({ pickupDate, labels }: GatewayConfirmation): Response {
  if (pickupDate === "2000-01-01") return new Response("down", { status: 500 });
  const refused = labels.filter(({ trackingNumbers }) =>
    trackingNumbers.some((number) => number.endsWith("3IT")),
  );
  return Response.json({
    refused: refused.map(({ labelId }) => ({
      labelId,
      code: "NOT_ACCEPTED",
      message: "Spedizione non accettata.",
    })),
  });
}

/** Knows every street but those that say otherwise. */
function checkAddress({ street, city, state, postcode }: GatewayAddress): Response {
  if (street.includes("fail")) return new Response("down", { status: 500 });
  if (street.includes("babble")) return new Response("<html>");
  if (street.includes("nowhere")) return Response.json({ candidates: [], delivery: null });
  const address = (name: string) => ({ street: name, city, state: state ?? "", postcode });
  if (street.includes("twice")) {
    return Response.json({
      candidates: [address("Via Roma"), address("Viale Roma")],
      delivery: null,
    });
  }
  const found = street.includes("elsewhere")
    ? { street: "Via Roma 1", city: "Monza", state: "MB", postcode: "20900" }
    : address(street.includes("unnamed") ? "" : street);
  return Response.json({
    candidates: [found],
    delivery: { deliverable: true, office: "UDR 1", zone: "12" },
  });
}
