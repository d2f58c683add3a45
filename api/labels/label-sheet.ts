/** What stands on one label, whatever it is printed with: PDF and ZPL show the same sheet. */
import {
  type LabelConsignee,
  type LabelParcel,
  type LabelRequest,
  type LabelSender,
  parcelsOf,
} from "#core/merchants/rules/label.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import { labelWords } from "./label-words.ts";

export interface LabelSheet {
  readonly carrier: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly toCaption: string;
  /** Caption and value, in the order they are read. */
  readonly facts: ReadonlyArray<readonly [string, string]>;
  /** Printed as Code 128 and as text. */
  readonly trackingNumber: string;
}

export interface SheetOrder {
  readonly request: LabelRequest;
  readonly sender: LabelSender;
  readonly language: Language;
  /** One a parcel, in their order. */
  readonly trackingNumbers: readonly string[];
}

/** One sheet a parcel. */
export function labelSheets(order: SheetOrder): LabelSheet[] {
  const parcels = parcelsOf(order.request);
  return parcels.map((parcel, at) => sheetOf(order, parcel, at, parcels.length));
}

function sheetOf(
  { request, sender, language, trackingNumbers }: SheetOrder,
  parcel: LabelParcel,
  at: number,
  count: number,
): LabelSheet {
  const words = labelWords(language);
  const { monetary, courierService, content } = request;
  const weight = parcel.weight ?? (count === 1 ? request.weight : undefined);
  const facts: [string, string | undefined][] = [
    [words.reference, request.reference],
    [words.parcel, `${at + 1}/${count}`],
    [words.weight, weight === undefined ? undefined : `${weight} kg`],
    [words.service, courierService],
    [words.cashOnDelivery, cashOnDelivery(monetary)],
    [words.content, content],
  ];
  return {
    carrier: request.courier,
    from: [
      `${words.from}: ${sender.businessName ?? sender.referent ?? ""}`,
      ...addressLines(sender),
    ],
    to: [
      request.consignee.name,
      ...addressLines(request.consignee),
      ...phoneLine(request.consignee),
    ],
    toCaption: words.to,
    facts: facts.filter((fact): fact is [string, string] => Boolean(fact[1])),
    trackingNumber: trackingNumbers[at] ?? trackingNumbers[0] ?? "",
  };
}

function cashOnDelivery(monetary: LabelRequest["monetary"]): string | undefined {
  if (!monetary?.isCod || monetary.amount === undefined) return undefined;
  return `${monetary.amount.toFixed(2)} ${monetary.currency ?? "EUR"}`;
}

function addressLines(address: LabelSender | LabelConsignee): string[] {
  const { street, postcode, city, state, country } = address;
  const locality = [postcode, city, state ? `(${state})` : undefined, country];
  return [street ?? "", locality.filter(Boolean).join(" ")].filter((line) => line !== "");
}

/** Drivers call before they give up. */
function phoneLine({ phone }: LabelConsignee): string[] {
  return phone ? [phone] : [];
}
