/** API keys of a channel: issued once, revoked at once. */
import {
  Badge,
  Checkbox,
  Group,
  MultiSelect,
  Radio,
  Stack,
  Table,
  Text,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { usageQuery } from "#panel/web/pages/companies/queries.ts";
import { AddSecret } from "#panel/web/parts/add-secret.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { FormDialog } from "#panel/web/parts/form-dialog.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";
import { isShadow, SCOPES } from "./choices.ts";

type ApiKey = Channel["apiKeys"][number];

export function ApiKeys({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const mayChange = useMay("keys:write");
  return (
    <Section
      title={t.merchants.keys}
      lead={t.merchants.keysLead}
      aside={
        mayChange && (
          <AddSecret
            label={t.merchants.issueKey}
            title={t.merchants.apiKey}
            dialogOf={(onClose, onIssued) => (
              <IssueKey channelCode={channel.code} onClose={onClose} onIssued={onIssued} />
            )}
          />
        )
      }
    >
      <KeyTable channel={channel} mayChange={mayChange} />
    </Section>
  );
}

interface KeyTableProps {
  readonly channel: Channel;
  readonly mayChange: boolean;
}

function KeyTable({ channel: { code, apiKeys }, mayChange }: KeyTableProps) {
  const { t } = useText();
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const { data: usage } = useQuery(usageQuery(code));
  const suspendedUntil = (id: number) =>
    usage?.suspendedKeys.find((one) => one.id === id)?.until ?? null;
  const revoking = useAction({
    mutationFn: (id: number) => call("delete", "/panel/api/api-keys/:id", { params: { id } }),
    onError: tellProblem,
    async onSuccess() {
      setRevoked(null);
      tell(t.merchants.revoked);
      await queries.invalidateQueries({ queryKey: ["channels", code] });
    },
  });
  return (
    <>
      <ScrollTable label={t.merchants.keys} minWidth={640}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.merchants.code}</Table.Th>
            <Table.Th>{t.merchants.mode}</Table.Th>
            <Table.Th>{t.merchants.state}</Table.Th>
            <Table.Th>{t.merchants.scopes}</Table.Th>
            {mayChange && <Table.Th />}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {apiKeys.map((key) => (
            <Table.Tr key={key.id}>
              <Table.Th scope="row" className="mono">
                {key.code}
              </Table.Th>
              <Table.Td>
                <Badge color={key.mode === "test" ? "yellow" : "blue"}>
                  {t.merchants.modes[key.mode]}
                </Badge>
              </Table.Td>
              <Table.Td>
                <KeyState apiKey={key} suspendedUntil={suspendedUntil(key.id)} />
              </Table.Td>
              <Table.Td>
                <Scopes apiKey={key} />
              </Table.Td>
              {mayChange && (
                <Table.Td>
                  <Group justify="end">
                    {key.active && (
                      <RowButton
                        action={t.merchants.revoke}
                        subject={key.code}
                        onClick={() => setRevoked(key)}
                      />
                    )}
                  </Group>
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
      <Confirm
        opened={revoked !== null}
        onClose={() => setRevoked(null)}
        title={t.merchants.revoke}
        text={t.merchants.revokeKeyText(revoked?.code ?? "")}
        action={t.merchants.revoke}
        isPending={revoking.isPending}
        onConfirm={() => revoked && revoking.mutate(revoked.id)}
      />
    </>
  );
}

interface KeyStateProps {
  readonly apiKey: ApiKey;
  readonly suspendedUntil: string | null;
}

function KeyState({ apiKey: { active }, suspendedUntil }: KeyStateProps) {
  const { t } = useText();
  const f = useFormat();
  if (!active) return <Badge color="gray">{t.merchants.revokedState}</Badge>;
  return suspendedUntil === null ? (
    <Badge color="teal">{t.merchants.active}</Badge>
  ) : (
    <Badge color="red">{t.merchants.suspendedUntil(f.minute(suspendedUntil))}</Badge>
  );
}

function Scopes({ apiKey: { scopes, companyWideRead } }: { readonly apiKey: ApiKey }) {
  const { t } = useText();
  return (
    <Group gap={4}>
      {companyWideRead && <Badge color="indigo">{t.merchants.companyWide}</Badge>}
      {scopes.length === SCOPES.length ? (
        <Text size="sm">{t.merchants.allScopes}</Text>
      ) : (
        scopes.map((one) => (
          <Badge key={one} color="gray">
            {one}
          </Badge>
        ))
      )}
    </Group>
  );
}

interface IssueKeyProps {
  readonly channelCode: string;
  readonly onClose: () => void;
  readonly onIssued: (key: string) => void;
}

function IssueKey({ channelCode, onClose, onIssued }: IssueKeyProps) {
  const { t } = useText();
  const form = useForm({
    initialValues: {
      code: "",
      mode: isShadow(channelCode) ? "test" : "live",
      scopes: [] as string[],
      companyWideRead: false,
    },
  });
  const issuing = useAction({
    mutationFn: ({ code, mode, scopes, companyWideRead }: typeof form.values) =>
      call("post", "/panel/api/channels/:channelCode/api-keys", {
        params: { channelCode },
        body: {
          mode,
          companyWideRead,
          ...(code !== "" && { code }),
          ...(scopes.length > 0 && { scopes }),
        },
      }),
    async onSuccess({ key }) {
      onIssued(key);
      await queries.invalidateQueries({ queryKey: ["channels", channelCode] });
    },
  });
  return (
    <FormDialog
      title={t.merchants.issueKey}
      action={t.merchants.issue}
      error={issuing.error}
      isPending={issuing.isPending}
      onSubmit={form.onSubmit((values) => issuing.mutate(values))}
      onClose={onClose}
    >
      <TextInput
        label={t.merchants.code}
        description={t.merchants.keyCodeHint}
        maxLength={50}
        data-autofocus
        {...form.getInputProps("code")}
        error={faultOf(issuing.error, "code")}
      />
      {!isShadow(channelCode) && (
        <Radio.Group label={t.merchants.mode} {...form.getInputProps("mode")}>
          <Stack gap="xs" mt="xs">
            {(["live", "test"] as const).map((mode) => (
              <Radio
                key={mode}
                value={mode}
                label={t.merchants.modes[mode]}
                description={t.merchants.modeHints[mode]}
              />
            ))}
          </Stack>
        </Radio.Group>
      )}
      <MultiSelect
        label={t.merchants.scopes}
        placeholder={form.values.scopes.length === 0 ? t.merchants.allScopes : ""}
        data={SCOPES}
        searchable
        hidePickedOptions
        {...form.getInputProps("scopes")}
        error={faultOf(issuing.error, "scopes")}
      />
      <Checkbox
        label={t.merchants.companyWideLabel}
        description={t.merchants.companyWideHint}
        {...form.getInputProps("companyWideRead", { type: "checkbox" })}
      />
    </FormDialog>
  );
}
