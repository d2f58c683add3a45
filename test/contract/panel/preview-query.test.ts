/** `preview=true` of calls that change something. */
import { expect, test } from "bun:test";
import { webhookSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const runtime = forAll(() =>
  openTestRuntime(webhookSetup({ url: "https://m.example/hook", trigger: "every_event" })),
);
const panel = forAll(() => openTestPanel(runtime));

const WINDOW = {
  from: "2026-11-20T00:00:00+01:00",
  to: "2026-11-21T00:00:00+01:00",
  mode: "each",
};

test("another value than true is 422, and never taken for the change itself", async () => {
  const [endpoint] = [...runtime.live.configuration().endpoints.keys()];
  const calls = ["/panel/api/remaps/rmp_46/revert", `/panel/api/webhooks/${endpoint}/replay`];
  for (const path of calls) {
    for (const query of ["preview=null", "preview=", "preview=true&preview=1", "preview=1"]) {
      const answer = await panel.call("POST", `${path}?${query}`, WINDOW);
      expect([path, query, answer.status, answer.body.code]).toEqual([
        ...[path, query, 422, "INVALID_QUERY"],
      ]);
    }
  }
  const counted = await panel.call("POST", `${calls[1]}?preview=true`, WINDOW);
  expect(counted.body).toHaveProperty("preview");
});
