/** One carrier: its way in, its access, its catalogue, what became of its messages, and how well it reports. */
import {
  Anchor,
  Breadcrumbs,
  Button,
  Group,
  SimpleGrid,
  Stack,
  Stepper,
  Tabs,
} from "@mantine/core";
import { useMutation, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { Courier } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { QualitySection } from "#panel/web/pages/benchmarks/quality-section.tsx";
import { qualityQuery } from "#panel/web/pages/benchmarks/queries.ts";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { AcceptingBadge } from "./accepting-badge.tsx";
import { AccessList } from "./access-list.tsx";
import { Catalogue } from "./catalogue.tsx";
import { MessageFinder } from "./message-finder.tsx";
import { courierQuery } from "./queries.ts";
import { UnmappedCodes } from "./unmapped-codes.tsx";

/** How far back a first event counts for the onboarding. */
const QUALITY_DAYS = 90;

export function CarrierPage() {
  const { t } = useText();
  const { code = "" } = useParams({ strict: false });
  const courier = useSuspenseQuery(courierQuery(code)).data;
  return (
    <>
      <Breadcrumbs mb="xs">
        <Anchor component={Link} to="/carriers" size="sm">
          {t.carriers.title}
        </Anchor>
      </Breadcrumbs>
      <PageHead
        title={courier.name}
        lead={
          <Group gap="xs">
            <AcceptingBadge isAccepting={courier.acceptingEvents} />
            <span>{courier.code}</span>
          </Group>
        }
      >
        <Activation courier={courier} />
      </PageHead>
      <Stack gap="lg">
        <Onboarding courier={courier} />
        <Tabs defaultValue="access" keepMounted={false}>
          <Tabs.List mb="md">
            <Tabs.Tab value="access">{t.carriers.access}</Tabs.Tab>
            <Tabs.Tab value="catalogue">{t.carriers.catalogue}</Tabs.Tab>
            <Tabs.Tab value="finder">{t.carriers.finder}</Tabs.Tab>
            <Tabs.Tab value="quality">{t.carriers.quality}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="access">
            <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
              <AccessList code={code} kind="tokens" rows={courier.tokens} />
              <AccessList code={code} kind="signing-secrets" rows={courier.signingSecrets} />
            </SimpleGrid>
          </Tabs.Panel>
          <Tabs.Panel value="catalogue">
            <Stack gap="lg">
              <UnmappedCodes courier={code} />
              <Catalogue code={code} />
            </Stack>
          </Tabs.Panel>
          <Tabs.Panel value="finder">
            <MessageFinder courier={code} />
          </Tabs.Panel>
          <Tabs.Panel value="quality">
            <QualitySection courier={code} />
          </Tabs.Panel>
        </Tabs>
      </Stack>
    </>
  );
}

/** The steps from a contract to the first event. */
function Onboarding({ courier }: { readonly courier: Courier }) {
  const { t } = useText();
  const { data = [] } = useQuery(qualityQuery(QUALITY_DAYS));
  const received = data.find((row) => row.courier === courier.code)?.received ?? 0;
  const steps = [
    [t.carriers.stepToken, courier.tokens.length > 0 || courier.oauth],
    [t.carriers.stepSecret, courier.signingSecrets.length > 0 || !courier.signatureRequired],
    [t.carriers.stepAccepting, courier.acceptingEvents],
    [t.carriers.stepFirst, received > 0],
  ] as const;
  const open = steps.findIndex(([, isDone]) => !isDone);
  return (
    <Section title={t.carriers.onboarding}>
      <Stepper
        active={open === -1 ? steps.length : open}
        size="sm"
        allowNextStepsSelect={false}
        wrap
      >
        {steps.map(([label]) => (
          <Stepper.Step key={label} label={label} allowStepSelect={false} />
        ))}
      </Stepper>
    </Section>
  );
}

function Activation({ courier: { code, acceptingEvents } }: { readonly courier: Courier }) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const switching = useMutation({
    mutationFn: () =>
      call("post", `/panel/api/couriers/:code/${acceptingEvents ? "deactivate" : "activate"}`, {
        params: { code },
      }),
    onError: tellProblem,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["couriers"] }),
  });
  if (!capabilities.includes("couriers:write")) return null;
  return (
    <Button variant="default" loading={switching.isPending} onClick={() => switching.mutate()}>
      {acceptingEvents ? t.carriers.deactivate : t.carriers.activate}
    </Button>
  );
}
