/** What a newcomer reads first: where everything is, and three lines to paste, the same as in README.md. */
import { DEMO_CHANNELS } from "./demo-setup.ts";
import { COURIER, DEMO_PASSWORD, MERCHANT } from "./people.ts";
import { BENCHMARK_PLACES } from "./places.ts";

export interface Urls {
  readonly api: string;
  readonly ingest: string;
  readonly panel: string;
}

/** A sign-in that keeps the token, a search with it, and the ranking of the couriers to Rome. Node.js is there by then. */
export function linesToTry(
  apiUrl: string,
  apiKey: string = DEMO_CHANNELS[0].apiKey,
): readonly [signIn: string, shipment: string, ranking: string] {
  const json = "-H 'content-type: application/json'";
  const call = 'curl -s -H "Authorization: Bearer $TOKEN"';
  return [
    `TOKEN=$(curl -s ${apiUrl}/v2/auth/token ${json} -d '{"apiKey":"${apiKey}"}' ` +
      "| node -p 'JSON.parse(fs.readFileSync(0)).token')",
    `${call} '${apiUrl}/v2/shipments?status=DELIVERED&limit=1'`,
    `${call} ${apiUrl}/v2/couriers/delivery-times ${json} -d '{"destCap":"${BENCHMARK_PLACES[0].cap}"}'`,
  ];
}

/** @param tokenPlace where the operator's token is */
export function welcome(urls: Urls, tokenPlace: string): string {
  const [signIn, shipment, ranking] = linesToTry(urls.api);
  return `
Waybill is ready: simulated couriers are sending, a demo merchant is receiving. Ctrl-C stops everything.

  merchant API    ${urls.api}   API key ${DEMO_CHANNELS[0].apiKey}
  courier events  ${urls.ingest}
  control panel   ${urls.panel}   with the operator's token, ${tokenPlace},
                  as a merchant ${MERCHANT.email}, as a courier ${COURIER.email}, password ${DEMO_PASSWORD}

Paste these into another terminal for a token, the newest delivered shipment, and the fastest couriers to Rome:

${signIn}
${shipment}
${ranking}

`;
}
