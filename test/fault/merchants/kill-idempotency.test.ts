/** `Idempotency-Key` under kill -9: a merchant that repeats until it is answered creates everything once. */
import { expect, test } from "bun:test";
import { request, shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { listAll } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startProduct } from "#test/support/product/product.ts";

const REQUESTS = 60;
const KILLS = 3;

const product = forAll(() => startProduct(testSetup()));

test("repeated until it is answered, every request creates once and keeps its answer", async () => {
  const { body: granted } = await request("POST", `${product.api}/v2/auth/token`, {
    apiKey: "key_acme_main",
  });
  const post = (n: number) => {
    const headers = { authorization: `Bearer ${granted.token}`, "idempotency-key": `kill-${n}` };
    const body = { shipments: [shipmentItem(`KILL-IDEM-${n}`)] };
    return request("POST", `${product.api}/v2/shipments`, body, headers).catch(() => null);
  };
  const answers = new Map<number, string>();
  const open = () => Array.from({ length: REQUESTS }, (_, n) => n).filter((n) => !answers.has(n));
  for (let kill = 0; kill < KILLS; kill += 1) {
    const some = open().slice(0, REQUESTS / (KILLS + 1));
    let came = 0;
    const sent = Promise.all(
      some.map(async (n) => {
        const answer = await post(n);
        if (answer) came += 1;
        if (answer?.status === 201) answers.set(n, JSON.stringify(answer.body));
      }),
    );
    await eventually(() => came > 0, "an answer came");
    await product.kill(false);
    await sent;
    await product.start();
  }
  for (const n of Array.from({ length: REQUESTS }, (_, at) => at)) {
    const answer = await eventually(
      async () => {
        const one = await post(n);
        return one !== null && one.status < 300 && one;
      },
      "the request is answered",
      90_000,
      250,
    );
    const known = answers.get(n);
    if (known !== undefined) expect(JSON.stringify(answer.body)).toBe(known);
    const [item] = answer.body.items;
    expect(item.id ?? item.errors[0].existingId).toBeNumber();
  }
  const merchant = await signIn(product.api, "key_acme_main");
  const found = await listAll(merchant, "status=PENDING,WAITING_TO_COMPUTE");
  const numbers = found.map(({ trackingNumber }) => trackingNumber);
  expect(numbers.toSorted()).toEqual(
    Array.from({ length: REQUESTS }, (_, n) => `KILL-IDEM-${n}`).toSorted(),
  );
}, 300_000);
