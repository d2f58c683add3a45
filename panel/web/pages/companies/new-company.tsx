/** A new company. */
import { TextInput } from "@mantine/core";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { NewEntry } from "#panel/web/pages/entries/new-entry.tsx";

const NEW = { code: "", name: "", seatPostcode: "" };

export function NewCompany() {
  const { t } = useText();
  const { name, seatPostcode } = t.entries.companyFields;
  return (
    <NewEntry
      label={t.entries.newCompany}
      initial={NEW}
      send={({ seatPostcode: seat, ...body }) =>
        call("post", "/panel/api/companies", {
          body: { ...body, ...(seat !== "" && { seatPostcode: seat }) },
        })
      }
      pageOf={(code) => `/companies/${code}`}
    >
      {(inputOf) => (
        <>
          <TextInput label={name.label} required maxLength={255} {...inputOf("name")} />
          <TextInput
            label={seatPostcode.label}
            description={seatPostcode.hint}
            maxLength={16}
            {...inputOf("seatPostcode")}
          />
        </>
      )}
    </NewEntry>
  );
}
