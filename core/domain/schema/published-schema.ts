/** A schema as JSON Schema 2020-12 that says what our validators do: for OpenAPI documents and the setup file's readers. */
import type { TSchema } from "@sinclair/typebox";
import { TEXT_FORMATS } from "./text-formats.ts";

export type Json = { readonly [name: string]: unknown };

export interface PublishOptions {
  /** Whether a null member counts as absent: what is optional may then be null. A schema may say so of itself. */
  readonly nullIsAbsent?: boolean;
}

export function publishedSchema(schema: TSchema, options: PublishOptions = {}): Json {
  return publish(JSON.parse(JSON.stringify(schema)), options);
}

function publish(schema: Json, outer: PublishOptions): Json {
  const { patternProperties, keyLength, nullIsAbsent, ...plain } = withFormat(schema);
  const options = nullIsAbsent === true ? { nullIsAbsent } : outer;
  const maps = Object.entries((patternProperties ?? {}) as Record<string, Json>);
  const inner = (one: unknown) => publish(one as Json, options);
  const lists = ["anyOf", "allOf", "oneOf"].filter((name) => plain[name] !== undefined);
  return {
    ...plain,
    ...Object.fromEntries(lists.map((name) => [name, (plain[name] as unknown[]).map(inner)])),
    ...(plain["items"] !== undefined && { items: inner(plain["items"]) }),
    ...(plain["properties"] !== undefined && { properties: publishMembers(plain, options) }),
    ...(keyLength !== undefined && {
      propertyNames: { minLength: 1, maxLength: keyLength },
      additionalProperties: inner(maps[0]?.[1]),
    }),
    ...(keyLength === undefined &&
      maps.length > 0 && {
        patternProperties: Object.fromEntries(maps.map(([keys, value]) => [keys, inner(value)])),
      }),
  };
}

/** A format of ours has no name elsewhere: its pattern defines it. */
function withFormat({ format, ...schema }: Json): Json {
  const known = typeof format === "string" ? TEXT_FORMATS[format] : undefined;
  if (!known) return { ...schema, ...(format !== undefined && { format }) };
  const { pattern, standard, words } = known;
  return {
    description: words,
    ...schema,
    ...(standard && { format: standard }),
    pattern: `^${pattern}$`,
  };
}

function publishMembers({ properties, required = [] }: Json, options: PublishOptions): Json {
  const members = Object.entries(properties as Record<string, Json>).map(([name, member]) => {
    const published = publish(member, options);
    const mayBeNull = options.nullIsAbsent && !(required as readonly string[]).includes(name);
    return [name, mayBeNull ? orNull(published) : published];
  });
  return Object.fromEntries(members);
}

function orNull(schema: Json): Json {
  if (Object.keys(schema).length === 0) return schema;
  const isNull = { type: "null" };
  const forms = schema["anyOf"] as readonly Json[] | undefined;
  if (forms === undefined || schema["type"] !== undefined) return { anyOf: [schema, isNull] };
  const takesNull = forms.some(({ type }) => type === isNull.type);
  return takesNull ? schema : { ...schema, anyOf: [...forms, isNull] };
}
