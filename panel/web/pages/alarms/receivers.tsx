/** Receivers of alarms. The URL of a webhook is a credential: it is written, and never shown. */
import { Badge, Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import {
  alarmReceiverDefaults,
  alarmReceiverForm,
} from "#core/configuration/rules/settings.ts" with { type: "macro" };
import { call } from "#panel/web/api/call.ts";
import type { AlarmReceiver } from "#panel/web/api/routes.ts";
import { EditableList } from "#panel/web/forms/editable-list.tsx";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { inputType, SettingField } from "#panel/web/forms/setting-field.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { tell, tellFailure, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";

const SETTINGS = alarmReceiverForm();
const DEFAULTS = alarmReceiverDefaults();
const QUERY_KEY = ["alarm-receivers"];

type Settings = typeof DEFAULTS;
interface Fields extends Settings {
  readonly url: string;
}

export function Receivers() {
  const { t } = useText();
  const mayChange = useMay("alarms:write");
  const { data, error } = useQuery({
    queryKey: QUERY_KEY,
    queryFn: ({ signal }) => call("get", "/panel/api/alarm-receivers", { signal }),
  });
  return (
    <EditableList
      title={t.alarms.receivers}
      lead={t.alarms.receiversLead}
      rows={data?.items ?? []}
      nameOf={placeOf}
      columns={[
        [t.alarms.receiver, placeOf],
        [t.alarms.settingWords.description.label, ({ description }) => description],
        [t.alarms.settingWords.severity.label, (one) => t.alarms.severities[one.severity]],
        [t.alarms.lastTold, (one) => <LastTold receiver={one} />],
        [t.alarms.test, (one) => (mayChange ? <TestButton receiver={one} /> : null)],
      ]}
      minWidth={860}
      emptyText={t.alarms.noReceivers}
      queryKey={QUERY_KEY}
      add={mayChange && { label: t.alarms.newReceiver }}
      change={mayChange && t.merchants.change}
      removal={
        mayChange && {
          action: t.common.remove,
          text: t.alarms.removeText,
          call: ({ id }) => call("delete", "/panel/api/alarm-receivers/:id", { params: { id } }),
        }
      }
      dialogOf={(receiver, ends) => (
        <ReceiverDialog
          receiver={receiver}
          onClose={ends.onClose}
          onSaved={ends.onSaved}
          reread={ends.reread}
        />
      )}
    >
      <ProblemNote error={error} />
    </EditableList>
  );
}

/** Unique: two webhooks of a host are told apart by their codes. */
function placeOf({ email, urlHost, code }: AlarmReceiver): string {
  return urlHost === null ? email : `${urlHost} (${code})`;
}

function LastTold({ receiver: { lastTold, active } }: { readonly receiver: AlarmReceiver }) {
  const { t } = useText();
  return (
    <Group gap="xs">
      {!active && <Badge color="gray">{t.merchants.off}</Badge>}
      {lastTold === null ? "–" : <Instant at={lastTold.at} />}
      {lastTold?.error && (
        <Text size="sm" c="red">
          {lastTold.error}
        </Text>
      )}
    </Group>
  );
}

function TestButton({ receiver }: { readonly receiver: AlarmReceiver }) {
  const { t } = useText();
  const { id } = receiver;
  const testing = useAction({
    mutationFn: () => call("post", "/panel/api/alarm-receivers/:id/test", { params: { id } }),
    onError: tellProblem,
    async onSuccess({ error }) {
      if (error === null) tell(t.alarms.tested);
      else tellFailure(`${t.alarms.notTested}: ${error}`);
      await queries.invalidateQueries({ queryKey: QUERY_KEY });
    },
  });
  return (
    <RowButton
      action={t.alarms.test}
      subject={placeOf(receiver)}
      onClick={() => testing.mutate()}
    />
  );
}

interface ReceiverDialogProps {
  /** Null = a new one. */
  readonly receiver: AlarmReceiver | null;
  readonly onClose: () => void;
  readonly onSaved: () => Promise<void>;
  readonly reread: () => Promise<void>;
}

function ReceiverDialog({ receiver, onClose, onSaved, reread }: ReceiverDialogProps) {
  const { t } = useText();
  const initial = fieldsOf(receiver ?? DEFAULTS);
  return (
    <FormDialog<Fields, unknown>
      title={receiver ? placeOf(receiver) : t.alarms.newReceiver}
      initial={initial}
      version={receiver?.version ?? null}
      send={(whole, touched, match) =>
        receiver
          ? call("patch", "/panel/api/alarm-receivers/:id", {
              params: { id: receiver.id },
              body: bodyOf(touched),
              match,
            })
          : call("post", "/panel/api/alarm-receivers", { body: bodyOf(whole) })
      }
      onDone={onSaved}
      reread={reread}
      onClose={onClose}
    >
      {(inputOf) => (
        <>
          <TextInput
            label={t.alarms.url}
            description={receiver?.urlHost ? t.alarms.urlKept(receiver.urlHost) : t.alarms.urlHint}
            placeholder="https://"
            {...inputOf("url")}
          />
          {SETTINGS.map((field) => (
            <SettingField
              key={field.name}
              field={field}
              words={t.alarms.settingWords[field.name]}
              input={inputOf(field.name, { type: inputType(field) })}
              {...(field.name === "severity" && { choices: t.alarms.severities })}
            />
          ))}
        </>
      )}
    </FormDialog>
  );
}

function fieldsOf(settings: Settings): Fields {
  const own = Object.fromEntries(SETTINGS.map(({ name }) => [name, settings[name]]));
  return { ...(own as unknown as Settings), url: "" };
}

/** A URL that is not typed stays as it is. */
function bodyOf({ url, ...settings }: Partial<Fields>) {
  return { ...settings, ...(url && { url }) };
}
