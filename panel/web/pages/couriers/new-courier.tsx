/** A new courier: its token and secret are shown once. */
import { Switch, TextInput } from "@mantine/core";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { NewEntry } from "#panel/web/pages/entries/new-entry.tsx";

const NEW = { code: "", name: "", environment: "production", signatureRequired: true };

export function NewCourier() {
  const { t } = useText();
  const { name, environment, signatureRequired } = t.entries.courierFields;
  return (
    <NewEntry
      label={t.entries.newCourier}
      initial={NEW}
      send={(body) => call("post", "/panel/api/couriers", { body })}
      pageOf={(code) => `/carriers/${code}`}
    >
      {(inputOf) => (
        <>
          <TextInput label={name.label} required maxLength={255} {...inputOf("name")} />
          <TextInput
            label={environment.label}
            description={environment.hint}
            maxLength={255}
            {...inputOf("environment")}
          />
          <Switch
            label={signatureRequired.label}
            description={signatureRequired.hint}
            {...inputOf("signatureRequired", { type: "checkbox" })}
          />
        </>
      )}
    </NewEntry>
  );
}
