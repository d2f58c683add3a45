/** One test event, at once, with what came back. */
import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";

interface TestEndpointProps {
  readonly endpointId: string;
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function TestEndpoint({ endpointId, opened, onClose }: TestEndpointProps) {
  const { t } = useText();
  const f = useFormat();
  const testing = useMutation({
    mutationFn: () =>
      call("post", "/panel/api/webhooks/:endpointId/test", { params: { endpointId } }),
  });
  const result = testing.data;
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t.webhooks.test}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <Text size="sm">{t.webhooks.testText}</Text>
        <ProblemNote error={testing.error} />
        {result && (
          <Alert
            role="status"
            color={result.delivered ? "teal" : "red"}
            title={result.delivered ? t.webhooks.testDelivered : t.webhooks.testFailed}
          >
            {[
              result.httpStatus === null ? null : `HTTP ${result.httpStatus}`,
              f.duration(result.durationMs / 1_000),
              result.error,
            ]
              .filter((part) => part !== null)
              .join(" · ")}
          </Alert>
        )}
        <Group justify="end">
          <Button variant="default" onClick={onClose}>
            {t.common.close}
          </Button>
          <Button loading={testing.isPending} onClick={() => testing.mutate()}>
            {t.webhooks.testSend}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
