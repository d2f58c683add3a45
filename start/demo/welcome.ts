/** What a newcomer reads first: where everything is, and two lines to paste, the README's own. */
import { DEMO_CHANNELS } from "./demo-setup.ts";
import { BENCHMARK_PLACES } from "./places.ts";

export interface Urls {
  readonly api: string;
  readonly ingest: string;
  readonly panel: string;
}

/** One line returns a shipment with its history, one the ranking of the couriers to Rome. */
export function linesToTry(apiUrl: string): readonly [shipment: string, ranking: string] {
  const login =
    `TOKEN=$(curl -s ${apiUrl}/v2/auth/token -H 'content-type: application/json' ` +
    `-d '{"apiKey":"${DEMO_CHANNELS[0].apiKey}"}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`;
  const call = 'curl -s -H "Authorization: Bearer $TOKEN"';
  const search =
    `${call} '${apiUrl}/v2/shipments?status=DELIVERED&limit=1' ` +
    `| sed 's/.*"items":\\[{"id":\\([0-9]*\\).*/\\1/'`;
  return [
    `${login}; ${call} ${apiUrl}/v2/shipments/$(${search})`,
    `${login}; ${call} ${apiUrl}/v2/couriers/delivery-times -H 'content-type: application/json' ` +
      `-d '{"destCap":"${BENCHMARK_PLACES[0].cap}"}'`,
  ];
}

export function welcome(urls: Urls): string {
  const [shipment, ranking] = linesToTry(urls.api);
  return `
Waybill is ready: simulated couriers are sending, a demo merchant is receiving. Ctrl-C stops everything.

  merchant API    ${urls.api}   API key ${DEMO_CHANNELS[0].apiKey}
  courier events  ${urls.ingest}
  panel           ${urls.panel}

A shipment with its history:

${shipment}

The fastest couriers to Rome, ${BENCHMARK_PLACES[0].cap}:

${ranking}

`;
}
