/** Another's account: its role, whether it works, a lost second factor, and its end. */
import { Button, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { rolesOf } from "#core/accounts/rules/roles.ts";
import { call } from "#panel/web/api/call.ts";
import type { Account } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";

interface ChangeAccountProps {
  readonly account: Account;
  readonly onClose: () => void;
}

export function ChangeAccount({ account, onClose }: ChangeAccountProps) {
  const { t } = useText();
  const { id, kind, state, totp } = account;
  const [role, setRole] = useState(account.role);
  const [isDeleting, setIsDeleting] = useState(false);
  const { changing, deleting } = useChanges(id, t.common.saved, onClose);
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
    <Modal
      opened
      onClose={onClose}
      title={account.name}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {account.email}
        </Text>
        <ProblemNote error={changing.error} />
        <Select
          label={t.accounts.role}
          data={rolesOf(kind).map((value) => ({ value, label: t.accounts.roles[value] }))}
          allowDeselect={false}
          value={role}
          onChange={(value) => setRole((value ?? account.role) as typeof role)}
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
        <Group justify="end">
          <Button variant="default" onClick={onClose}>
            {t.common.cancel}
          </Button>
          <Button
            disabled={role === account.role}
            loading={changing.isPending}
            onClick={() => changing.mutate({ role })}
          >
            {t.common.save}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function useChanges(id: string, saved: string, onDone: () => void) {
  async function onSuccess() {
    tell(saved);
    onDone();
    await queries.invalidateQueries({ queryKey: ["accounts"] });
    await queries.invalidateQueries({ queryKey: ["audit"] });
  }
  const changing = useAction({
    mutationFn: (body: object) =>
      call("patch", "/panel/api/accounts/:id", { params: { id }, body }),
    onSuccess,
  });
  const deleting = useAction({
    mutationFn: () => call("delete", "/panel/api/accounts/:id", { params: { id } }),
    onError: tellProblem,
    onSuccess,
  });
  return { changing, deleting };
}
