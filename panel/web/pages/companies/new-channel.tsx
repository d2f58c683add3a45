/** A new channel of a company, with its couriers and its first key. */
import { Checkbox, MultiSelect, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { couriersQuery } from "#panel/web/pages/couriers/queries.ts";
import { NewEntry } from "#panel/web/pages/entries/new-entry.tsx";

const NEW = { code: "", name: "", couriers: [] as string[], withKey: true };

export function NewChannel({ companyCode }: { readonly companyCode: string }) {
  const { t } = useText();
  const { data } = useQuery(couriersQuery);
  const couriers = (data?.items ?? []).filter(({ closedAt }) => closedAt === null);
  return (
    <NewEntry
      label={t.entries.newChannel}
      initial={NEW}
      send={({ withKey, couriers: codes, ...body }) =>
        call("post", "/panel/api/companies/:code/channels", {
          params: { code: companyCode },
          body: {
            ...body,
            couriers: codes.map((code) => ({ code })),
            ...(withKey && { apiKeys: [{ code: "main" }] }),
          },
        })
      }
      pageOf={(code) => `/channels/${code}`}
    >
      {(inputOf) => (
        <>
          <TextInput
            label={t.merchants.channelSettings.name.label}
            required
            maxLength={255}
            {...inputOf("name")}
          />
          <MultiSelect
            label={t.nav.couriers}
            data={couriers.map(({ code, name }) => ({ value: code, label: name }))}
            searchable
            {...inputOf("couriers")}
          />
          <Checkbox label={t.entries.withKey} {...inputOf("withKey", { type: "checkbox" })} />
        </>
      )}
    </NewEntry>
  );
}
