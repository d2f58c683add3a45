/**
 * The national carrier's gateway as `api/labels/national-carrier.ts` describes it, for tests that look at what a
 * confirmation does there: it opens one transmission a key, and answers a key it knows as it did then.
 */
import { labelPdf } from "#api/labels/label-pdf.ts";
import { labelSheets } from "#api/labels/label-sheet.ts";
import type { GatewayOrder } from "#demo/national-carrier.ts";

type Behaviour = "answer" | "do it and hold the answer" | "do it and fail" | "refuse";

export interface LabelGateway {
  readonly url: string;
  readonly behave: (behaviour: Behaviour) => void;
  /** Lets the held answers go. */
  readonly release: () => void;
  /** Opened so far. */
  readonly transmissions: () => number;
  /** Keys of the confirmations that have arrived, repetitions included. */
  readonly keys: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export function startLabelGateway(): LabelGateway {
  let behaviour: Behaviour = "answer";
  let held = Promise.withResolvers<void>();
  let made = 0;
  const opened = new Set<string>();
  const keys: string[] = [];

  async function confirm(request: Request): Promise<Response> {
    const key = request.headers.get("idempotency-key") ?? crypto.randomUUID();
    keys.push(key);
    if (behaviour === "refuse") return Response.json({ message: "closed" }, { status: 422 });
    opened.add(key);
    if (behaviour === "do it and fail") return new Response("down", { status: 500 });
    if (behaviour === "do it and hold the answer") await held.promise;
    return Response.json({ refused: [] });
  }

  async function makeLabel(order: GatewayOrder): Promise<Response> {
    made += 1;
    const number = `NC${String(made).padStart(11, "0")}IT`;
    const sheets = labelSheets({
      request: order,
      sender: order.sender,
      language: "it",
      trackingNumbers: order.parcels.map(() => number),
    });
    const labels = await Promise.all(sheets.map((sheet) => labelPdf(sheet)));
    return Response.json({ trackingNumbers: [{ number, description: "" }], labels });
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const isConfirmation = new URL(request.url).pathname === "/confirmations";
      return isConfirmation ? confirm(request) : makeLabel((await request.json()) as GatewayOrder);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    behave(next) {
      behaviour = next;
    },
    release() {
      held.resolve();
      held = Promise.withResolvers();
    },
    transmissions: () => opened.size,
    keys: () => keys,
    stop: () => server.stop(true),
  };
}
