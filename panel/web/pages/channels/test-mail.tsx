import { Alert, Button, Group, TextInput } from "@mantine/core";
import { IconSend } from "@tabler/icons-react";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Template } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery } from "#panel/web/queries.ts";

interface TestMailProps {
  readonly channelCode: string;
  readonly draft: Omit<Template, "version">;
}

/** Sends the draft, as it stands in the form, to an address: the visitor's own at first. */
export function TestMail({ channelCode, draft }: TestMailProps) {
  const { t } = useText();
  const { email } = useSuspenseQuery(meQuery).data;
  const [to, setTo] = useState(email ?? "");
  const sending = useAction({
    mutationFn: () =>
      call("post", "/panel/api/channels/:channelCode/templates/test", {
        params: { channelCode },
        body: { ...draft, event: draft.event || "default", to },
      }),
  });
  const fault = faultOf(sending.error, "to");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        sending.mutate();
      }}
    >
      <Group align="end" gap="xs">
        <TextInput
          label={t.merchants.testTo}
          type="email"
          required
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
          error={fault}
          flex="1 1 200px"
        />
        <Button
          type="submit"
          variant="default"
          loading={sending.isPending}
          leftSection={<IconSend size={16} aria-hidden />}
        >
          {t.merchants.sendTest}
        </Button>
      </Group>
      {fault === undefined && <ProblemNote error={sending.error} />}
      {sending.data && (
        <Alert color="teal" role="status" mt="xs">
          {t.merchants.testSent(sending.data.to)}
        </Alert>
      )}
    </form>
  );
}
