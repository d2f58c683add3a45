/** Asks for a link by mail. Whether there is such an account is not told. */
import { Alert, Anchor, Button, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { send } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";

/** In front of the log-in of a page whose session has ended. */
const Z_INDEX = 500;

export function ForgottenPassword() {
  const { t } = useText();
  const [opened, { open, close }] = useDisclosure(false);
  const [email, setEmail] = useState("");
  const asking = useAction({
    mutationFn: () => send("post", "/panel/api/password-reset", { body: { email } }),
  });
  return (
    <>
      <Anchor component="button" type="button" size="sm" ta="center" onClick={open}>
        {t.login.forgotten}
      </Anchor>
      <Modal
        opened={opened}
        onClose={close}
        zIndex={Z_INDEX}
        title={t.login.forgotten}
        closeButtonProps={{ "aria-label": t.common.close }}
      >
        <form
          onSubmit={(event) => {
            event.preventDefault();
            // A portal's events reach the form around it in the tree of components.
            event.stopPropagation();
            asking.mutate();
          }}
        >
          <Stack>
            <Text size="sm">{t.login.forgottenText}</Text>
            <ProblemNote error={asking.error} />
            {asking.isSuccess && (
              <Alert color="teal" role="status">
                {t.login.resetSent}
              </Alert>
            )}
            <TextInput
              label={t.login.email}
              type="email"
              autoComplete="username"
              required
              data-autofocus
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
            />
            <Button type="submit" loading={asking.isPending}>
              {t.login.sendLink}
            </Button>
          </Stack>
        </form>
      </Modal>
    </>
  );
}
