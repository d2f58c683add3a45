/** Tokens or signing secrets in force: issued once, revoked at once. */
import { call } from "#panel/web/api/call.ts";
import type { Courier } from "#panel/web/api/routes.ts";
import { EditableList } from "#panel/web/forms/editable-list.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";

interface AccessListProps {
  readonly code: string;
  readonly kind: "tokens" | "signing-secrets";
  readonly rows: Courier["tokens"];
}

export function AccessList({ code, kind, rows }: AccessListProps) {
  const { t } = useText();
  const mayChange = useMay("courier-access:write");
  return (
    <EditableList
      title={kind === "tokens" ? t.couriers.tokens : t.couriers.secrets}
      lead={t.couriers.accessLead}
      rows={rows}
      nameOf={({ id }) => id}
      columns={[
        ["", ({ id }) => id],
        [
          "",
          ({ createdAt }) =>
            createdAt === null ? t.couriers.fromSetup : <Instant at={createdAt} />,
        ],
      ]}
      minWidth={320}
      queryKey={["couriers", code]}
      add={mayChange && { label: t.couriers.issue, issue: () => issue(code, kind) }}
      removal={
        mayChange && {
          action: t.couriers.revoke,
          text: () => t.couriers.revokeText,
          call: ({ id }) =>
            call("delete", `/panel/api/couriers/:code/${kind}/:id`, { params: { code, id } }),
        }
      }
    />
  );
}

async function issue(code: string, kind: AccessListProps["kind"]): Promise<string> {
  const params = { code };
  if (kind === "tokens") {
    return (await call("post", "/panel/api/couriers/:code/tokens", { params })).token;
  }
  return (await call("post", "/panel/api/couriers/:code/signing-secrets", { params })).secret;
}
