/**
 * A program for a copy of this tree in which the setting `giftNotes` was added to channels: prints what the product says of it, as JSON
 * after a line of `REPORT`.
 */
import { formOf } from "#core/configuration/rules/entity.ts";
import { CHANNEL_SETTINGS } from "#core/configuration/rules/settings.ts";
import { entityKey } from "#core/configuration/store/entities.ts";
import { publishedSchema } from "#core/platform/schema/published-schema.ts";
import { SetupChannel } from "#core/setup/rules/setup.ts";
import { en } from "#panel/web/i18n/en.ts";
import { it } from "#panel/web/i18n/it.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestPanel } from "./panel.ts";
import { openTestRuntime } from "./runtime.ts";

const PATH = "/panel/api/channels/acme-it";
const setup = testSetup();
Object.assign(setup.companies?.[0]?.channels?.[0] ?? {}, { giftNotes: true });
const runtime = await openTestRuntime(setup);
const panel = await openTestPanel(runtime);
const { live, redis } = runtime;
const inForce = async () =>
  Reflect.get((await live.refresh()).channelByCode.get("acme-it") ?? {}, "giftNotes");
const stored = async () => redis.hGet(entityKey("channel", "1"), "giftNotes");

const afterFile = { stored: await stored(), inForce: await inForce() };
const shown = (await panel.call("GET", PATH)).body.giftNotes;
const patched = (await panel.call("PATCH", PATH, { giftNotes: false })).body.giftNotes;
const afterPatch = { stored: await stored(), inForce: await inForce() };
const refused = await panel.call("PATCH", PATH, { giftNotes: "yes" });
const audit = await panel.call("GET", "/panel/api/audit?limit=1");
const document = await panel.handle(new Request("http://localhost/panel/api/openapi.json"));
const described = await document.text();
const report = {
  afterFile,
  shown,
  patched,
  afterPatch,
  violations: refused.body.violations,
  audit: [audit.body.items[0].before.giftNotes, audit.body.items[0].after.giftNotes],
  // Of the answers, which several routes share, and of the body.
  document: described.match(/"giftNotes":\s*\{[^}]*\}/g)?.length,
  file: Reflect.get(Object(publishedSchema(SetupChannel)["properties"]), "giftNotes"),
  form: formOf(CHANNEL_SETTINGS).find(({ name }) => (name as string) === "giftNotes")?.control,
  words: [en, it].map((words) => Reflect.get(words.merchants.channelSettings, "giftNotes").label),
};
process.stdout.write(`REPORT\n${JSON.stringify(report)}\n`);
await panel.end();
await runtime.end();
