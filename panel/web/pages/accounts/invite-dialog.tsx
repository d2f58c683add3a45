/** An invitation: for whom, and what they may do. Owners invite members of what is theirs. */
import { Alert, Select, TextInput } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { ACCOUNT_KINDS, type AccountKind, type Role, rolesOf } from "#core/accounts/rules/roles.ts";
import { call } from "#panel/web/api/call.ts";
import type { CompanyPage } from "#panel/web/api/routes.ts";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { couriersQuery } from "#panel/web/pages/couriers/queries.ts";
import { tell } from "#panel/web/parts/tell.ts";
import { meQuery, queries } from "#panel/web/queries.ts";

/** As many as a page of the list may have. */
const COMPANIES_ASKED = 200;

interface InviteDialogProps {
  readonly onClose: () => void;
  /** Null = the mail alone has the link. */
  readonly onInvited: (link: string | null) => void;
}

interface Wanted {
  readonly email: string;
  readonly name: string;
  readonly kind: AccountKind;
  readonly role: Role;
  readonly owner: string;
}

export function InviteDialog({ onClose, onInvited }: InviteDialogProps) {
  const { t } = useText();
  const me = useSuspenseQuery(meQuery).data;
  const initial: Wanted = {
    email: "",
    name: "",
    kind: me.kind,
    role: leastOf(me.kind),
    owner: me.companyCode ?? me.courierCode ?? "",
  };
  return (
    <FormDialog
      title={t.accounts.invite}
      action={t.accounts.sendInvitation}
      initial={initial}
      send={invite}
      onDone={async ({ link, mailed, account }) => {
        const person = account.email ?? account.name;
        if (mailed) tell(t.accounts.mailed(person));
        else if (link === null) tell(t.accounts.notMailed(person));
        onInvited(link);
        await queries.invalidateQueries({ queryKey: ["accounts"] });
      }}
      onClose={onClose}
    >
      {(inputOf, { values: { kind }, set }) => (
        <>
          <TextInput
            label={t.login.email}
            type="email"
            required
            data-autofocus
            {...inputOf("email")}
          />
          <TextInput label={t.invitation.name} required {...inputOf("name")} />
          {me.kind === "operator" && (
            <Select
              label={t.accounts.worksFor}
              data={ACCOUNT_KINDS.map((value) => ({ value, label: t.accounts.kinds[value] }))}
              allowDeselect={false}
              value={kind}
              onChange={(value) => {
                const chosen = value as AccountKind;
                set({ kind: chosen, role: leastOf(chosen), owner: "" });
              }}
            />
          )}
          {me.kind === "operator" && kind !== "operator" && (
            <OwnerSelect kind={kind} input={inputOf("owner", { path: `${kind}Code` })} />
          )}
          <Select
            label={t.accounts.role}
            data={rolesOf(kind).map((value) => ({ value, label: t.accounts.roles[value] }))}
            allowDeselect={false}
            {...inputOf("role")}
          />
          <Alert color="blue">
            {me.kind === "operator" ? t.accounts.inviteText : t.accounts.inviteByMailText}
          </Alert>
        </>
      )}
    </FormDialog>
  );
}

function invite({ owner, ...wanted }: Wanted) {
  const companyCode = wanted.kind === "company" ? { companyCode: owner } : {};
  const courierCode = wanted.kind === "courier" ? { courierCode: owner } : {};
  const body = { ...wanted, ...companyCode, ...courierCode };
  return call("post", "/panel/api/invitations", { body });
}

interface OwnerSelectProps {
  readonly kind: "company" | "courier";
  /** Of the form. */
  readonly input: object;
}

function OwnerSelect({ kind, input }: OwnerSelectProps) {
  const { t } = useText();
  const isCompany = kind === "company";
  const companies = useQuery({
    queryKey: ["companies", "names"],
    queryFn: ({ signal }) => allCompanies(signal),
    enabled: isCompany,
  });
  const couriers = useQuery({ ...couriersQuery, enabled: !isCompany });
  const shown = (isCompany ? companies.data : couriers.data?.items) ?? [];
  return (
    <Select
      key={kind}
      label={t.accounts.kinds[kind]}
      data={shown.map(({ code, name }) => ({ value: code, label: name }))}
      searchable
      required
      {...input}
    />
  );
}

async function allCompanies(signal: AbortSignal) {
  const all: CompanyPage["items"] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: CompanyPage = await call("get", "/panel/api/companies", {
      query: { limit: COMPANIES_ASKED, cursor },
      signal,
    });
    all.push(...page.items);
    cursor = page.nextCursor;
  }
  return all;
}

/** The least powerful role is the one offered first. */
function leastOf(kind: AccountKind): Role {
  return rolesOf(kind).at(-1) ?? "read-only";
}
