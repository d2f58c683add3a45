/** The settings of a company, from their definition. */
import { companyForm } from "#core/configuration/rules/settings.ts" with { type: "macro" };
import { call } from "#panel/web/api/call.ts";
import type { Company } from "#panel/web/api/routes.ts";
import { EditForm } from "#panel/web/forms/edit-form.tsx";
import { inputType, SettingField } from "#panel/web/forms/setting-field.tsx";
import { useEdit } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { queries } from "#panel/web/queries.ts";

const FIELDS = companyForm();
type Settings = Pick<Company, (typeof FIELDS)[number]["name"]>;

export function CompanySettings({ company }: { readonly company: Company }) {
  const { t } = useText();
  const own = Object.fromEntries(FIELDS.map(({ name }) => [name, company[name]])) as Settings;
  const reread = () => queries.invalidateQueries({ queryKey: ["companies"] });
  const edit = useEdit({
    initial: { ...own, seatPostcode: company.seatPostcode ?? "" },
    version: company.version,
    send: (_values, touched, match) =>
      call("patch", "/panel/api/companies/:code", {
        params: { code: company.code },
        body: { ...touched, ...(touched.seatPostcode === "" && { seatPostcode: null }) },
        match,
      }),
    async onDone() {
      tell(t.common.saved);
      await reread();
    },
    reread,
  });
  return (
    <EditForm edit={edit}>
      {FIELDS.map((field) => (
        <SettingField
          key={field.name}
          field={field}
          words={t.entries.companyFields[field.name]}
          input={edit.inputOf(field.name, { type: inputType(field) })}
        />
      ))}
    </EditForm>
  );
}
