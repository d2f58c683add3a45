/** Every member of `/v1` and `/v2` is described in their documents, and every description stands somewhere. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { MEMBER_WORDS as MERCHANT_WORDS } from "#api/reference/member-words.ts";
import { openApiDocument } from "#core/platform/openapi/document.ts";
import type { Json } from "#core/platform/schema/published-schema.ts";
import { createIngestApp } from "#ingest/app.ts";
import { COURIER_API } from "#ingest/openapi.ts";
import { MEMBER_WORDS as COURIER_WORDS } from "#ingest/reference/member-words.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi(testSetup());
});
afterAll(() => api.end());

interface Member {
  readonly path: string;
  readonly description: unknown;
}

function membersOf(schema: Json, path: string): Member[] {
  const inner = ["anyOf", "allOf", "oneOf", "items"].flatMap(
    (name) => schema[name] ?? [],
  ) as Json[];
  const own = Object.entries((schema["properties"] ?? {}) as Record<string, Json>);
  return [
    ...inner.flatMap((one) => membersOf(one, path)),
    ...own.flatMap(([name, member]) => [
      { path: `${path}.${name}`, description: member["description"] },
      ...membersOf(member, `${path}.${name}`),
    ]),
  ];
}

const documents = [
  ["/v2", () => api.document, MERCHANT_WORDS],
  ["/v1", () => openApiDocument(createIngestApp(api.runtime).routes, COURIER_API), COURIER_WORDS],
] as const;

test.each(documents)("%s: every member has a description", (_, documentOf, words) => {
  const { schemas } = documentOf().components;
  const members = Object.entries(schemas).flatMap(([name, schema]) =>
    membersOf(schema as Json, name),
  );
  expect(members.length).toBeGreaterThan(50);
  const bare = members.filter(
    ({ description }) => typeof description !== "string" || description === "",
  );
  expect(bare.map(({ path }) => path)).toEqual([]);
  const used = new Set(members.map(({ description }) => description));
  expect(Object.entries(words).filter(([, text]) => !used.has(text))).toEqual([]);
});
