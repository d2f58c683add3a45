/** Tokens or signing secrets in force: issued once, revoked at once. */
import { Group, Table } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Courier } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { AddButton } from "#panel/web/parts/add-button.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { SecretOnce } from "#panel/web/parts/secret-once.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";

interface AccessListProps {
  readonly code: string;
  readonly kind: "tokens" | "signing-secrets";
  readonly rows: Courier["tokens"];
}

export function AccessList({ code, kind, rows }: AccessListProps) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const mayChange = capabilities.includes("courier-access:write");
  const [issued, setIssued] = useState<string | null>(null);
  const [revoked, setRevoked] = useState<string | null>(null);
  const { issuing, revoking } = useAccess(code, kind, setIssued, () => setRevoked(null));
  const title = kind === "tokens" ? t.couriers.tokens : t.couriers.secrets;
  return (
    <Section
      title={title}
      lead={t.couriers.accessLead}
      aside={
        mayChange && (
          <AddButton
            label={t.couriers.issue}
            isPending={issuing.isPending}
            onClick={() => issuing.mutate()}
          />
        )
      }
    >
      <ScrollTable label={title} minWidth={320}>
        <Table.Tbody>
          {rows.map(({ id, createdAt }) => (
            <Table.Tr key={id}>
              <Table.Th scope="row" className="mono">
                {id}
              </Table.Th>
              <Table.Td>
                {createdAt === null ? t.couriers.fromSetup : <Instant at={createdAt} />}
              </Table.Td>
              <Table.Td>
                <Group justify="end">
                  {mayChange && (
                    <RowButton
                      action={t.couriers.revoke}
                      subject={id}
                      onClick={() => setRevoked(id)}
                    />
                  )}
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
      <SecretOnce title={title} secret={issued} onClose={() => setIssued(null)} />
      <Confirm
        opened={revoked !== null}
        onClose={() => setRevoked(null)}
        title={t.couriers.revoke}
        text={t.couriers.revokeText}
        action={t.couriers.revoke}
        isPending={revoking.isPending}
        onConfirm={() => revoked !== null && revoking.mutate(revoked)}
      />
    </Section>
  );
}

function useAccess(
  code: string,
  kind: AccessListProps["kind"],
  onIssued: (secret: string) => void,
  onRevoked: () => void,
) {
  const changed = () => queries.invalidateQueries({ queryKey: ["couriers", code] });
  const issuing = useAction({
    mutationFn: async () => {
      if (kind === "tokens") {
        return (await call("post", "/panel/api/couriers/:code/tokens", { params: { code } })).token;
      }
      const path = "/panel/api/couriers/:code/signing-secrets";
      return (await call("post", path, { params: { code } })).secret;
    },
    onError: tellProblem,
    async onSuccess(secret) {
      onIssued(secret);
      await changed();
    },
  });
  const revoking = useAction({
    mutationFn: (id: string) =>
      call("delete", `/panel/api/couriers/:code/${kind}/:id`, { params: { code, id } }),
    onError: tellProblem,
    async onSuccess() {
      onRevoked();
      await changed();
    },
  });
  return { issuing, revoking };
}
