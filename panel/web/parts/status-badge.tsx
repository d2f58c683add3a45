import { Badge } from "@mantine/core";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";

type StatusName = keyof Messages["statuses"];

const COLOURS: Readonly<Record<StatusName, string>> = {
  WAITING_TO_COMPUTE: "gray",
  PENDING: "gray",
  INFO_RECEIVED: "gray",
  PROCESSING: "cyan",
  DEPARTED: "cyan",
  IN_TRANSIT: "blue",
  OUT_FOR_DELIVERY: "indigo",
  PICKUP_POINT: "violet",
  DELAY: "yellow",
  FAILED_ATTEMPT: "orange",
  EXCEPTION: "red",
  RETURNED: "grape",
  DELIVERED: "teal",
};

/** Every status with its name, for a field in which one is chosen. */
export function statusChoices({ statuses }: Pick<Messages, "statuses">) {
  return (Object.keys(COLOURS) as StatusName[]).map((value) => ({ value, label: statuses[value] }));
}

interface StatusBadgeProps {
  readonly status: string;
  readonly detail?: number | null;
}

/** A status in the visitor's words; a detail by its number. */
export function StatusBadge({ status, detail }: StatusBadgeProps) {
  const { t } = useText();
  const isKnown = status in COLOURS;
  const name = status as StatusName;
  return (
    <Badge color={isKnown ? COLOURS[name] : "gray"}>
      {isKnown ? t.statuses[name] : status}
      {detail ? ` · ${detail}` : ""}
    </Badge>
  );
}
