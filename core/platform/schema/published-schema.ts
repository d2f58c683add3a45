/** A schema as JSON Schema 2020-12 that says what our validators do: for OpenAPI documents and the setup file's readers. */
import type { TSchema } from "@sinclair/typebox";
import { TEXT_FORMATS } from "./text-formats.ts";

export type Json = { readonly [name: string]: unknown };

export interface PublishOptions {
  /** Whether a null member counts as absent: what is optional may then be null. A schema may say so of itself. */
  readonly nullIsAbsent?: boolean;
  /** Schemas that have a name; the places that use them become references. */
  readonly components?: Components;
}

export interface Components {
  /** By the text of the schema. */
  readonly names: ReadonlyMap<string, string>;
  /** Those that were used, by name. */
  readonly published: Map<string, Json>;
}

/** @throws if two names have the same schema */
export function namedComponents(schemas: Readonly<Record<string, TSchema>>): Components {
  const names = new Map<string, string>();
  for (const [name, schema] of Object.entries(schemas)) {
    const text = schemaText(schema);
    const other = names.get(text);
    if (other !== undefined) throw new Error(`${name} and ${other} are the same schema.`);
    names.set(text, name);
  }
  return { names, published: new Map() };
}

/** Equal of equal schemas, however they are described. */
export function schemaText(schema: TSchema): string {
  return textOf(jsonOf(schema));
}

export function publishedSchema(schema: TSchema, options: PublishOptions = {}): Json {
  return publish(jsonOf(schema), options);
}

function jsonOf(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema));
}

/** A place that uses a schema may describe it differently. */
function textOf({ description: _, ...schema }: Json): string {
  return JSON.stringify(schema);
}

/** @throws if a schema is published in two ways: as part of a request, whose members may be null, and of an answer */
function publish(schema: Json, options: PublishOptions): Json {
  // Checked one by one by other means, and published as what it must be.
  const { publishedAs } = schema;
  if (publishedAs !== undefined) return publish(publishedAs as Json, options);
  const { components } = options;
  const name = components?.names.get(textOf(schema));
  if (!components || name === undefined) return publishPlain(schema, options);
  const { description, ...published } = publishPlain(schema, options);
  const known = components.published.get(name);
  if (known && JSON.stringify(known) !== JSON.stringify(published)) {
    throw new Error(`${name} is part of a request and of an answer.`);
  }
  components.published.set(name, published);
  const $ref = `#/components/schemas/${name}`;
  return { $ref, ...(description !== undefined && { description }) };
}

function publishPlain(schema: Json, outer: PublishOptions): Json {
  const { patternProperties, keyLength, nullIsAbsent, ...plain } = withFormat(schema);
  const options = nullIsAbsent === true ? { ...outer, nullIsAbsent } : outer;
  const maps = Object.entries((patternProperties ?? {}) as Record<string, Json>);
  const inner = (one: unknown) => publish(one as Json, options);
  const lists = ["anyOf", "allOf", "oneOf"].filter((name) => plain[name] !== undefined);
  return shortened({
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
  });
}

/** Texts to choose from as `enum`, and a type that may be null as two types: the same, in the form that tools read best. */
function shortened({ anyOf, ...schema }: Json): Json {
  if (!Array.isArray(anyOf) || schema["properties"] !== undefined) {
    return { ...schema, ...(anyOf !== undefined && { anyOf }) };
  }
  const isNull = ({ type }: Json) => type === "null";
  const forms: Json[] = anyOf.filter((form) => !isNull(form));
  const hasNull = forms.length < anyOf.length;
  const [only, ...others] = forms;
  if (forms.every(isText)) {
    const values = forms.map((form) => form["const"]);
    const type = hasNull ? ["string", "null"] : "string";
    return { ...schema, type, enum: hasNull ? [...values, null] : values };
  }
  if (only && others.length === 0 && hasNull && typeof only["type"] === "string") {
    return { ...only, ...schema, type: [only["type"], "null"], ...orNullValue(only) };
  }
  return { ...schema, anyOf };
}

const isText = ({ const: value, ...others }: Json) =>
  typeof value === "string" && Object.keys(others).every((name) => name === "type");

function orNullValue({ enum: values }: Json): Json {
  return Array.isArray(values) ? { enum: [...values, null] } : {};
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
  const { type, anyOf } = schema;
  if (Object.keys(schema).length === 0 || [type].flat().includes("null")) return schema;
  const isNull = { type: "null" };
  if (!Array.isArray(anyOf) || type !== undefined) return shortened({ anyOf: [schema, isNull] });
  const takesNull = anyOf.some((form) => form.type === isNull.type);
  return takesNull ? schema : { ...schema, anyOf: [...anyOf, isNull] };
}
