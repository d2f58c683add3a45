/** What every carrier of labels does, whoever it is. */
import type {
  LabelFormat,
  LabelRequest,
  LabelSender,
  MadeLabel,
} from "#core/merchants/rules/label.ts";
import type { StoredLabel } from "#core/merchants/store/labels.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";

export interface LabelOrder {
  readonly id: number;
  /** Dimensions of known boxes are filled in. */
  readonly request: LabelRequest;
  readonly sender: LabelSender;
  readonly format: LabelFormat;
  readonly language: Language;
}

export type CarrierAnswer<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "refused"; readonly message: string }
  /** Unreachable or unreadable. `called`: the carrier may have done what it was asked. */
  | { readonly kind: "away"; readonly unreadable: boolean; readonly called: boolean };

export interface Refusal {
  readonly labelId: number;
  readonly code: string;
  readonly message: string;
}

export interface Confirmation {
  /** The same for every attempt of one confirmation until its outcome is known. */
  readonly key: string;
  readonly courier: string;
  readonly labels: readonly StoredLabel[];
  readonly pickupDate: string | null;
  readonly pickupTime: string | null;
}

export interface LabelCarrier {
  /** The national carrier needs parcels or weight. */
  readonly needsWeight: boolean;
  make(order: LabelOrder): Promise<CarrierAnswer<MadeLabel>>;
  /** What an earlier call that nobody heard the end of has made; null = nothing. */
  recover(order: LabelOrder): Promise<CarrierAnswer<MadeLabel | null>>;
  /** Confirming a label again is no fault. @returns the labels it refuses */
  confirm(confirmation: Confirmation): Promise<CarrierAnswer<readonly Refusal[]>>;
  /** Voiding a label again, or one that the carrier does not know, is no fault. */
  void(label: StoredLabel): Promise<CarrierAnswer<null>>;
}
