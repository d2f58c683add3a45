/** The companies that the visitor sees, with their channels. */
import { Anchor, Button, Card, Group } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Company } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { NewCompany } from "./new-company.tsx";

export function CompaniesPage() {
  const { t } = useText();
  const { rows, error, isLoading, onEnd } = usePaged(["companies", "list"], (cursor, signal) =>
    call("get", "/panel/api/companies", { query: { cursor }, signal }),
  );
  const mayCreate = useMay("channels:write");
  const columns = useMemo(() => {
    const column = createColumnHelper<Company>();
    return [
      column.accessor("name", {
        header: t.merchants.company,
        cell: ({ row: { original } }) => (
          <Anchor component={Link} to={`/companies/${original.code}`} fw={600} size="sm">
            {original.name}
          </Anchor>
        ),
      }),
      column.accessor("code", { header: t.merchants.code }),
      column.accessor("channels", {
        header: t.merchants.channels,
        cell: ({ getValue }) => (
          <Group gap="xs">
            {getValue().map(({ code, name }) => (
              <Anchor key={code} component={Link} to={`/channels/${code}`} size="sm">
                {name}
              </Anchor>
            ))}
          </Group>
        ),
      }),
    ];
  }, [t]);
  return (
    <>
      <PageHead title={t.merchants.companies} lead={t.merchants.companiesLead}>
        {mayCreate && (
          <>
            <Button
              component="a"
              variant="default"
              href="/panel/api/setup"
              download="setup.json"
              leftSection={<IconDownload size={16} aria-hidden />}
            >
              {t.entries.exportSetup}
            </Button>
            <NewCompany />
          </>
        )}
      </PageHead>
      <ProblemNote error={error} />
      <Card padding={0}>
        <DataTable
          label={t.merchants.companies}
          rows={rows}
          columns={columns}
          idOf={({ code }) => code}
          isLoading={isLoading}
          onEnd={onEnd}
          minWidth={480}
        />
      </Card>
    </>
  );
}
