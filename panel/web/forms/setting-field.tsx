/** A setting of an entity, from its definition: one field of a form, or its value where it may not be changed. */
import { MultiSelect, NumberInput, Select, Switch, TextInput } from "@mantine/core";
import type { FormField } from "#core/configuration/rules/entity.ts";
import type { FieldWords } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";

interface SettingFieldProps {
  readonly field: FormField;
  readonly words: FieldWords;
  /** Of the form, by `inputType` of the field. */
  readonly input: object;
  /** What the visitor reads for the values of a choice; default: the values. */
  readonly choices?: Readonly<Record<string, string>>;
}

export function SettingField({ field, words, input, choices }: SettingFieldProps) {
  const { language } = useText();
  const { control, isRequired: required, isWhole, maxLength, min, max, options } = field;
  const texts = { label: words.label, description: words.hint, placeholder: words.placeholder };
  const data = options.map((value) => ({
    value,
    label: choices?.[value] ?? labelOf(field, value, language),
  }));
  switch (control) {
    case "switch":
      return <Switch label={words.label} description={words.hint} {...input} />;
    case "choice":
      return <Select {...texts} data={data} searchable allowDeselect={false} {...input} />;
    case "choices":
      return <MultiSelect {...texts} data={data} searchable {...input} />;
    case "number":
      return (
        <NumberInput
          {...texts}
          min={min}
          max={max}
          allowDecimal={!isWhole}
          required={required}
          {...input}
        />
      );
    default:
      return <TextInput {...texts} maxLength={maxLength} required={required} {...input} />;
  }
}

export function inputType({ control }: Pick<FormField, "control">): "checkbox" | "input" {
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
