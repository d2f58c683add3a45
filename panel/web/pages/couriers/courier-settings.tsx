/** Every setting of a courier, from its definition, with its rate, its OAuth client and its certificates. */
import { NumberInput, SimpleGrid, TagsInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { courierForm } from "#core/configuration/rules/settings.ts" with { type: "macro" };
import { call } from "#panel/web/api/call.ts";
import type { Courier } from "#panel/web/api/routes.ts";
import { EditForm } from "#panel/web/forms/edit-form.tsx";
import { inputType, SettingField } from "#panel/web/forms/setting-field.tsx";
import { useEdit } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { type Generated, SecretsOnce } from "#panel/web/parts/secrets-once.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";

const FIELDS = courierForm();
type Settings = Pick<Courier, (typeof FIELDS)[number]["name"]>;

interface Values extends Settings {
  readonly perSecond: number;
  readonly burst: number;
  readonly oauthClientId: string;
  readonly subjects: readonly string[];
  readonly fingerprints: readonly string[];
}

export function CourierSettings({ courier }: { readonly courier: Courier }) {
  const { t } = useText();
  const mayChange = useMay("couriers:write");
  const [secrets, setSecrets] = useState<readonly Generated[]>([]);
  const reread = () => queries.invalidateQueries({ queryKey: ["couriers"] });
  const edit = useEdit<Values, { readonly generated: readonly Generated[] }>({
    initial: valuesOf(courier),
    version: courier.version,
    send: (values, touched, match) =>
      call("patch", "/panel/api/couriers/:code", {
        params: { code: courier.code },
        body: bodyOf(values, touched),
        match,
      }),
    async onDone({ generated }) {
      tell(t.common.saved);
      setSecrets(generated);
      await reread();
    },
    reread,
  });
  const { inputOf } = edit;
  return (
    <Section title={t.entries.courierSettings} lead={t.entries.courierSettingsLead}>
      <EditForm edit={edit} mayChange={mayChange}>
        {FIELDS.map((field) =>
          field.name === "allowedIps" ? (
            <TagsInput
              key={field.name}
              label={t.entries.courierFields.allowedIps.label}
              description={t.entries.courierFields.allowedIps.hint}
              readOnly={!mayChange}
              {...inputOf("allowedIps")}
            />
          ) : (
            <SettingField
              key={field.name}
              field={field}
              words={t.entries.courierFields[field.name]}
              input={{
                ...inputOf(field.name, { type: inputType(field) }),
                readOnly: !mayChange,
              }}
            />
          ),
        )}
        <SimpleGrid cols={2}>
          <NumberInput
            label={t.entries.perSecond}
            min={0}
            {...inputOf("perSecond", { path: "rateLimit.perSecond" })}
          />
          <NumberInput
            label={t.entries.burst}
            min={1}
            allowDecimal={false}
            {...inputOf("burst", { path: "rateLimit.burst" })}
          />
        </SimpleGrid>
        <TextInput
          label={t.entries.oauthClientId}
          description={t.entries.oauthHint}
          maxLength={255}
          {...inputOf("oauthClientId", { path: "oauth.clientId" })}
        />
        <TagsInput
          label={t.entries.subjects}
          splitChars={[]}
          {...inputOf("subjects", { path: "mtls.subject" })}
        />
        <TagsInput
          label={t.entries.fingerprints}
          {...inputOf("fingerprints", { path: "mtls.fingerprint" })}
        />
      </EditForm>
      <SecretsOnce secrets={secrets} onClose={() => setSecrets([])} />
    </Section>
  );
}

function valuesOf(courier: Courier): Values {
  const own = Object.fromEntries(FIELDS.map(({ name }) => [name, courier[name]])) as Settings;
  const { rateLimit, oauthClientId, certificates } = courier;
  return { ...own, ...rateLimit, oauthClientId: oauthClientId ?? "", ...certificates };
}

/** What was touched, as the setup file says it. */
function bodyOf(values: Values, touched: Partial<Values>) {
  const { perSecond, burst, oauthClientId, subjects, fingerprints, ...own } = touched;
  const rateLimit = { ...(perSecond && { perSecond }), ...(burst && { burst }) };
  const isBound = values.subjects.length > 0 || values.fingerprints.length > 0;
  const mtls = {
    ...(values.subjects.length > 0 && { subject: values.subjects }),
    ...(values.fingerprints.length > 0 && { fingerprint: values.fingerprints }),
  };
  return {
    ...own,
    ...(Object.keys(rateLimit).length > 0 && { rateLimit }),
    ...(oauthClientId !== undefined && {
      oauth: oauthClientId === "" ? null : { clientId: oauthClientId },
    }),
    ...((subjects || fingerprints) && { mtls: isBound ? mtls : null }),
  };
}
