import { describe, expect, test } from "bun:test";
import { faultOfWebhookUrl, WEBHOOK_URL_LENGTH } from "#core/webhooks/rules/webhook-url.ts";

describe("endpoint url (document 3, Endpoint configuration)", () => {
  test("is https, without credentials, of at most 2048 characters", () => {
    expect(WEBHOOK_URL_LENGTH).toBe(2_048);
    const long = (length: number) => `https://a.example/${"x".repeat(length - 18)}`;
    expect(faultOfWebhookUrl("https://merchant.example/hook")).toBeNull();
    expect(faultOfWebhookUrl(long(WEBHOOK_URL_LENGTH))).toBeNull();
    for (const url of [
      "http://merchant.example/hook",
      "https://user:secret@merchant.example/",
      "https://user@merchant.example/",
      "merchant.example",
      "https://merchant.example/a b",
      "https://merchant.example/\u0000",
      "https:\\\\merchant.example/",
      "https:/merchant.example/",
      "https:///merchant.example/",
      long(WEBHOOK_URL_LENGTH + 1),
    ]) {
      expect(faultOfWebhookUrl(url)).toBeString();
    }
  });
});
