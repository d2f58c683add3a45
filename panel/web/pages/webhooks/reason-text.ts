import type { Messages } from "#panel/web/i18n/en.ts";

/** Why a delivery was given up, in the visitor's words; what a receiver or its network answered stays as it is. */
export function reasonText({ webhooks: { reasons } }: Messages, reason: string): string {
  return reason in reasons ? reasons[reason as keyof typeof reasons] : reason;
}
