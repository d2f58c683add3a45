/** One company: its channels and its boxes. */
import { Anchor, Breadcrumbs, Group, SimpleGrid, Stack, Table } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { Company } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { languageName } from "#panel/web/pages/channels/choices.ts";
import { CloseButton } from "#panel/web/pages/entries/close-button.tsx";
import { ManagedBadge } from "#panel/web/pages/entries/managed-badge.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { ActiveBadge } from "./active-badge.tsx";
import { Boxes } from "./boxes.tsx";
import { CompanySettings } from "./company-settings.tsx";
import { NewChannel } from "./new-channel.tsx";
import { companyQuery } from "./queries.ts";

export function CompanyPage() {
  const { t, language } = useText();
  const { code = "" } = useParams({ strict: false });
  const company = useSuspenseQuery(companyQuery(code)).data;
  const mayChange = useMay("channels:write");
  return (
    <>
      <Breadcrumbs mb="xs">
        <Anchor component={Link} to="/companies" size="sm">
          {t.merchants.companies}
        </Anchor>
      </Breadcrumbs>
      <PageHead
        title={company.name}
        lead={
          <Group gap="xs">
            <ManagedBadge entity={company} />
            <span>{company.code}</span>
          </Group>
        }
      >
        {mayChange && (
          <>
            <CloseButton
              closedAt={company.closedAt}
              action={t.entries.close.company}
              text={t.entries.closeCompany}
              close={() => call("delete", "/panel/api/companies/:code", { params: { code } })}
              reopen={() => call("post", "/panel/api/companies/:code/reopen", { params: { code } })}
            />
            {company.closedAt === null && <NewChannel companyCode={code} />}
          </>
        )}
      </PageHead>
      <Stack gap="lg">
        <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
          <Channels company={company} />
          <Section title={t.merchants.facts}>
            {mayChange && company.closedAt === null ? (
              <CompanySettings company={company} />
            ) : (
              <Facts
                rows={[
                  [t.merchants.language, languageName(company.language, language)],
                  [t.merchants.seat, company.seatPostcode ?? "–"],
                  [t.merchants.products, company.products.join(", ") || "–"],
                ]}
              />
            )}
          </Section>
        </SimpleGrid>
        <Boxes companyCode={company.code} boxes={company.boxes} />
      </Stack>
    </>
  );
}

function Channels({ company: { channels } }: { readonly company: Company }) {
  const { t } = useText();
  return (
    <Section title={t.merchants.channels}>
      <ScrollTable label={t.merchants.channels} minWidth={320}>
        <Table.Tbody>
          {channels.map(({ code, name, active }) => (
            <Table.Tr key={code}>
              <Table.Th scope="row">
                <Anchor component={Link} to={`/channels/${code}`} size="sm">
                  {name}
                </Anchor>
              </Table.Th>
              <Table.Td className="mono">{code}</Table.Td>
              <Table.Td>
                <ActiveBadge isActive={active} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
    </Section>
  );
}
