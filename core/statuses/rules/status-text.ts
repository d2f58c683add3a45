/** Names of statuses and status details in the recipient's language; English where a registered detail has none in it. */
import type { SetupStatusDetail } from "#core/setup/rules/setup.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import type { Status } from "./status.ts";
import { STATUS_TEXTS } from "./status-texts.ts";

export function statusText(status: Status, language: Language): string {
  return STATUS_TEXTS[language][status];
}

/** Description of a status detail; null for 0 = none and for an id that is not registered. */
export function statusDetailText(
  detail: SetupStatusDetail | undefined,
  language: Language,
): string | null {
  const { description } = detail ?? {};
  return description?.[language] ?? description?.["en"] ?? null;
}
