/** Carriers that labels are made by (document 1, "Labels"). They need not stand among the couriers that push events. */

export const GENERIC = "GENERIC";

/** What a carrier code says about who makes its labels. */
export type LabelCarriers = (code: string) => boolean;

export function isGeneric(code: string): boolean {
  return code === GENERIC;
}

/** `<NATIONAL_CARRIER>_ITA`, or one of its contract variants `<NATIONAL_CARRIER>-ITA-*`. */
export function isNational(code: string, nationalCarrier: string): boolean {
  const variants = `${nationalCarrier}-ITA-`;
  return code === `${nationalCarrier}_ITA` || variantOf(code, variants) !== null;
}

/** The contract of a variant, such as `CRONO` of `POSTE-ITA-CRONO`; null for the carrier's own code. */
export function contractOf(code: string, nationalCarrier: string): string | null {
  return variantOf(code, `${nationalCarrier}-ITA-`);
}

function variantOf(code: string, prefix: string): string | null {
  return code.startsWith(prefix) && code.length > prefix.length ? code.slice(prefix.length) : null;
}

export function labelCarriers(nationalCarrier: string): LabelCarriers {
  return (code) => isGeneric(code) || isNational(code, nationalCarrier);
}
