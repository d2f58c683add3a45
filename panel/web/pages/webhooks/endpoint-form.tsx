/** Making an endpoint and changing one: the same fields. */
import {
  Button,
  Checkbox,
  Group,
  Modal,
  MultiSelect,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import {
  DEFAULT_MAX_CONCURRENCY,
  MAX_CONCURRENCY_LIMIT,
  MAX_PER_SECOND_LIMIT,
} from "#core/webhooks/rules/concurrency.ts";
import { ApiProblem, call } from "#panel/web/api/call.ts";
import type { Endpoint } from "#panel/web/api/routes.ts";
import { en } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { SecretOnce } from "#panel/web/parts/secret-once.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";

const TRIGGERS = Object.keys(en.webhooks.triggers) as (keyof typeof en.webhooks.triggers)[];

interface Fields {
  readonly url: string;
  readonly alertEmail: string;
  readonly trigger: string;
  readonly statuses: string[];
  readonly withConsignee: boolean;
  readonly standardWebhooks: boolean;
  readonly maxConcurrency: number | "";
  /** Empty = no such limit. */
  readonly maxPerSecond: number | "";
}

const EMPTY: Fields = {
  url: "",
  alertEmail: "",
  trigger: "status_change",
  statuses: [],
  withConsignee: false,
  standardWebhooks: false,
  maxConcurrency: DEFAULT_MAX_CONCURRENCY,
  maxPerSecond: "",
};

/** What is shown once. */
interface NewlyMade {
  readonly endpointId: string;
  readonly secret: string;
}

interface NewEndpointProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly channels: readonly string[];
}

export function NewEndpoint({ opened, onClose, channels }: NewEndpointProps) {
  const { t } = useText();
  const [channelCode, setChannelCode] = useState(channels[0] ?? "");
  const navigate = useNavigate();
  const [made, setMade] = useState<NewlyMade | null>(null);
  const making = useAction({
    mutationFn: (fields: Fields) =>
      call("post", "/panel/api/channels/:channelCode/webhooks", {
        params: { channelCode },
        body: bodyOf(fields),
      }),
    async onSuccess(answer) {
      setMade(answer);
      onClose();
      await queries.invalidateQueries({ queryKey: ["channels"] });
    },
  });
  return (
    <>
      <Modal
        opened={opened}
        onClose={onClose}
        title={t.webhooks.create}
        size="lg"
        closeButtonProps={{ "aria-label": t.common.close }}
      >
        <Stack>
          <Select
            label={t.webhooks.channel}
            data={[...channels]}
            value={channelCode}
            onChange={(value) => setChannelCode(value ?? "")}
            allowDeselect={false}
          />
          <EndpointFields
            initial={EMPTY}
            action={t.common.create}
            error={making.error}
            isPending={making.isPending}
            onCancel={onClose}
            onSubmit={(fields) => making.mutate(fields)}
          />
        </Stack>
      </Modal>
      <SecretOnce
        title={t.webhooks.secret}
        secret={made?.secret ?? null}
        onClose={() => {
          setMade(null);
          if (made) void navigate({ to: "/webhooks/$id", params: { id: made.endpointId } });
        }}
      />
    </>
  );
}

interface EditEndpointProps {
  readonly endpoint: Endpoint;
  readonly opened: boolean;
  readonly onClose: () => void;
}

export function EditEndpoint({ endpoint, opened, onClose }: EditEndpointProps) {
  const { t } = useText();
  const { endpointId, url, alertEmail, trigger, statuses, include, standardWebhooks } = endpoint;
  const changing = useAction({
    mutationFn: (fields: Fields) =>
      call("patch", "/panel/api/webhooks/:endpointId", {
        params: { endpointId },
        body: bodyOf(fields),
      }),
    async onSuccess() {
      onClose();
      tell(t.common.saved);
      await queries.invalidateQueries({ queryKey: ["webhooks", endpointId] });
    },
  });
  const initial: Fields = {
    url,
    alertEmail,
    trigger,
    statuses: [...statuses],
    standardWebhooks,
    maxConcurrency: endpoint.maxConcurrency,
    maxPerSecond: endpoint.maxPerSecond ?? "",
    withConsignee: include.includes("consignee"),
  };
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t.webhooks.change}
      size="lg"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <EndpointFields
        initial={initial}
        action={t.common.save}
        error={changing.error}
        isPending={changing.isPending}
        onCancel={onClose}
        onSubmit={(fields) => changing.mutate(fields)}
      />
    </Modal>
  );
}

interface EndpointFieldsProps {
  readonly initial: Fields;
  readonly action: string;
  readonly error: Error | null;
  readonly isPending: boolean;
  readonly onCancel: () => void;
  readonly onSubmit: (fields: Fields) => void;
}

function EndpointFields({
  initial,
  action,
  error,
  isPending,
  onCancel,
  onSubmit,
}: EndpointFieldsProps) {
  const { t } = useText();
  const form = useForm<Fields>({ initialValues: initial });
  const faults = error instanceof ApiProblem ? error.violations : [];
  return (
    <form onSubmit={form.onSubmit(onSubmit)}>
      <Stack>
        {error && faults.length === 0 && <ProblemNote error={error} />}
        <TextInput
          label={t.webhooks.url}
          placeholder="https://"
          required
          {...form.getInputProps("url")}
          error={faultOf(error, "url")}
        />
        <TextInput
          label={t.webhooks.alertEmail}
          description={t.webhooks.alertEmailHint}
          type="email"
          required
          {...form.getInputProps("alertEmail")}
          error={faultOf(error, "alertEmail")}
        />
        <Select
          label={t.webhooks.trigger}
          data={TRIGGERS.map((value) => ({ value, label: t.webhooks.triggers[value] }))}
          allowDeselect={false}
          {...form.getInputProps("trigger")}
        />
        <MultiSelect
          label={t.webhooks.statuses}
          placeholder={t.webhooks.statusesAll}
          data={Object.keys(en.statuses).map((value) => ({
            value,
            label: t.statuses[value as keyof typeof en.statuses],
          }))}
          searchable
          {...form.getInputProps("statuses")}
        />
        <Checkbox
          label={t.webhooks.withConsignee}
          {...form.getInputProps("withConsignee", { type: "checkbox" })}
        />
        <Switch
          label={t.webhooks.standardWebhooks}
          {...form.getInputProps("standardWebhooks", { type: "checkbox" })}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberInput
            label={t.webhooks.maxConcurrency}
            description={t.webhooks.maxConcurrencyHint}
            min={1}
            max={MAX_CONCURRENCY_LIMIT}
            allowDecimal={false}
            required
            {...form.getInputProps("maxConcurrency")}
            error={faultOf(error, "maxConcurrency")}
          />
          <NumberInput
            label={t.webhooks.maxPerSecond}
            description={t.webhooks.maxPerSecondHint}
            placeholder={t.webhooks.noLimit}
            min={0}
            max={MAX_PER_SECOND_LIMIT}
            {...form.getInputProps("maxPerSecond")}
            error={faultOf(error, "maxPerSecond")}
          />
        </SimpleGrid>
        <Group justify="end">
          <Button variant="default" onClick={onCancel}>
            {t.common.cancel}
          </Button>
          <Button type="submit" loading={isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function bodyOf({ withConsignee, maxPerSecond, ...fields }: Fields) {
  return {
    ...fields,
    maxPerSecond: maxPerSecond === "" ? null : maxPerSecond,
    include: withConsignee ? ["consignee"] : [],
  };
}
