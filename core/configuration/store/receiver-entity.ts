/** Receivers of alarms, the same whether the setup file or the panel makes them. */
import type { AlarmReceiverEntity } from "#core/configuration/rules/entities.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { newToken } from "#core/platform/secrets/secrets.ts";

export const RECEIVERS_PER_OWNER = limit(
  20,
  "receivers of alarms of the operators, a company or a courier",
  "409; an error of the setup file",
);

/** 64 random bits. */
export function newReceiverId(): string {
  return newToken("ar_").slice(0, 19);
}

/** Unique in the installation. */
export function receiverName({ owner, code }: Pick<AlarmReceiverEntity, "owner" | "code">): string {
  return `${owner}:${code}`;
}

/** Field of `DELETED_SETTINGS_KEY`. */
export function deletedReceiver(name: string): string {
  return `alarmReceiver:${name}`;
}
