import { Badge } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { statusDetailsQuery } from "#panel/web/queries.ts";

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

/** A status and its detail in the visitor's words; a detail that has none by its number. */
export function StatusBadge({ status, detail }: StatusBadgeProps) {
  const { t, language } = useText();
  const { data } = useQuery({ ...statusDetailsQuery, enabled: Boolean(detail) });
  const isKnown = status in COLOURS;
  const name = status as StatusName;
  const told = data?.items.find(({ id }) => id === detail)?.description;
  return (
    <Badge color={isKnown ? COLOURS[name] : "gray"}>
      {isKnown ? t.statuses[name] : status}
      {detail ? ` · ${told?.[language] ?? told?.["en"] ?? detail}` : ""}
    </Badge>
  );
}
