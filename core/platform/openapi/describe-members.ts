/** Sentences about members that the published schemas of a document get, where a schema does not describe them itself. */
import type { Json } from "#core/platform/schema/published-schema.ts";

/**
 * By a member's name, or by its path from its component on: `Order.status`. The path counts before what a schema says of the form
 * of its texts.
 */
export type MemberWords = Readonly<Record<string, string>>;

export function describeMembers(schema: Json, path: string, words: MemberWords): Json {
  const within = (one: unknown) => describeMembers(one as Json, path, words);
  const lists = ["anyOf", "allOf", "oneOf"].filter((name) => Array.isArray(schema[name]));
  const { properties, items } = schema;
  return {
    ...schema,
    ...Object.fromEntries(lists.map((name) => [name, (schema[name] as unknown[]).map(within)])),
    ...(isJson(items) && { items: within(items) }),
    ...(isJson(properties) && { properties: membersOf(properties, path, words) }),
  };
}

function membersOf(properties: Json, path: string, words: MemberWords): Json {
  const members = Object.entries(properties).map(([name, member]) => {
    const own = `${path}.${name}`;
    const described = describeMembers(member as Json, own, words);
    const description = words[own] ?? described["description"] ?? words[name];
    return [name, { ...described, ...(description !== undefined && { description }) }];
  });
  return Object.fromEntries(members);
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
