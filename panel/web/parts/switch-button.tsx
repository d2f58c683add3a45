import { Button } from "@mantine/core";
import { useState } from "react";
import { Confirm } from "./confirm.tsx";
import { tellProblem } from "./tell.ts";
import { useAction } from "./use-action.ts";

interface SwitchButtonProps {
  readonly isOn: boolean;
  readonly turnOn: string;
  readonly turnOff: string;
  /** What follows when it is switched off. */
  readonly turnOffText: string;
  readonly onSwitch: () => Promise<unknown>;
  readonly onDone: () => Promise<unknown>;
}

/** Switches something on at once, and asks before it switches it off. */
export function SwitchButton(props: SwitchButtonProps) {
  const { isOn, turnOn, turnOff, turnOffText, onSwitch, onDone } = props;
  const [isAsking, setIsAsking] = useState(false);
  const switching = useAction({
    mutationFn: onSwitch,
    onError: tellProblem,
    onSuccess: onDone,
    onSettled: () => setIsAsking(false),
  });
  return (
    <>
      <Button
        variant="default"
        loading={switching.isPending}
        onClick={() => (isOn ? setIsAsking(true) : switching.mutate())}
      >
        {isOn ? turnOff : turnOn}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setIsAsking(false)}
        title={turnOff}
        text={turnOffText}
        action={turnOff}
        isPending={switching.isPending}
        onConfirm={() => switching.mutate()}
      />
    </>
  );
}
