/** Incidents that are open, those that are over, and their receivers. */
import { SegmentedControl, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { IncidentList } from "./incident-list.tsx";
import { Receivers } from "./receivers.tsx";

const ASK_EVERY_MS = 10_000;

export function AlarmsPage() {
  const { t } = useText();
  const [shown, setShown] = useState<"open" | "past">("open");
  const { data, error } = useQuery({
    queryKey: ["incidents"],
    queryFn: ({ signal }) => call("get", "/panel/api/incidents", { signal }),
    refetchInterval: ASK_EVERY_MS,
  });
  const views = (["open", "past"] as const).map((value) => ({
    value,
    label: `${t.alarms[value]} (${data?.[value].length ?? 0})`,
  }));
  return (
    <>
      <PageHead title={t.alarms.title} lead={t.alarms.lead} />
      <ProblemNote error={error} />
      <Stack>
        <Section
          title={t.alarms.incidents}
          aside={
            <SegmentedControl
              aria-label={t.alarms.incidents}
              size="xs"
              data={views}
              value={shown}
              onChange={(value) => setShown(value as typeof shown)}
            />
          }
        >
          {data && <IncidentList incidents={data[shown]} />}
        </Section>
        <Receivers />
      </Stack>
    </>
  );
}
