/** What a courier sent and was not accepted: grouped by the broken rule, newest first, with the event. */
import { Button, Card, Group, Select, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { InboxItem } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { couriersQuery } from "#panel/web/pages/couriers/queries.ts";
import { JsonDialog } from "#panel/web/parts/json-dialog.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { InboxTable, useRuleText } from "./inbox-table.tsx";

const EVERY_MS = 10_000;
const OUTCOMES = ["INVALID", "UNKNOWN_TRACKING", "DUPLICATE"] as const;

/** A rule in plain words is longer than a telephone is wide. */
const WRAPPED = { label: { whiteSpace: "normal" }, inner: { textAlign: "start" } } as const;

interface InboxSearch {
  readonly courier?: string;
  readonly outcome?: string;
  readonly code?: string;
}

export function InboxPage() {
  const { t } = useText();
  const search: InboxSearch = useSearch({ strict: false });
  const { data } = useQuery(couriersQuery);
  const couriers = data?.items ?? [];
  const courier = search.courier ?? couriers[0]?.code;
  const navigate = useNavigate();
  const change = (more: InboxSearch) => {
    const asked = Object.entries({ ...search, ...more }).filter(([, value]) => value !== "");
    void navigate({ to: "/inbox", search: Object.fromEntries(asked), replace: true });
  };
  return (
    <>
      <PageHead title={t.inbox.title} lead={t.inbox.lead} />
      <Stack gap="md">
        <Group gap="sm">
          <Select
            aria-label={t.couriers.courier}
            data={couriers.map(({ code, name }) => ({ value: code, label: name }))}
            value={courier ?? null}
            onChange={(code) => change({ courier: code ?? "", code: "" })}
            allowDeselect={false}
          />
          <Select
            aria-label={t.couriers.outcome}
            data={[
              { value: "", label: t.inbox.anyOutcome },
              ...OUTCOMES.map((value) => ({ value, label: t.inbox.outcomes[value] })),
            ]}
            value={search.outcome ?? ""}
            onChange={(outcome) => change({ outcome: outcome ?? "", code: "" })}
            allowDeselect={false}
          />
        </Group>
        {courier !== undefined && <Inbox {...search} courier={courier} onRule={change} />}
      </Stack>
    </>
  );
}

interface InboxProps extends InboxSearch {
  readonly courier: string;
  readonly onRule: (change: InboxSearch) => void;
}

function Inbox({ courier, outcome, code, onRule }: InboxProps) {
  const { t } = useText();
  const f = useFormat();
  const ruleText = useRuleText();
  const [open, setOpen] = useState<InboxItem | null>(null);
  const query = { ...(outcome && { outcome }), ...(code && { code }) };
  const list = usePaged(
    ["inbox", courier, query],
    (cursor, signal) =>
      call("get", "/panel/api/couriers/:code/events", {
        params: { code: courier },
        query: { ...query, cursor },
        signal,
      }),
    EVERY_MS,
  );
  const groups = list.pages?.[0]?.groups ?? [];
  return (
    <>
      <Group gap="xs" component="section" aria-label={t.inbox.rules}>
        {groups.map((group) => (
          <Button
            key={`${group.outcome} ${group.code} ${group.path}`}
            variant="default"
            size="xs"
            h="auto"
            py={6}
            styles={WRAPPED}
            onClick={() => onRule({ outcome: group.outcome, code: group.code })}
          >
            {ruleText(group)}: {f.whole(group.events)}
          </Button>
        ))}
        {code && (
          <Button variant="subtle" size="xs" onClick={() => onRule({ code: "" })}>
            {t.common.clear}
          </Button>
        )}
      </Group>
      <ProblemNote error={list.error} />
      <Card padding={0}>
        <InboxTable
          rows={list.rows}
          isLoading={list.isLoading}
          onEnd={list.onEnd}
          onOpen={setOpen}
        />
      </Card>
      <JsonDialog
        title={t.inbox.payload}
        isOpen={open !== null}
        value={open?.event}
        onClose={() => setOpen(null)}
      />
    </>
  );
}
