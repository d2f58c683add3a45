/** What can be done with an endpoint. */
import { Button, Group, Menu } from "@mantine/core";
import {
  IconChevronDown,
  IconKey,
  IconPencil,
  IconPlayerPause,
  IconPlayerPlay,
  IconSend,
  IconTrash,
} from "@tabler/icons-react";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiProblem, call } from "#panel/web/api/call.ts";
import type { Endpoint } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { SecretOnce } from "#panel/web/parts/secret-once.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { EditEndpoint } from "./endpoint-form.tsx";
import { TestEndpoint } from "./test-endpoint.tsx";

type Asked = "test" | "change" | "rotate" | "disable" | "delete" | null;

export function EndpointActions({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const [asked, setAsked] = useState<Asked>(null);
  const { endpointId, status } = endpoint;
  const close = () => setAsked(null);
  const switching = useSwitch(endpointId);
  const isActive = status === "active";
  if (!capabilities.includes("webhooks:write")) return null;
  return (
    <Group gap="xs">
      <Button leftSection={<IconSend size={16} aria-hidden />} onClick={() => setAsked("test")}>
        {t.webhooks.test}
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" rightSection={<IconChevronDown size={16} aria-hidden />}>
            {t.webhooks.more}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconPencil size={16} aria-hidden />}
            onClick={() => setAsked("change")}
          >
            {t.webhooks.change}
          </Menu.Item>
          <Menu.Item
            leftSection={<IconKey size={16} aria-hidden />}
            onClick={() => setAsked("rotate")}
          >
            {t.webhooks.rotate}
          </Menu.Item>
          <Menu.Item
            leftSection={
              isActive ? (
                <IconPlayerPause size={16} aria-hidden />
              ) : (
                <IconPlayerPlay size={16} aria-hidden />
              )
            }
            onClick={() => (isActive ? setAsked("disable") : switching.mutate("enable"))}
          >
            {isActive ? t.webhooks.disable : t.webhooks.enable}
          </Menu.Item>
          <Menu.Item
            leftSection={<IconTrash size={16} aria-hidden />}
            onClick={() => setAsked("delete")}
          >
            {t.common.remove}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <TestEndpoint endpointId={endpointId} opened={asked === "test"} onClose={close} />
      {asked === "change" && <EditEndpoint endpoint={endpoint} onClose={close} />}
      <RotateSecret endpoint={endpoint} opened={asked === "rotate"} onClose={close} />
      <DeleteEndpoint endpoint={endpoint} opened={asked === "delete"} onClose={close} />
      <Confirm
        opened={asked === "disable"}
        onClose={close}
        title={t.webhooks.disable}
        text={t.webhooks.disableText}
        action={t.webhooks.disable}
        isPending={switching.isPending}
        onConfirm={() => switching.mutate("disable", { onSuccess: close })}
      />
    </Group>
  );
}

function useSwitch(endpointId: string) {
  return useAction({
    mutationFn: (to: "enable" | "disable") =>
      call("post", `/panel/api/webhooks/:endpointId/${to}`, { params: { endpointId } }),
    onError: tellProblem,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["webhooks", endpointId] }),
  });
}

interface AskedProps {
  readonly endpoint: Endpoint;
  readonly opened: boolean;
  readonly onClose: () => void;
}

/** While the secret of an earlier rotation signs, it has to be revoked first, which the question names. */
function RotateSecret({ endpoint, opened, onClose }: AskedProps) {
  const { t } = useText();
  const f = useFormat();
  const { endpointId, previousSecretUntil } = endpoint;
  const [secret, setSecret] = useState<string | null>(null);
  const rereadEndpoint = () =>
    queries.invalidateQueries({ queryKey: ["webhooks", endpointId], exact: true });
  const rotating = useAction({
    mutationFn: () =>
      call("post", "/panel/api/webhooks/:endpointId/rotate-secret", {
        params: { endpointId },
        body: { revokePrevious: previousSecretUntil !== null },
      }),
    async onError(error) {
      // Somebody else has rotated since the page was read: the dialogue asks again, about revoking.
      if (error instanceof ApiProblem && error.code === "ROTATION_RUNNING") await rereadEndpoint();
      else tellProblem(error);
    },
    async onSuccess(answer) {
      setSecret(answer.secret);
      onClose();
      await rereadEndpoint();
    },
  });
  const question =
    previousSecretUntil === null
      ? { text: t.webhooks.rotateText, action: t.webhooks.rotate, color: "indigo" }
      : {
          text: t.webhooks.revokeOldText(f.minute(previousSecretUntil)),
          action: t.webhooks.revokeOld,
        };
  return (
    <>
      <Confirm
        opened={opened}
        onClose={onClose}
        title={t.webhooks.rotate}
        {...question}
        isPending={rotating.isPending}
        onConfirm={() => rotating.mutate()}
      />
      <SecretOnce title={t.webhooks.secret} secret={secret} onClose={() => setSecret(null)} />
    </>
  );
}

function DeleteEndpoint({ endpoint: { endpointId, code }, opened, onClose }: AskedProps) {
  const { t } = useText();
  const navigate = useNavigate();
  const deleting = useAction({
    mutationFn: () => call("delete", "/panel/api/webhooks/:endpointId", { params: { endpointId } }),
    onError: tellProblem,
    async onSuccess() {
      await navigate({ to: "/webhooks" });
      await queries.invalidateQueries({ queryKey: ["channels"] });
    },
  });
  return (
    <Confirm
      opened={opened}
      onClose={onClose}
      title={`${t.common.remove} ${code}`}
      text={t.webhooks.deleteText}
      action={t.common.remove}
      isPending={deleting.isPending}
      onConfirm={() => deleting.mutate()}
    />
  );
}
