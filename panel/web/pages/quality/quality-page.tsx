/** Where a shared link leads: one courier's quality report, for people without an account. */
import { Box, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { CourierQuality, Silence } from "#analytics/insights.ts";
import { send } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { AheadEvents } from "#panel/web/pages/benchmarks/ahead-events.tsx";
import { BrokenRules } from "#panel/web/pages/benchmarks/broken-rules.tsx";
import { QualityPeriod } from "#panel/web/pages/benchmarks/quality-period.tsx";
import { QualityTable } from "#panel/web/pages/benchmarks/quality-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";

/** As the route answers, which is left out of an app without analytics. */
interface SharedQuality {
  readonly courier: string;
  readonly name: string;
  readonly expiresAt: string;
  readonly quality: CourierQuality | null;
  readonly silence: Omit<Silence, "lastHourMs"> | null;
}

export function QualityPage() {
  const { t } = useText();
  const { token = "" } = useParams({ strict: false });
  const [days, setDays] = useState("30");
  const { data, error, isPending } = useQuery({
    queryKey: ["shared-quality", token, days],
    queryFn: async ({ signal }) => {
      const asked = { params: { token }, query: { days }, signal };
      const answer = await send("get", "/panel/api/quality/:token", asked);
      return (await answer.json()) as SharedQuality;
    },
    placeholderData: (previous) => previous,
    retry: false,
  });
  const title = data ? t.sharedQuality.title(data.name) : t.sharedQuality.untitled;
  useEffect(() => {
    document.title = `${title} · ${t.app.name}`;
  }, [title, t]);
  return (
    <Box component="main" className="page-body" p={{ base: "md", md: "xl" }} maw={1200} mx="auto">
      <Stack gap="lg">
        <div>
          <Title order={1} size="h2">
            {title}
          </Title>
          {data && (
            <Text size="sm" c="dimmed" component="div">
              {t.sharedQuality.until} <Instant at={data.expiresAt} />
            </Text>
          )}
        </div>
        {isPending && <PagePending />}
        <ProblemNote error={error} />
        {data && <Report report={data} days={days} onDays={setDays} />}
      </Stack>
    </Box>
  );
}

interface ReportProps {
  readonly report: SharedQuality;
  readonly days: string;
  readonly onDays: (days: string) => void;
}

function Report({ report: { quality, silence }, days, onDays }: ReportProps) {
  const { t } = useText();
  return (
    <>
      <Section
        title={t.benchmarks.quality}
        lead={t.benchmarks.qualityLead}
        aside={<QualityPeriod days={days} onDays={onDays} />}
      >
        {quality ? (
          <QualityTable rows={[quality]} silence={silence ? [silence] : []} />
        ) : (
          <Text c="dimmed">{t.sharedQuality.nothing}</Text>
        )}
      </Section>
      {quality && <AheadEvents {...quality} />}
      <BrokenRules rules={quality?.brokenRules ?? []} />
    </>
  );
}
