/** One test event, at once, in a chosen status, with what was sent and what came back. */
import { Alert, Button, Code, Group, Modal, Select, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Tested } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { statusChoices } from "#panel/web/parts/status-badge.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries, statusDetailsQuery } from "#panel/web/queries.ts";

interface TestEndpointProps {
  readonly endpointId: string;
  readonly opened: boolean;
  readonly onClose: () => void;
}

const NO_DETAIL = "0";

export function TestEndpoint({ endpointId, opened, onClose }: TestEndpointProps) {
  const { t } = useText();
  const [status, setStatus] = useState("IN_TRANSIT");
  const [detail, setDetail] = useState(NO_DETAIL);
  const testing = useAction({
    mutationFn: () =>
      call("post", "/panel/api/webhooks/:endpointId/test", {
        params: { endpointId },
        body: { status, statusDetail: Number(detail) },
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["webhooks", endpointId] }),
  });
  const close = () => {
    testing.reset();
    onClose();
  };
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={t.webhooks.test}
      size="lg"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <Text size="sm">{t.webhooks.testText}</Text>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Select
            label={t.webhooks.testStatus}
            data={statusChoices(t)}
            value={status}
            onChange={(value) => {
              setStatus(value ?? status);
              setDetail(NO_DETAIL);
            }}
            allowDeselect={false}
            searchable
          />
          <DetailSelect status={status} value={detail} onChange={setDetail} />
        </SimpleGrid>
        <ProblemNote error={testing.error} />
        {testing.data && <TestResult result={testing.data} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
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

interface DetailSelectProps {
  readonly status: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** The details that a status has, by name. */
function DetailSelect({ status, value, onChange }: DetailSelectProps) {
  const { t, language } = useText();
  const { data } = useQuery(statusDetailsQuery);
  const own = (data?.items ?? []).filter((one) => one.status === status || one.status === null);
  return (
    <Select
      label={t.webhooks.testDetail}
      data={[
        { value: NO_DETAIL, label: t.webhooks.testNoDetail },
        ...own.map(({ id, description }) => ({
          value: String(id),
          label: `${id} · ${description[language] ?? description["en"] ?? ""}`,
        })),
      ]}
      value={value}
      onChange={(next) => onChange(next ?? NO_DETAIL)}
      allowDeselect={false}
      disabled={own.length === 0}
    />
  );
}

/** As it came: header lines, and the body below. */
function answerText({ headers, body }: NonNullable<Tested["answer"]>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [...lines, ...(body ? ["", body] : [])].join("\n");
}

function TestResult({ result }: { readonly result: Tested }) {
  const { t } = useText();
  const f = useFormat();
  const { delivered, httpStatus, durationMs, error, payload, answer } = result;
  return (
    <>
      <Alert
        role="status"
        color={delivered ? "teal" : "red"}
        title={delivered ? t.webhooks.testDelivered : t.webhooks.testFailed}
      >
        {[httpStatus === null ? null : `HTTP ${httpStatus}`, f.duration(durationMs / 1_000), error]
          .filter((part) => part !== null)
          .join(" · ")}
      </Alert>
      {answer && (
        <Stack gap={4}>
          <Text size="sm" fw={600}>
            {t.webhooks.answer}
          </Text>
          <Code block mah={240} tabIndex={0} aria-label={t.webhooks.answer}>
            {answerText(answer)}
          </Code>
        </Stack>
      )}
      {payload && (
        <Stack gap={4}>
          <Text size="sm" fw={600}>
            {t.webhooks.testPayload}
          </Text>
          <Code block mah={320} tabIndex={0} aria-label={t.webhooks.testPayload}>
            {JSON.stringify(payload, null, 2)}
          </Code>
        </Stack>
      )}
    </>
  );
}
