/** The rules of core exactly at their limits: what `npm run tool -- mutate` changed without a test noticing. */
import { describe, expect, test } from "bun:test";
import { accountMail } from "#core/accounts/rules/account-mail.ts";
import { masked } from "#core/accounts/rules/masked.ts";
import { capabilitiesOf } from "#core/accounts/rules/roles.ts";
import { base32, otpauthUrl, TOTP_LIFE_MS, totpStepOf } from "#core/accounts/rules/totp.ts";
import { CAP_PREFIXES, capPrefixOf } from "#core/benchmarks/rules/cap-prefix.ts";
import { weightBand } from "#core/benchmarks/rules/lane.ts";
import { bucketOf, quantileOf } from "#core/benchmarks/rules/latency-buckets.ts";
import {
  renderHtml,
  renderLine,
  unknownPlaceholders,
} from "#core/merchants/rules/render-template.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import { isItalianHoliday } from "#core/platform/time/italian-calendar.ts";
import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";
import {
  AWAY_MS,
  CONCURRENCY_LIFE_MS,
  concurrencyChange,
  DEFAULT_MAX_CONCURRENCY,
  MAX_CONCURRENCY_LIMIT,
  MAX_PER_SECOND_LIMIT,
  PAUSE_LIMIT_MS,
  pauseMs,
  rateBucket,
  readConcurrency,
  START_CONCURRENCY,
} from "#core/webhooks/rules/concurrency.ts";
import { errorOf, outcomeOf } from "#core/webhooks/rules/delivery-outcome.ts";
import { afterAnswer, newLatencyTrend } from "#core/webhooks/rules/latency-trend.ts";
import { faultWaitMs, parseRetryAfter, retryWaitMs } from "#core/webhooks/rules/retry-schedule.ts";
import { SIGNATURE_TOLERANCE_MS, sign, verifySignature } from "#core/webhooks/rules/signature.ts";
import { SAMPLE_FACT, SAMPLE_PAIR } from "#core/webhooks/rules/webhook-sample.ts";

const NOW = Date.UTC(2026, 10, 20, 10);

describe("the retry schedule", () => {
  test("an internal error waits as the attempt would, and as the seventh beyond it", () => {
    expect([1, 2, 7, 8, 50].map((attempt) => faultWaitMs(attempt, 0.5) / 60_000)).toEqual([
      1, 5, 720, 720, 720,
    ]);
  });

  test("Retry-After is none where it is now or past, and where it is neither seconds nor a date", () => {
    const at = (ms: number) => parseRetryAfter(new Date(ms).toUTCString(), NOW);
    expect([at(NOW - 1_000), at(NOW), at(NOW + 1_000)]).toEqual([null, null, 1_000]);
    expect(parseRetryAfter("2026-11-20T11:00:00Z", NOW)).toBeNull();
    expect(retryWaitMs(1, 0.5, null)).toBe(60_000);
  });
});

describe("what an attempt leads to", () => {
  const answered = (httpStatus: number) => ({ kind: "answered" as const, httpStatus });

  test("a delivered one is over, a refused one is failed with its reason, one without an answer waits", () => {
    expect(outcomeOf(answered(204), 1, 0.5, NOW)).toEqual({ state: "delivered" });
    const refused = { kind: "refused" as const, error: "not public" };
    expect(outcomeOf(refused, 1, 0.5, NOW)).toEqual({ state: "failed", reason: "not public" });
    const unreachable = { kind: "unreachable" as const, error: "timeout" };
    expect(outcomeOf(unreachable, 1, 0.5, NOW)).toEqual({ state: "waiting", dueMs: NOW + 60_000 });
  });

  test("a v1 receiver whose 200 does not acknowledge has refused", () => {
    const outcome = outcomeOf(answered(200), 1, 0.5, NOW, "failed");
    expect(outcome).toEqual({ state: "failed", reason: "refused" });
  });

  test("499 is the receiver's last word, 500 and 599 are tried again", () => {
    const states = [499, 500, 599].map((status) => outcomeOf(answered(status), 1, 0.5, NOW).state);
    expect(states).toEqual(["failed", "waiting", "waiting"]);
  });

  test("300 to 399 are called redirects, their neighbours are not", () => {
    const texts = [299, 300, 399, 400].map((status) => errorOf(answered(status)));
    expect(texts).toEqual([
      null,
      "status 300, redirects are not followed",
      "status 399, redirects are not followed",
      "status 400",
    ]);
  });
});

describe("signatures", () => {
  const body = Buffer.from("{}");

  test("the clocks may differ by five minutes, and not by a millisecond more", () => {
    const header = sign(["s"], body, NOW);
    expect(SIGNATURE_TOLERANCE_MS).toBe(300_000);
    expect(verifySignature(header, ["s"], body, NOW + 300_000)).toBe("valid");
    expect(verifySignature(header, ["s"], body, NOW + 300_001)).toBe("expired");
    expect(verifySignature(header, ["s"], body, NOW - 300_000)).toBe("valid");
    expect(verifySignature(header, ["s"], body, NOW - 300_001)).toBe("expired");
  });

  test("a moment within a second counts as its beginning", () => {
    expect(sign(["s"], body, NOW + 999)).toBe(sign(["s"], body, NOW));
  });

  test("the eighth v1 is read, the ninth is not, and what is no v1 does not count", () => {
    const [t = "", right = ""] = sign(["s"], body, NOW).split(",");
    const wrong = (count: number) => Array(count).fill(`v1=${"0".repeat(64)}`);
    const judge = (...parts: string[]) => verifySignature(parts.join(","), ["s"], body, NOW);
    expect(judge(t, ...wrong(7), right)).toBe("valid");
    expect(judge(t, ...wrong(8), right)).toBe("mismatch");
    expect(judge(t, right.replace("v1", "v2"))).toBe("malformed");
    expect(judge(t, "v1=short")).toBe("malformed");
    expect(judge(t, `${right}=x`)).toBe("valid");
  });
});

describe("the trend of a receiver's answer times", () => {
  /** 16 answers, the last one at an instant. */
  const window = (trend: ReturnType<typeof newLatencyTrend>, tookMs: number, atMs: number) => {
    let last = { trend, isSlower: false };
    for (let n = 0; n < 16; n += 1) last = afterAnswer(last.trend, tookMs, n < 15 ? 0 : atMs);
    return last;
  };

  test("a mean is made of 16 answers and a second, not of 15, nor of a millisecond less", () => {
    expect(window(newLatencyTrend(0), 10, 999).trend).toMatchObject({ count: 16, lowest: null });
    expect(window(newLatencyTrend(0), 10, 1_000).trend).toMatchObject({ count: 0, lowest: 10 });
    let trend = newLatencyTrend(0);
    for (let n = 0; n < 15; n += 1) trend = afterAnswer(trend, 10, 5_000).trend;
    expect(trend).toMatchObject({ count: 15, sumMs: 150, lowest: null });
    const later = { ...trend, windowFromMs: 4_500 };
    expect(afterAnswer(later, 10, 5_499).trend.count).toBe(16);
    expect(afterAnswer(later, 10, 5_500).trend).toMatchObject({ count: 0, lowest: 10 });
  });

  test("what is usual lasts one minute to the millisecond", () => {
    const { trend } = window(newLatencyTrend(0), 10, 1_000);
    expect(window(trend, 50, 59_999).trend).toMatchObject({ lowest: 10, minuteFromMs: 0 });
    const next = window(trend, 50, 60_000).trend;
    expect(next).toMatchObject({ lowest: 50, lowestBefore: 10, minuteFromMs: 60_000 });
  });
});

describe("second factors", () => {
  const SECRET = Buffer.from("12345678901234567890");

  test("a code counts for one and a half minutes in all", () => {
    expect(TOTP_LIFE_MS).toBe(90_000);
    expect(otpauthUrl(SECRET, "a")).toEndWith("&digits=6&period=30");
  });

  test("the present step is that which has begun", () => {
    // RFC 6238: the code of second 59 is that of the step from 30 s on.
    expect(totpStepOf(SECRET, "287082", 89_999)).toBe(1);
    expect(totpStepOf(SECRET, "287082", 90_000)).toBeNull();
    expect(totpStepOf(SECRET, "287082", 30_000)).toBe(1);
  });

  test("long secrets are base32 too", () => {
    const bytes = Buffer.from(Array.from({ length: 64 }, (_, at) => (at * 37 + 255) & 255));
    const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
    const padded = bits.padEnd(Math.ceil(bits.length / 5) * 5, "0");
    const letters = padded.match(/.{5}/g) ?? [];
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    expect(base32(bytes)).toBe(letters.map((five) => alphabet[Number.parseInt(five, 2)]).join(""));
  });
});

describe("the Italian calendar", () => {
  /** By Oudin's way of reckoning, which shares nothing with the product's. */
  function easter(year: number): number {
    const century = Math.floor(year / 100);
    const golden = year % 19;
    const corrected = century - Math.floor(century / 4) - Math.floor((8 * century + 13) / 25);
    const epact = (corrected + 19 * golden + 15) % 30;
    const isLate = Math.floor(29 / (epact + 1)) * Math.floor((21 - golden) / 11);
    const moon = epact - Math.floor(epact / 28) * (1 - isLate);
    const weekday =
      (year + Math.floor(year / 4) + moon + 2 - century + Math.floor(century / 4)) % 7;
    const from = moon - weekday;
    const month = 3 + Math.floor((from + 40) / 44);
    return Date.UTC(year, month - 1, from + 28 - 31 * Math.floor(month / 4));
  }

  test("Easter Sunday and Monday are holidays in each year of the calendar, the Tuesday is none", () => {
    const wrong: string[] = [];
    for (let year = 1_583; year < 10_000; year += 1) {
      for (const after of [0, 1, 2]) {
        const day = new Date(easter(year) + after * 86_400_000).toISOString().slice(0, 10);
        const isFixed = ["04-25", "05-01"].includes(day.slice(5));
        if (isItalianHoliday(day) !== (after < 2 || isFixed)) wrong.push(day);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("Saint Francis is a holiday in 2026 already", () => {
    expect([2025, 2026].map((year) => isItalianHoliday(`${year}-10-04`))).toEqual([false, true]);
  });
});

test("an operator may do all that an admin may, but for changing accounts", () => {
  const admin = capabilitiesOf("operator", "admin");
  const operator = capabilitiesOf("operator", "operator");
  expect(admin.filter((one) => !operator.includes(one))).toEqual(["accounts:write"]);
  expect(capabilitiesOf("operator", "owner")).toEqual([]);
});

describe("templates", () => {
  test("markup in a value is text, a value without a text is empty, an unknown name is told", () => {
    const values = { a: `<b>&"'`, none: null };
    expect(renderHtml("{{a}}|{{none}}|{{toString}}", values)).toBe("&lt;b&gt;&amp;&quot;&#x27;||");
    expect(renderLine("x{{a}}\r\nBcc: y", values)).toBe(`x<b>&"' Bcc: y`);
    expect(unknownPlaceholders(["{{a}} {{b}} {{b}} {{toString}}"], values)).toEqual([
      "b",
      "toString",
    ]);
  });
});

describe("the concurrency of an endpoint", () => {
  test("its limits are those of the documents", () => {
    expect([START_CONCURRENCY, DEFAULT_MAX_CONCURRENCY, MAX_CONCURRENCY_LIMIT]).toEqual([
      4, 256, 1_024,
    ]);
    expect([MAX_PER_SECOND_LIMIT, CONCURRENCY_LIFE_MS, AWAY_MS]).toEqual([10_000, 600_000, 60_000]);
    expect(PAUSE_LIMIT_MS).toBe(3_600_000);
  });

  test("an overload is the stronger sign, and good ones count only without another", () => {
    const [good, slower, overloaded] = (["good", "slower", "overloaded"] as const).map(
      (sign, at) => ({ sign, atMs: at * 10 }),
    );
    if (!good || !slower || !overloaded) throw new Error("three signs");
    expect(concurrencyChange([good, good])).toEqual({ good: 2, factor: null, fallAtMs: null });
    expect(concurrencyChange([good, slower])).toEqual({ good: 0, factor: 0.8, fallAtMs: 10 });
    expect(concurrencyChange([slower, overloaded, good])).toEqual({
      good: 0,
      factor: 0.5,
      fallAtMs: 20,
    });
    expect(concurrencyChange([])).toEqual({ good: 0, factor: null, fallAtMs: null });
  });

  test("a twentieth of the rate may begin together, one at least, and no second sees more than the rate", () => {
    expect(rateBucket(100)).toEqual({ burst: 5, perSecond: 96 });
    expect(rateBucket(39)).toEqual({ burst: 1, perSecond: 39 });
    expect(rateBucket(40)).toEqual({ burst: 2, perSecond: 39 });
    expect(rateBucket(1)).toEqual({ burst: 1, perSecond: 1 });
  });

  test("only a 429 pauses, for what it asks for and an hour at most", () => {
    expect([pauseMs(429, 5), pauseMs(429, null), pauseMs(503, 5)]).toEqual([5, 0, 0]);
    expect(pauseMs(429, 3_600_001)).toBe(3_600_000);
  });

  test("a concurrency is kept for ten minutes, whole requests only, and never above the endpoint's own", () => {
    const stored = `9.9 0 0 ${NOW}`;
    expect(readConcurrency(stored, 256, NOW + 600_000)).toBe(9);
    expect(readConcurrency(stored, 256, NOW + 600_001)).toBe(4);
    expect([readConcurrency(stored, 5, NOW), readConcurrency(null, 2, NOW)]).toEqual([5, 2]);
  });
});

test("a weight on a bound belongs to the lower band, the least above it to the next", () => {
  const bounds = [1, 3, 5, 10, 20, 30, 50];
  expect(bounds.map(weightBand)).toEqual(["0-1", "1-3", "3-5", "5-10", "10-20", "20-30", "30-50"]);
  expect(bounds.map((bound) => weightBand(bound + 0.001))).toEqual([
    "1-3",
    "3-5",
    "5-10",
    "10-20",
    "20-30",
    "30-50",
    "50+",
  ]);
});

test("an hour is counted from its first millisecond to its last", () => {
  const from = 495_000;
  const times = [from * 3_600_000 - 1, from * 3_600_000, (from + 1) * 3_600_000 - 1];
  expect(times.map(hourOf)).toEqual([from - 1, from, from]);
  expect(hourOf(from * 3_600_000 + 3_600_000)).toBe(from + 1);
});

describe("times counted by bucket", () => {
  test("the first bucket holds what took less than a millisecond, the last all that took longer than it begins with", () => {
    expect([0, 0.99, 1, 1.19, 1.21, 1.43, 1.45].map(bucketOf)).toEqual([
      ...["b0", "b0", "b1", "b1", "b2", "b2", "b3"],
    ]);
    expect([1.2 ** 50 - 1, 1.2 ** 50 + 1, 1.2 ** 52, 1e9].map(bucketOf)).toEqual([
      ...["b50", "b51", "b52", "b52"],
    ]);
  });

  test("a quantile is the middle of the bucket in which it lies, and none where nothing was counted", () => {
    expect(quantileOf({}, 0.5)).toBeNull();
    expect(quantileOf({ success: 9 }, 0.5)).toBeNull();
    expect(quantileOf({ b0: 1 }, 0.99)).toBe(0);
    const counts = { b0: 1, b1: 1, b10: 1, b52: 1, failure: 7 };
    expect(
      [0, 0.25, 0.26, 0.5, 0.51, 0.75, 0.76, 1].map((share) => quantileOf(counts, share)),
    ).toEqual([0, 0, 1.1, 1.1, 5.7, 5.7, 11_962.8, 11_962.8]);
  });
});

describe("the audit log", () => {
  test("keeps no secret, wherever it stands, and of an address not what it hides", () => {
    const value = {
      key: "k",
      link: "l",
      clientSecret: { a: 1 },
      apiToken: null,
      name: "n",
      url: "no url",
      list: [{ password: "p" }, "text", null, 1],
      of: { url: "https://user:pass@a.example/x" },
      monkey: "m",
    };
    const kept = masked(value);
    expect(kept).toMatchObject({
      key: "***",
      link: "***",
      clientSecret: "***",
      apiToken: null,
      name: "n",
      url: "no url",
      list: [{ password: "***" }, "text", null, 1],
      monkey: "m",
    });
    expect(JSON.stringify(kept)).not.toContain("pass@");
    expect(masked({ url: 1, address: "https://user:pass@a.example/x" })).toEqual({
      url: 1,
      address: "https://user:pass@a.example/x",
    });
    expect(masked({ url: { url: "x" } })).toEqual({ url: { url: "x" } });
  });
});

test("the mail of an account is in its reader's language", () => {
  const facts = { kind: "reset" as const, name: "Ann", link: "l", untilMs: NOW };
  expect(accountMail(facts, "it").text).toStartWith("Ciao Ann,");
  expect(accountMail(facts, "en").text).toStartWith("Hello Ann,");
});

test("prefixes of postal codes are told in their order, each once", () => {
  const prefixes = CAP_PREFIXES.map(({ prefix }) => prefix);
  expect(prefixes).toEqual([...new Set(prefixes)].toSorted());
  expect(["00118", "20121"].map((cap) => capPrefixOf(cap)?.prefix)).toEqual(["00", "20"]);
  for (const none of ["00000", "2012", "201210", "20 121", "2012A"]) {
    expect(capPrefixOf(none)).toBeNull();
  }
});

test("the sample of a test event is that of the documents, and its dates agree", () => {
  const { id, channelId, statusDetail, isReturn, monetary, statusDate } = SAMPLE_SHIPMENT;
  expect({ id, channelId, statusDetail, isReturn }).toEqual({
    id: 1,
    channelId: 1,
    statusDetail: 0,
    isReturn: false,
  });
  expect(monetary).toEqual({ totalValue: 49.9, codAmount: null, shippingCost: 5, currency: "EUR" });
  expect(
    new Date(SAMPLE_FACT.occurredAtMs + 3_600_000).toISOString().slice(0, 19).replace("T", " "),
  ).toBe(statusDate ?? "");
  expect([SAMPLE_FACT.detail, SAMPLE_PAIR]).toEqual([0, { status: "IN_TRANSIT", detail: 0 }]);
});
