/** One courier: its way in, its access, its catalogue, what became of its messages, and how well it reports. */
import {
  Anchor,
  Breadcrumbs,
  Group,
  SimpleGrid,
  Stack,
  Stepper,
  Tabs,
  useMatches,
} from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { Courier } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { QualitySection } from "#panel/web/pages/benchmarks/quality-section.tsx";
import { qualityQuery } from "#panel/web/pages/benchmarks/queries.ts";
import { CloseButton } from "#panel/web/pages/entries/close-button.tsx";
import { ManagedBadge } from "#panel/web/pages/entries/managed-badge.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { SwitchButton } from "#panel/web/parts/switch-button.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { useTab } from "#panel/web/parts/use-tab.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { AcceptingBadge } from "./accepting-badge.tsx";
import { AccessList } from "./access-list.tsx";
import { Catalogue } from "./catalogue.tsx";
import { CourierSettings } from "./courier-settings.tsx";
import { FirstDay } from "./first-day.tsx";
import { MessageFinder } from "./message-finder.tsx";
import { QualityLinks } from "./quality-links.tsx";
import { courierQuery } from "./queries.ts";
import { UnmappedCodes } from "./unmapped-codes.tsx";

/** How far back a first event counts for the onboarding. */
const QUALITY_DAYS = 90;

export function CourierPage() {
  const { t } = useText();
  const { code = "" } = useParams({ strict: false });
  const courier = useSuspenseQuery(courierQuery(code)).data;
  const mayShare = useMay("quality:share");
  const mayClose = useMay("couriers:write");
  const [tab, setTab] = useTab([
    "access",
    "settings",
    "catalogue",
    "finder",
    "first-day",
    "quality",
  ]);
  return (
    <>
      <Breadcrumbs mb="xs">
        <Anchor component={Link} to="/carriers" size="sm">
          {t.couriers.title}
        </Anchor>
      </Breadcrumbs>
      <PageHead
        title={courier.name}
        lead={
          <Group gap="xs">
            <AcceptingBadge isAccepting={courier.acceptingEvents} />
            <ManagedBadge entity={courier} />
            <span>{courier.code}</span>
          </Group>
        }
      >
        <Activation courier={courier} />
        {mayClose && (
          <CloseButton
            closedAt={courier.closedAt}
            action={t.entries.close.courier}
            text={t.entries.closeCourier}
            close={() => call("delete", "/panel/api/couriers/:code", { params: { code } })}
            reopen={() => call("post", "/panel/api/couriers/:code/reopen", { params: { code } })}
          />
        )}
      </PageHead>
      <Stack gap="lg">
        <Onboarding courier={courier} onStep={setTab} />
        <Tabs value={tab} onChange={setTab} keepMounted={false}>
          <Tabs.List mb="md">
            <Tabs.Tab value="access">{t.couriers.access}</Tabs.Tab>
            <Tabs.Tab value="settings">{t.entries.courierSettings}</Tabs.Tab>
            <Tabs.Tab value="catalogue">{t.couriers.catalogue}</Tabs.Tab>
            <Tabs.Tab value="finder">{t.couriers.finder}</Tabs.Tab>
            <Tabs.Tab value="first-day">{t.firstDay.tab}</Tabs.Tab>
            <Tabs.Tab value="quality">{t.couriers.quality}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="access">
            <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
              <AccessList code={code} kind="tokens" rows={courier.tokens} />
              <AccessList code={code} kind="signing-secrets" rows={courier.signingSecrets} />
            </SimpleGrid>
          </Tabs.Panel>
          <Tabs.Panel value="settings">
            <CourierSettings courier={courier} />
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
          <Tabs.Panel value="first-day">
            <FirstDay courier={courier} />
          </Tabs.Panel>
          <Tabs.Panel value="quality">
            <Stack gap="lg">
              <QualitySection courier={code} />
              {mayShare && <QualityLinks code={code} />}
            </Stack>
          </Tabs.Panel>
        </Tabs>
      </Stack>
    </>
  );
}

/** So that six of them stand in one row. */
const LABELS_BELOW = {
  steps: { alignItems: "flex-start" },
  step: { flexDirection: "column", maxWidth: 112 },
  stepLabel: { lineHeight: 1.3 },
  stepBody: { marginInlineStart: 0, marginTop: 6, textAlign: "center" },
  separator: { marginTop: 17 },
} as const;

interface OnboardingProps {
  readonly courier: Courier;
  /** Shows the tab where the step is done. */
  readonly onStep: (tab: string) => void;
}

/** Where each step is done. */
const TAB_OF_STEP = ["access", "access", "catalogue", "access", "finder", "first-day"];

/** The steps from a contract to the comparison of the first day, after which the courier is live. */
function Onboarding({ courier, onStep }: OnboardingProps) {
  const { t } = useText();
  const orientation = useMatches({ base: "vertical", md: "horizontal" } as const);
  const { data = [] } = useQuery(qualityQuery(QUALITY_DAYS));
  const received = data.find((row) => row.courier === courier.code)?.received ?? 0;
  const steps = [
    [t.couriers.stepToken, courier.tokens.length > 0 || courier.oauth],
    [t.couriers.stepSecret, courier.signingSecrets.length > 0 || !courier.signatureRequired],
    [t.couriers.stepCatalogue, courier.catalogueCodes > 0],
    [t.couriers.stepAccepting, courier.acceptingEvents],
    [
      courier.signingSecrets.length > 0 ? t.couriers.stepFirstSigned : t.couriers.stepFirst,
      // A courier that signs proves with it that its signatures are right.
      courier.signingSecrets.length > 0 ? courier.firstSignedAt !== null : received > 0,
    ],
    [t.couriers.stepCompared, courier.comparison !== null],
  ] as const;
  const open = steps.findIndex(([, isDone]) => !isDone);
  return (
    <Section title={t.couriers.onboarding}>
      <Stepper
        active={open === -1 ? steps.length : open}
        size="sm"
        orientation={orientation}
        onStepClick={(step) => onStep(TAB_OF_STEP[step] ?? "access")}
        {...(orientation === "horizontal" && { wrap: false, styles: LABELS_BELOW })}
      >
        {steps.map(([label]) => (
          <Stepper.Step key={label} label={label} />
        ))}
      </Stepper>
    </Section>
  );
}

function Activation({ courier: { code, acceptingEvents } }: { readonly courier: Courier }) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  if (!capabilities.includes("couriers:write")) return null;
  return (
    <SwitchButton
      isOn={acceptingEvents}
      turnOn={t.couriers.activate}
      turnOff={t.couriers.deactivate}
      turnOffText={t.couriers.deactivateText}
      onSwitch={() =>
        call("post", `/panel/api/couriers/:code/${acceptingEvents ? "deactivate" : "activate"}`, {
          params: { code },
        })
      }
      onDone={() => queries.invalidateQueries({ queryKey: ["couriers"] })}
    />
  );
}
