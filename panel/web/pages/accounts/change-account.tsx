/** Another's account: its role, whether it works, a lost second factor, and its end. */
import { Button, Group, Select, Text } from "@mantine/core";
import { useState } from "react";
import { rolesOf } from "#core/accounts/rules/roles.ts";
import { call, type Match } from "#panel/web/api/call.ts";
import type { Account } from "#panel/web/api/routes.ts";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";

interface ChangeAccountProps {
  readonly account: Account;
  readonly onClose: () => void;
}

export function ChangeAccount({ account, onClose }: ChangeAccountProps) {
  const { t } = useText();
  const { id, kind, role, state, totp, version } = account;
  const [isDeleting, setIsDeleting] = useState(false);
  const { change, changing, deleting, reread, onDone } = useChanges(account, onClose);
  if (isDeleting) {
    return (
      <Confirm
        opened
        title={t.common.remove}
        text={t.accounts.deleteText(account.email ?? account.name)}
        action={t.common.remove}
        isPending={deleting.isPending}
        onConfirm={() => deleting.mutate()}
        onClose={onClose}
      />
    );
  }
  return (
    <FormDialog
      key={id}
      title={account.name}
      initial={{ role }}
      version={version}
      send={(_, touched, match) => change(touched, match)}
      onDone={onDone}
      reread={reread}
      onClose={onClose}
    >
      {(inputOf) => (
        <>
          <Text size="sm" c="dimmed">
            {account.email}
          </Text>
          <Select
            label={t.accounts.role}
            data={rolesOf(kind).map((value) => ({ value, label: t.accounts.roles[value] }))}
            allowDeselect={false}
            {...inputOf("role")}
          />
          <Group gap="xs">
            <Button
              variant="default"
              onClick={() => changing.mutate({ active: state === "disabled" })}
            >
              {state === "disabled" ? t.accounts.enable : t.accounts.disable}
            </Button>
            {totp && (
              <Button variant="default" onClick={() => changing.mutate({ totp: false })}>
                {t.accounts.takeFactor}
              </Button>
            )}
            <Button variant="default" onClick={() => setIsDeleting(true)}>
              {t.common.remove}
            </Button>
          </Group>
        </>
      )}
    </FormDialog>
  );
}

function useChanges({ id }: Account, onClose: () => void) {
  const { t } = useText();
  const change = (body: object, match: Match = {}) =>
    call("patch", "/panel/api/accounts/:id", { params: { id }, body, match });
  const reread = () => queries.invalidateQueries({ queryKey: ["accounts"] });
  async function onDone() {
    tell(t.common.saved);
    onClose();
    await reread();
    await queries.invalidateQueries({ queryKey: ["audit"] });
  }
  const changing = useAction({
    mutationFn: (body: object) => change(body),
    onError: tellProblem,
    onSuccess: onDone,
  });
  const deleting = useAction({
    mutationFn: () => call("delete", "/panel/api/accounts/:id", { params: { id } }),
    onError: tellProblem,
    onSuccess: onDone,
  });
  return { change, changing, deleting, reread, onDone };
}
