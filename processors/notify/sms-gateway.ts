/** The gateway of text messages: `POST {SMS_GATEWAY_URL}` with `{id, to, text}`; 2xx has taken it, 4xx refuses it for good. */

export interface SmsGateway {
  /** @throws {SmsRefused} for good; anything else is worth another try */
  readonly send: (message: { id: string; to: string; text: string }) => Promise<void>;
}

export class SmsRefused extends Error {}

const REQUEST_LIMIT_MS = 10_000;

export function createSmsGateway(url: string): SmsGateway {
  return {
    async send(message) {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": message.id },
        body: JSON.stringify(message),
        redirect: "manual",
        signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
      });
      await response.body?.cancel();
      if (response.ok) return;
      const text = `the gateway answered ${response.status}`;
      const isFinal = response.status >= 400 && response.status < 500 && response.status !== 429;
      throw isFinal ? new SmsRefused(text) : new Error(text);
    },
  };
}
