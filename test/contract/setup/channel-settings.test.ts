/** A setting of a channel is defined once (`core/configuration/rules/settings.ts`), and stays readable beside other versions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CHANNEL_SETTINGS } from "#core/configuration/rules/settings.ts";
import { entityKey } from "#core/configuration/store/entities.ts";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { PAGE, withSettings } from "#tools/settings-table/settings-table.ts";

/** What CONTRIBUTING.md says to change for a new setting, the code that uses its value apart. */
const RECIPE: readonly (readonly [file: string, before: string, added: string])[] = [
  [
    "core/configuration/rules/settings.ts",
    "  addressCheck: Type.Boolean({",
    '  giftNotes: Type.Boolean({ default: false, description: "notes to gifts are printed" }),\n',
  ],
  ["panel/web/i18n/en.ts", "      addressCheck: {", '      giftNotes: { label: "Gift notes" },\n'],
  [
    "panel/web/i18n/it.ts",
    "      addressCheck: {",
    '      giftNotes: { label: "Note per regali" },\n',
  ],
];
/** With the page that `npm run tool -- settings-table` writes, and one that uses the value. */
const MOST_FILES = 5;
const COPIED = ["core", "panel", "analytics", "client", "docs", "test/support", "package.json"];

describe("a setting that the recipe of CONTRIBUTING.md adds", () => {
  let copy: string;
  let report: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    copy = await mkdtemp(join(tmpdir(), "waybill-setting-"));
    for (const part of COPIED) await cp(part, join(copy, part), { recursive: true });
    await symlink(join(process.cwd(), "node_modules"), join(copy, "node_modules"));
    for (const [file, before, added] of RECIPE) {
      const text = await Bun.file(file).text();
      expect(text.split(before)).toHaveLength(2);
      await Bun.write(join(copy, file), text.replace(before, `${added}${before}`));
    }
    const program = Bun.spawn([process.execPath, "test/support/product/one-more-setting.ts"], {
      cwd: copy,
      stderr: "inherit",
    });
    const output = await new Response(program.stdout).text();
    report = JSON.parse(output.split("REPORT\n")[1] ?? "null");
  }, 120_000);
  afterAll(() => rm(copy, { recursive: true, force: true }));

  test("is read from the setup file, whose schema names it, stored and in force", () => {
    expect(report).toMatchObject({
      file: { type: "boolean", default: false, description: "notes to gifts are printed" },
      afterFile: { stored: "1", inForce: true },
    });
  });

  test("is shown by the panel, changed by its PATCH, which checks it, and written to the audit log", () => {
    expect(report).toMatchObject({
      shown: true,
      patched: false,
      afterPatch: { stored: "0", inForce: false },
      violations: [{ path: "giftNotes", code: "WRONG_TYPE" }],
      audit: [true, false],
    });
  });

  test("is in the panel's OpenAPI document, and in its form with words in both languages", () => {
    // Of a new channel and its change, and of both answers about it.
    expect(report).toMatchObject({
      document: 4,
      form: "switch",
      words: ["Gift notes", "Note per regali"],
    });
  });

  test(`touches ${MOST_FILES} files at most`, () => {
    expect(RECIPE.length + 2).toBeLessThanOrEqual(MOST_FILES);
  });
});

test(`a setting is named by ${MOST_FILES} files at most, those that use its value apart`, async () => {
  const folders = ["core/configuration", "core/setup", "panel/server/companies", "panel/web"];
  const files = folders.flatMap((folder) => [
    ...new Bun.Glob(`${folder}/**/*.{ts,tsx,lua}`).scanSync("."),
  ]);
  const texts = await Promise.all(files.map((file) => Bun.file(file).text()));
  const naming = (name: string) =>
    files.filter((_, at) => new RegExp(`\\b${name}\\b`).test(texts[at] ?? ""));
  for (const name of ["trackingPage", "addressCheck"] satisfies (keyof typeof CHANNEL_SETTINGS)[]) {
    expect(naming(name)).toContain("core/configuration/rules/settings.ts");
    expect(naming(name).length).toBeLessThanOrEqual(MOST_FILES);
  }
});

test("the page of the operators has every setting as it is defined", async () => {
  const page = await Bun.file(PAGE).text();
  expect(page).toBe(withSettings(page));
});

describe("beside another version", () => {
  const key = () =>
    entityKey("channel", String(runtime.live.configuration().channelByCode.get("acme-it")?.id));

  const runtime = forAll(() => openTestRuntime(testSetup()));
  const panel = forAll(() => openTestPanel(runtime));

  test("a setting that an earlier version has not stored has its default", async () => {
    const { redis, live } = runtime;
    await redis.hDel(key(), ["language", "addressCheck", "webhookV1", "emails"]);
    // Every process reads all channels again.
    await panel.call("PATCH", "/panel/api/channels/acme-outlet", { trackingPage: true });
    const channel = (await panel.call("GET", "/panel/api/channels/acme-it")).body;
    expect(channel).toMatchObject({ language: "it", addressCheck: false, webhookV1: null });
    expect(live.configuration().channelByCode.get("acme-it")?.emails).toEqual({
      managed: false,
      from: null,
      statusNotifications: [],
    });
  });

  test("a change in the panel and a new setup file keep what a later version has stored", async () => {
    const { redis } = runtime;
    await redis.hSet(key(), { ofALaterVersion: "kept" });
    await panel.call("PATCH", "/panel/api/channels/acme-it", { language: "en" });
    expect(await redis.hmGet(key(), ["language", "ofALaterVersion"])).toEqual(["en", "kept"]);
    const setup = testSetup();
    Object.assign(setup.companies?.[0]?.channels?.[0] ?? {}, { name: "Another" });
    await applySetupFile(runtime, setup);
    expect(await redis.hmGet(key(), ["name", "ofALaterVersion"])).toEqual(["Another", "kept"]);
  });

  test("lists and records are stored in the form that the version before reads", async () => {
    const fields = await runtime.redis.hGetAll(key());
    expect(JSON.parse(fields["couriers"] ?? "")).toMatchObject([{ code: "GLS_ITA" }, {}]);
    expect(fields["webhookV1"]).toBeUndefined();
    expect(fields["sender"]).toBeUndefined();
    expect(Object.keys(JSON.parse(fields["setupSaid"] ?? ""))).toContain("own");
  });
});
