/** Making an endpoint and changing one: the same fields, of which those that are settings come from their definition. */
import { Checkbox, Select, Switch, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { endpointDefaults, endpointForm } from "#core/configuration/rules/settings.ts" with {
  type: "macro",
};
import { call } from "#panel/web/api/call.ts";
import type { Endpoint } from "#panel/web/api/routes.ts";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { inputType, SettingField } from "#panel/web/forms/setting-field.tsx";
import type { InputOf } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { SecretOnce } from "#panel/web/parts/secret-once.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { queries } from "#panel/web/queries.ts";

const SETTINGS = endpointForm();
const DEFAULTS = endpointDefaults();
type Settings = Pick<Endpoint, (typeof SETTINGS)[number]["name"]>;

interface Fields extends Omit<Settings, "include" | "maxPerSecond" | "headers"> {
  readonly url: string;
  readonly alertEmail: string;
  /** Whether the recipient's data are included. */
  readonly include: boolean;
  /** Empty = no such limit. */
  readonly maxPerSecond: number | "";
  /** One header a line. */
  readonly headers: string;
}

/** What is shown once. */
interface NewlyMade {
  readonly endpointId: string;
  readonly secret: string;
}

interface NewEndpointProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly channels: readonly string[];
}

export function NewEndpoint({ opened, onClose, channels }: NewEndpointProps) {
  const { t } = useText();
  const navigate = useNavigate();
  const [made, setMade] = useState<NewlyMade | null>(null);
  const initial = {
    channelCode: channels[0] ?? "",
    active: true,
    ...fieldsOf({ ...DEFAULTS, url: "", alertEmail: "" }),
  };
  return (
    <>
      {opened && (
        <FormDialog
          title={t.webhooks.create}
          action={t.common.create}
          size="lg"
          initial={initial}
          send={({ channelCode, active, ...fields }) =>
            call("post", "/panel/api/channels/:channelCode/webhooks", {
              params: { channelCode },
              body: { ...bodyOf(fields), active },
            })
          }
          onDone={async (answer) => {
            setMade(answer);
            onClose();
            await queries.invalidateQueries({ queryKey: ["channels"] });
          }}
          onClose={onClose}
        >
          {(inputOf) => (
            <>
              <Select
                label={t.webhooks.channel}
                data={[...channels]}
                allowDeselect={false}
                {...inputOf("channelCode")}
              />
              <EndpointFields inputOf={inputOf} />
              <Switch
                label={t.webhooks.startsActive}
                description={t.webhooks.startsActiveHint}
                {...inputOf("active", { type: "checkbox" })}
              />
            </>
          )}
        </FormDialog>
      )}
      <SecretOnce
        title={t.webhooks.secret}
        secret={made?.secret ?? null}
        onClose={() => {
          setMade(null);
          if (made) void navigate({ to: "/webhooks/$id", params: { id: made.endpointId } });
        }}
      />
    </>
  );
}

interface EditEndpointProps {
  readonly endpoint: Endpoint;
  readonly onClose: () => void;
}

export function EditEndpoint({ endpoint, onClose }: EditEndpointProps) {
  const { t } = useText();
  const { endpointId, version } = endpoint;
  const reread = () => queries.invalidateQueries({ queryKey: ["webhooks", endpointId] });
  return (
    <FormDialog
      title={t.webhooks.change}
      size="lg"
      initial={fieldsOf(endpoint)}
      version={version}
      send={(_, touched, match) =>
        call("patch", "/panel/api/webhooks/:endpointId", {
          params: { endpointId },
          body: bodyOf(touched),
          match,
        })
      }
      onDone={async () => {
        onClose();
        tell(t.common.saved);
        await reread();
      }}
      reread={reread}
      onClose={onClose}
    >
      {(inputOf) => <EndpointFields inputOf={inputOf} />}
    </FormDialog>
  );
}

function EndpointFields({ inputOf }: { readonly inputOf: InputOf<Fields> }) {
  const { t } = useText();
  const choices = {
    trigger: t.webhooks.triggers,
    statuses: t.statuses,
    bodyFormat: t.webhooks.bodyFormats,
  };
  return (
    <>
      <TextInput label={t.webhooks.url} placeholder="https://" required {...inputOf("url")} />
      <TextInput
        label={t.webhooks.alertEmail}
        description={t.webhooks.alertEmailHint}
        type="email"
        required
        {...inputOf("alertEmail")}
      />
      {SETTINGS.map((field) => {
        const { name } = field;
        const words = t.webhooks.settingWords[name];
        if (name === "include") {
          const input = inputOf(name, { type: "checkbox" });
          return <Checkbox key={name} label={words.label} {...input} />;
        }
        if (name === "headers") {
          const texts = { label: words.label, description: words.hint };
          return <Textarea key={name} {...texts} autosize minRows={2} {...inputOf(name)} />;
        }
        return (
          <SettingField
            key={name}
            field={field}
            words={words}
            input={inputOf(name, { type: inputType(field) })}
            {...(name in choices && { choices: choices[name as keyof typeof choices] })}
          />
        );
      })}
    </>
  );
}

function fieldsOf(endpoint: Settings & Pick<Endpoint, "url" | "alertEmail">): Fields {
  const { url, alertEmail, include, maxPerSecond, headers, ...settings } = endpoint;
  const own = Object.fromEntries(
    SETTINGS.map(({ name }) => [name, settings[name as keyof typeof settings]]),
  ) as unknown as typeof settings;
  return {
    ...own,
    url,
    alertEmail,
    include: include.includes("consignee"),
    maxPerSecond: maxPerSecond ?? "",
    headers: Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
  };
}

function bodyOf({ include, maxPerSecond, headers, ...fields }: Partial<Fields>) {
  return {
    ...fields,
    ...(headers !== undefined && { headers: headersOf(headers) }),
    ...(maxPerSecond !== undefined && { maxPerSecond: maxPerSecond === "" ? null : maxPerSecond }),
    ...(include !== undefined && { include: include ? ["consignee"] : [] }),
  };
}

function headersOf(lines: string): Record<string, string> {
  const named = lines.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    named.map((line) => {
      const [name = "", ...value] = line.split(":");
      return [name.trim(), value.join(":").trim()];
    }),
  );
}
