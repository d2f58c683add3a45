/** API keys of a channel: issued once, revoked at once. */
import { Badge, Checkbox, Group, MultiSelect, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { type DialogEnds, EditableList } from "#panel/web/forms/editable-list.tsx";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { usageQuery } from "#panel/web/pages/companies/queries.ts";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";
import { isShadow, SCOPES } from "./choices.ts";

type ApiKey = Channel["apiKeys"][number];

export function ApiKeys({
  channel: { code: channelCode, apiKeys },
}: {
  readonly channel: Channel;
}) {
  const { t } = useText();
  const mayChange = useMay("keys:write");
  const mayLift = useMay("channels:write");
  const lifting = useAction({
    mutationFn: (id: number) =>
      call("delete", "/panel/api/api-keys/:id/suspension", { params: { id } }),
    onError: tellProblem,
    async onSuccess() {
      tell(t.entries.lifted);
      await queries.invalidateQueries({ queryKey: ["channels", channelCode] });
    },
  });
  const { data: usage } = useQuery(usageQuery(channelCode));
  const suspendedUntil = (id: number) =>
    usage?.suspendedKeys.find((one) => one.id === id)?.until ?? null;
  return (
    <EditableList
      title={t.merchants.keys}
      lead={t.merchants.keysLead}
      rows={apiKeys}
      nameOf={({ code }) => code}
      columns={[
        [t.merchants.code, ({ code }) => code],
        [
          t.merchants.mode,
          ({ mode }) => (
            <Badge color={mode === "test" ? "yellow" : "blue"}>{t.merchants.modes[mode]}</Badge>
          ),
        ],
        [
          t.merchants.state,
          (key) => (
            <KeyState
              apiKey={key}
              suspendedUntil={suspendedUntil(key.id)}
              onLift={mayLift ? () => lifting.mutate(key.id) : null}
            />
          ),
        ],
        [t.merchants.scopes, (key) => <Scopes apiKey={key} />],
      ]}
      minWidth={640}
      queryKey={["channels", channelCode]}
      add={mayChange && { label: t.merchants.issueKey }}
      removal={
        mayChange && {
          action: t.merchants.revoke,
          isFor: ({ active }) => active,
          text: t.merchants.revokeKeyText,
          call: ({ id }) => call("delete", "/panel/api/api-keys/:id", { params: { id } }),
          done: t.merchants.revoked,
        }
      }
      secretTitle={t.merchants.apiKey}
      dialogOf={(_key, ends) => <IssueKey channelCode={channelCode} ends={ends} />}
    />
  );
}

interface KeyStateProps {
  readonly apiKey: ApiKey;
  readonly suspendedUntil: string | null;
  /** Null = the visitor may not. */
  readonly onLift: (() => void) | null;
}

function KeyState({ apiKey: { active, code }, suspendedUntil, onLift }: KeyStateProps) {
  const { t } = useText();
  const f = useFormat();
  if (!active) return <Badge color="gray">{t.merchants.revokedState}</Badge>;
  return suspendedUntil === null ? (
    <Badge color="teal">{t.merchants.active}</Badge>
  ) : (
    <Group gap="xs">
      <Badge color="red">{t.merchants.suspendedUntil(f.minute(suspendedUntil))}</Badge>
      {onLift && <RowButton action={t.entries.lift} subject={code} onClick={onLift} />}
    </Group>
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
  readonly ends: DialogEnds;
}

function IssueKey({ channelCode, ends }: IssueKeyProps) {
  const { t } = useText();
  return (
    <FormDialog
      title={t.merchants.issueKey}
      action={t.merchants.issue}
      initial={{
        code: "",
        mode: isShadow(channelCode) ? "test" : "live",
        scopes: [] as string[],
        companyWideRead: false,
      }}
      send={({ code, scopes, ...body }) =>
        call("post", "/panel/api/channels/:channelCode/api-keys", {
          params: { channelCode },
          body: {
            ...body,
            ...(code !== "" && { code }),
            ...(scopes.length > 0 && { scopes }),
          },
        })
      }
      onDone={({ key }) => ends.onIssued(key)}
      onClose={ends.onClose}
    >
      {(inputOf, { values: { scopes } }) => (
        <>
          <TextInput
            label={t.merchants.code}
            description={t.merchants.keyCodeHint}
            maxLength={50}
            data-autofocus
            {...inputOf("code")}
          />
          {!isShadow(channelCode) && (
            <Radio.Group label={t.merchants.mode} {...inputOf("mode")}>
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
            placeholder={scopes.length === 0 ? t.merchants.allScopes : ""}
            data={SCOPES}
            searchable
            hidePickedOptions
            {...inputOf("scopes")}
          />
          <Checkbox
            label={t.merchants.companyWideLabel}
            description={t.merchants.companyWideHint}
            {...inputOf("companyWideRead", { type: "checkbox" })}
          />
        </>
      )}
    </FormDialog>
  );
}
