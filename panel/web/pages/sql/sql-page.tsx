/** SQL access as an editor: one SELECT, its rows, and the same rows as a file. */
import { Button, Card, Group, Menu, Skeleton, Stack, Text } from "@mantine/core";
import { IconChevronDown, IconDownload, IconPlayerPlay } from "@tabler/icons-react";
import { lazy, Suspense, useState } from "react";
import { send } from "#panel/web/api/call.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { EXAMPLES, type ExampleName } from "./examples.ts";
import { SqlResult, type SqlRows } from "./sql-result.tsx";

const SqlEditor = lazy(async () => ({ default: (await import("./sql-editor.tsx")).SqlEditor }));

export function SqlPage() {
  const { t } = useText();
  const [query, setQuery] = useState(EXAMPLES.couriers);
  const asking = useAction({
    mutationFn: async (statement: string) => {
      const answer = await send("post", "/panel/api/sql", { body: { query: statement } });
      return (await answer.json()) as SqlRows;
    },
  });
  const run = () => asking.mutate(query);
  return (
    <>
      <PageHead title={t.sql.title} lead={t.sql.lead}>
        <Examples onPick={setQuery} />
      </PageHead>
      <Stack gap="lg">
        <Card padding="sm">
          <Suspense fallback={<Skeleton h={180} />}>
            <SqlEditor label={t.sql.statement} value={query} onChange={setQuery} onRun={run} />
          </Suspense>
          <Group mt="sm" gap="xs">
            <Button
              leftSection={<IconPlayerPlay size={16} aria-hidden />}
              loading={asking.isPending}
              onClick={run}
            >
              {t.sql.run}
            </Button>
            <Downloads query={query} />
          </Group>
        </Card>
        <ProblemNote error={asking.error} />
        {asking.data && <Answer answer={asking.data} />}
      </Stack>
    </>
  );
}

function Answer({ answer }: { readonly answer: SqlRows }) {
  const { t } = useText();
  const f = useFormat();
  const { rows, statistics } = answer;
  return (
    <Card padding={0}>
      <Text size="sm" c="dimmed" p="sm" role="status">
        {t.sql.rows(f.whole(rows), f.duration(statistics.elapsed))}
      </Text>
      <SqlResult answer={answer} />
    </Card>
  );
}

function Examples({ onPick }: { readonly onPick: (query: string) => void }) {
  const { t } = useText();
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" rightSection={<IconChevronDown size={16} aria-hidden />}>
          {t.sql.examples}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(EXAMPLES) as ExampleName[]).map((name) => (
          <Menu.Item key={name} onClick={() => onPick(EXAMPLES[name])}>
            {t.sql.queries[name]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const FORMATS = ["csv", "parquet"] as const;

/** The same rows as a file. */
function Downloads({ query }: { readonly query: string }) {
  const { t } = useText();
  const loading = useAction({
    mutationFn: async (format: (typeof FORMATS)[number]) => {
      const answer = await send("post", "/panel/api/sql", { body: { query, format } });
      saveAs(await answer.blob(), `waybill.${format}`);
    },
    onError: tellProblem,
  });
  return FORMATS.map((format) => (
    <Button
      key={format}
      variant="default"
      leftSection={<IconDownload size={16} aria-hidden />}
      loading={loading.isPending && loading.variables === format}
      onClick={() => loading.mutate(format)}
      aria-label={`${t.sql.download} ${t.sql[format]}`}
    >
      {t.sql[format]}
    </Button>
  ));
}

function saveAs(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
