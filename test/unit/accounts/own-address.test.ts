/** Where the panel leads after a log-in. */
import { describe, expect, test } from "bun:test";
import { ownAddress } from "#panel/web/pages/login/own-address.ts";

const PANEL = "https://panel.example";

describe("the page after a log-in", () => {
  test.each([
    ["/webhooks/we_1?tab=log#x", `${PANEL}/webhooks/we_1?tab=log#x`],
    ["overview", `${PANEL}/overview`],
    [`${PANEL}/sql`, `${PANEL}/sql`],
    ["/.//evil.host", `${PANEL}//evil.host`],
    [null, `${PANEL}/`],
    ["", `${PANEL}/`],
  ])("is the one that was asked for: %j", (asked, reached) => {
    expect(ownAddress(asked, PANEL)).toBe(reached);
  });

  test.each([
    "/\t/evil.host",
    "\t//evil.host",
    "/\n/evil.host",
    "/\r\\evil.host",
    "//evil.host/x",
    "/\\evil.host",
    "\\\\evil.host",
    " //evil.host",
    "https://evil.host",
    "https:\t//evil.host",
    "http://panel.example/",
    "https://panel.example:8443/",
    "https://panel.example@evil.host/",
    "javascript:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,x",
    "https://[",
  ])("is the panel's first page where another site is asked for: %j", (asked) => {
    expect(ownAddress(asked, PANEL)).toBe(`${PANEL}/`);
  });
});
