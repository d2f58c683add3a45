/** The largest bodies that a route may be sent: made from the schema that its OpenAPI document publishes. */

export interface Schema {
  readonly [name: string]: unknown;
}

/** Of lists and texts that have no limit of their own. */
const UNLIMITED = 100_000;

/** @returns the schema of a JSON body, null = none; `isForeign` where the body is something else */
export function schemaOfBody(
  document: Schema,
  method: string,
  pattern: string,
): { readonly schema: Schema | null; readonly isForeign: boolean } {
  const path = pattern.replaceAll(/:(\w+)/g, "{$1}");
  const content = within(document, ["paths", path, method.toLowerCase(), "requestBody", "content"]);
  const schema = within(content, ["application/json", "schema"]);
  return { schema, isForeign: content !== null && schema === null };
}

/** One that is as the schema wants it and as large as may be, and others that are anything but. */
export function jsonBodies(schema: Schema | null, document: Schema, bytes: number): string[] {
  const most = Math.floor(bytes) - 64;
  const largest = schema && JSON.stringify(largestOf(schema, document, { left: most / 2 }));
  return [
    ...(largest && largest.length <= bytes ? [largest] : []),
    `{"a":"${"\\u00e9".repeat(most / 6)}"}`,
    `{"a":[${"{},".repeat(most / 3 - 2)}0]}`,
    `{${Array.from({ length: most / 16 }, (_, at) => `"k${at}":0`).join(",")}}`,
    `{"a":${"[".repeat(most / 2)}${"]".repeat(most / 2)}}`,
    `{}${" ".repeat(most)}`,
  ];
}

function within(of: unknown, path: readonly string[]): Schema | null {
  const found = path.reduce<unknown>((at, name) => (at as Schema | null | undefined)?.[name], of);
  return (found as Schema | undefined) ?? null;
}

/** @param budget characters that are left */
function largestOf(schema: Schema, document: Schema, budget: { left: number }): unknown {
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    const target = within(document, reference.replace("#/", "").split("/"));
    return target && largestOf(target, document, budget);
  }
  if (schema["const"] !== undefined) return schema["const"];
  const choices = (schema["enum"] ?? schema["anyOf"] ?? schema["oneOf"]) as readonly unknown[];
  if (schema["enum"]) return choices[0];
  if (choices) return largestOf(choices[0] as Schema, document, budget);
  const parts = schema["allOf"] as readonly Schema[] | undefined;
  if (parts) return Object.assign({}, ...parts.map((part) => largestOf(part, document, budget)));
  switch ([schema["type"]].flat()[0]) {
    case "object":
      return Object.fromEntries(
        Object.entries((schema["properties"] ?? {}) as Record<string, Schema>).map(
          ([name, member]) => [name, largestOf(member, document, spent(budget, name.length + 4))],
        ),
      );
    case "array": {
      const most = Number(schema["maxItems"] ?? UNLIMITED);
      const items: unknown[] = [];
      while (items.length < most && budget.left > 0)
        items.push(largestOf((schema["items"] ?? {}) as Schema, document, spent(budget, 1)));
      return items;
    }
    case "integer":
    case "number":
      return schema["maximum"] ?? schema["minimum"] ?? 1;
    case "boolean":
      return true;
    case "string":
      return largestText(schema, budget);
    default:
      return null;
  }
}

function largestText(schema: Schema, budget: { left: number }): string {
  const [example] = (schema["examples"] ?? []) as readonly unknown[];
  if (typeof example === "string" && (schema["format"] || schema["pattern"])) return example;
  const length = Math.min(Number(schema["maxLength"] ?? UNLIMITED), Math.max(budget.left, 1));
  spent(budget, length);
  return "x".repeat(length);
}

function spent(budget: { left: number }, characters: number): { left: number } {
  budget.left -= characters;
  return budget;
}
