/** Deliveries chosen in the log, sent again one after the other: how many first, then how far, with a stop. */
import { Button, Checkbox, Group, Progress, Text } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useMemo, useRef, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Delivery } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { queries } from "#panel/web/queries.ts";

export interface Selection {
  readonly ids: ReadonlySet<string>;
  /** Of those that are listed. */
  readonly failed: readonly string[];
  readonly change: (ids: ReadonlySet<string>) => void;
}

export function useSelection(rows: readonly Delivery[]): Selection {
  const [ids, change] = useState<ReadonlySet<string>>(new Set());
  return useMemo(() => {
    const failed = rows.filter(({ state }) => state === "failed");
    return { ids, failed: failed.map(({ deliveryId }) => deliveryId), change };
  }, [rows, ids]);
}

export function SelectAll({ selection }: { readonly selection: Selection }) {
  const { t } = useText();
  const { ids, failed, change } = selection;
  return (
    <Checkbox
      size="xs"
      aria-label={t.webhooks.selectAll}
      disabled={failed.length === 0}
      checked={failed.length > 0 && failed.every((id) => ids.has(id))}
      onChange={(event) => change(new Set(event.currentTarget.checked ? failed : []))}
    />
  );
}

interface SelectOneProps {
  readonly delivery: Delivery;
  readonly selection: Selection;
}

export function SelectOne({ delivery, selection }: SelectOneProps) {
  const { t } = useText();
  const { deliveryId, state, eventId } = delivery;
  const { ids, change } = selection;
  return (
    <Checkbox
      size="xs"
      aria-label={t.webhooks.select(eventId)}
      disabled={state !== "failed" && state !== "delivered"}
      checked={ids.has(deliveryId)}
      onChange={(event) => {
        const others = [...ids].filter((id) => id !== deliveryId);
        change(new Set(event.currentTarget.checked ? [...others, deliveryId] : others));
      }}
    />
  );
}

interface Progressing {
  readonly of: number;
  readonly done: number;
  readonly refused: number;
  readonly isRunning: boolean;
}

interface ResendBarProps {
  readonly endpointId: string;
  readonly selection: Selection;
}

export function ResendBar({ endpointId, selection }: ResendBarProps) {
  const { t } = useText();
  const f = useFormat();
  const { ids, change } = selection;
  const [isAsked, setIsAsked] = useState(false);
  const [progress, setProgress] = useState<Progressing | null>(null);
  const isStopped = useRef(false);
  const send = async () => {
    setIsAsked(false);
    isStopped.current = false;
    const all = [...ids];
    let [done, refused] = [0, 0];
    for (const deliveryId of all) {
      if (isStopped.current) break;
      setProgress({ of: all.length, done, refused, isRunning: true });
      const answer = call("post", "/panel/api/deliveries/:deliveryId/replay", {
        params: { deliveryId },
      });
      const isQueued = await answer.then(
        () => true,
        () => false,
      );
      if (isQueued) done += 1;
      else refused += 1;
    }
    setProgress({ of: all.length, done, refused, isRunning: false });
    change(new Set());
    await queries.invalidateQueries({ queryKey: ["webhooks", endpointId] });
  };
  const title = t.webhooks.resend(f.whole(ids.size));
  return (
    <>
      {(ids.size > 0 || progress !== null) && (
        <Group px="sm" pb="sm" gap="sm" role="status">
          {ids.size > 0 && !progress?.isRunning && (
            <Button
              size="xs"
              leftSection={<IconRefresh size={14} aria-hidden />}
              onClick={() => setIsAsked(true)}
            >
              {title}
            </Button>
          )}
          {progress && <HowFar progress={progress} />}
          {progress?.isRunning && (
            <Button size="xs" variant="default" onClick={() => (isStopped.current = true)}>
              {t.webhooks.stop}
            </Button>
          )}
        </Group>
      )}
      <Confirm
        opened={isAsked}
        title={title}
        text={t.webhooks.resendQuestion}
        action={title}
        onConfirm={send}
        onClose={() => setIsAsked(false)}
      />
    </>
  );
}

function HowFar({ progress }: { readonly progress: Progressing }) {
  const { t } = useText();
  const f = useFormat();
  const { of, done, refused } = progress;
  return (
    <>
      <Progress
        w={160}
        value={(100 * (done + refused)) / of}
        aria-label={t.webhooks.resent(f.whole(done), f.whole(of))}
      />
      <Text size="sm">
        {t.webhooks.resent(f.whole(done), f.whole(of))}
        {refused > 0 && `; ${t.webhooks.notResent(f.whole(refused))}`}
      </Text>
    </>
  );
}
