/** Our schemas as JSON Schema, which has other names for our formats and must say what our readers do before they check. */
import type { TSchema } from "@sinclair/typebox";

/** Years that an instant may have. */
const INSTANT = { format: "date-time", pattern: "^20" } as const;
const FORMATS: Readonly<Record<string, object>> = {
  "calendar-date": { format: "date" },
  "offset-date-time": INSTANT,
  "date-or-date-time": { anyOf: [{ format: "date" }, INSTANT] },
  "http-uri": { format: "uri" },
};

export function jsonSchema(schema: TSchema): object {
  return JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
    const format = (value as { readonly format?: unknown } | null)?.format;
    if (typeof format !== "string") return value;
    const { format: _format, ...others } = value as object & { format: string };
    return { ...others, ...FORMATS[format] };
  });
}

/** Of a body in which a null member counts as absent: an optional member may be null. */
export function requestSchema(schema: TSchema): object {
  return JSON.parse(JSON.stringify(jsonSchema(schema)), (_, value: unknown) => {
    const { type, properties, required = [] } = (value ?? {}) as Partial<ObjectSchema>;
    if (type !== "object" || properties === undefined) return value;
    const members = Object.entries(properties).map(([name, member]) => [
      name,
      required.includes(name) ? member : nullable(member),
    ]);
    return { ...(value as object), properties: Object.fromEntries(members) };
  });
}

interface ObjectSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, Member>>;
  readonly required: readonly string[];
}

interface Member {
  readonly type?: unknown;
  readonly anyOf?: readonly Member[];
}

const NULL: Member = { type: "null" };

function nullable(member: Member): Member {
  if (Object.keys(member).length === 0) return member;
  const { anyOf: forms = [] } = member;
  const isUnion = forms.length > 0 && member.type === undefined;
  if (!isUnion) return { anyOf: [member, NULL] };
  return forms.some(({ type }) => type === NULL.type)
    ? member
    : { ...member, anyOf: [...forms, NULL] };
}
