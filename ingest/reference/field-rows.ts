/** The fields of a schema as rows of a table: path, whether required, type and bound in words. */
import type { TSchema } from "@sinclair/typebox";
import { TEXT_FORMATS } from "#core/platform/schema/text-formats.ts";

export interface FieldRow {
  readonly path: string;
  readonly required: boolean;
  readonly rule: string;
}

export function fieldRows(schema: TSchema, path = ""): FieldRow[] {
  const properties: Record<string, TSchema> = schema["properties"] ?? {};
  const required: string[] = schema["required"] ?? [];
  return Object.entries(properties).flatMap(([name, inner]) => {
    const innerPath = path === "" ? name : `${path}.${name}`;
    const row = { path: innerPath, required: required.includes(name), rule: ruleOf(inner) };
    return [row, ...fieldRows(inner, innerPath)];
  });
}

function ruleOf(schema: TSchema): string {
  const { type, format, pattern, description, minLength, maxLength, minimum, maximum } = schema;
  if (schema["anyOf"]) return schema["anyOf"].map((one: TSchema) => one["const"]).join(", ");
  if (type === "integer") return `whole number, ${minimum} to ${maximum}`;
  if (type === "array") return `list of ${schema["minItems"]} to ${schema["maxItems"]}`;
  if (type === "object" && schema["patternProperties"]) return mapRule(schema);
  if (type !== "string") return type;
  if (format)
    return (
      (TEXT_FORMATS[format]?.words ?? format) +
      (maxLength ? ` At most ${maxLength} characters.` : "")
    );
  if (pattern) return description ?? "text of a fixed form";
  return `text of ${minLength ?? 0} to ${maxLength} characters`;
}

function mapRule(schema: TSchema): string {
  const [value = {} as TSchema] = Object.values<TSchema>(schema["patternProperties"]);
  return `flat map of at most ${schema["maxProperties"]} texts: keys of 1 to ${schema["keyLength"]}, values of at most ${value["maxLength"]} characters`;
}
