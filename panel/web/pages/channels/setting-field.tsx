/** A setting of an entity, from its definition: one field of a form, or its value where it may not be changed. */
import { NumberInput, Select, Switch, TextInput } from "@mantine/core";
import type { FormField } from "#core/configuration/rules/entity.ts";
import type { FieldWords } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";

interface SettingFieldProps {
  readonly field: FormField;
  readonly words: FieldWords;
  /** Of the form, by `inputType` of the field. */
  readonly input: object;
  readonly error: string | undefined;
}

export function SettingField({ field, words, input, error }: SettingFieldProps) {
  const { language } = useText();
  const { control, isRequired: required, maxLength, min, max, options } = field;
  const texts = { label: words.label, description: words.hint };
  switch (control) {
    case "switch":
      return <Switch {...texts} {...input} />;
    case "choice": {
      const data = options.map((value) => ({ value, label: labelOf(field, value, language) }));
      return <Select {...texts} data={data} searchable allowDeselect={false} {...input} />;
    }
    case "number":
      return (
        <NumberInput {...texts} min={min} max={max} required={required} {...input} error={error} />
      );
    default:
      return (
        <TextInput {...texts} maxLength={maxLength} required={required} {...input} error={error} />
      );
  }
}

export function inputType({ control }: FormField): "checkbox" | "input" {
  return control === "switch" ? "checkbox" : "input";
}

export function useSettingText() {
  const { t, language } = useText();
  return (field: FormField, value: unknown): string => {
    if (field.control === "switch") return value ? t.merchants.on : t.merchants.off;
    return labelOf(field, String(value), language);
  };
}

/** Languages have names in every language. */
function labelOf({ name }: FormField, value: string, language: string): string {
  if (name !== "language") return value;
  return new Intl.DisplayNames(language, { type: "language" }).of(value) ?? value;
}
