import { TextInput } from "@mantine/core";

interface DayInputProps {
  readonly label: string;
  /** ISO 8601; empty = none. */
  readonly value: string;
  readonly onChange: (day: string) => void;
}

export function DayInput({ label, value, onChange }: DayInputProps) {
  return (
    <TextInput
      type="date"
      label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
