/** Delivery times (document 1, "Couriers" and "Limits") on the real engine, against a recomputation from the raw rows. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type Benchmarks, type CourierTimes, openBenchmarks } from "#analytics/benchmarks.ts";
import { benchmarkHandler } from "#analytics/write/write-batches.ts";
import { areaOfCap, GRAINS, type Grain, weightBand } from "#core/benchmarks/rules/lane.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Handler, LogItem } from "#core/platform/log/consumer.ts";
import {
  type DeliveredShipment,
  deliveredShipment,
  deliveredShipments,
  laneEntry,
  seededRandom,
} from "#test/support/data/lanes.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { CLICKHOUSES } from "#test/support/servers/servers.ts";

/** Agreement with a value shown with one decimal. */
const SHOWN_DIGITS = 0.9;
const NOW_MS = Date.parse("2026-11-20T12:00:00+01:00");

describe.each(CLICKHOUSES)("ClickHouse: %s", (kind) => {
  let store: TestClickhouse;
  let benchmarks: Benchmarks;
  let handle: Handler;

  beforeAll(async () => {
    store = await openTestClickhouse(kind);
    benchmarks = await openBenchmarks(store.config);
    handle = benchmarkHandler({
      clickhouse: async () => store.writer,
      forget: async () => {},
      mac: (text) => text.padEnd(16, ".").slice(0, 16),
    });
  });

  afterAll(async () => {
    await benchmarks.close();
    await store.end();
  });

  async function write(rows: readonly DeliveredShipment[]): Promise<readonly LogItem[]> {
    const entries = rows.map(laneEntry);
    expect(await handle(entries)).toEqual([]);
    return entries;
  }

  interface Asked {
    readonly destCap: string;
    readonly originCap?: string | null;
    readonly weightKg?: number | null;
    readonly couriers?: readonly string[];
    readonly nowMs?: number;
  }

  function ask({ destCap, originCap, weightKg, couriers, nowMs }: Asked): Promise<CourierTimes[]> {
    return benchmarks.deliveryTimes({
      destCap,
      originCap: originCap ?? null,
      weightKg: weightKg ?? null,
      couriers: couriers ?? ["GLS_ITA"],
      nowMs: nowMs ?? NOW_MS,
    });
  }

  /** The rules once more, the slow way, over sorted lists of every single delivery. */
  function recompute(rows: readonly DeliveredShipment[], asked: Required<Asked>): CourierTimes[] {
    const counted = countedRows(rows, asked);
    const answers = asked.couriers.map((code): CourierTimes => {
      const own = counted.filter(({ courier }) => courier === code);
      for (const grain of GRAINS) {
        const sample = own.filter((row) => inGrain(row, grain, asked));
        if (sample.length >= 20) return answerOf(code, grain, sample, asked);
      }
      return empty(code);
    });
    return answers.sort(compareAnswers);
  }

  /** The last version of every delivery that the window and the rules let count. */
  function countedRows(
    rows: readonly DeliveredShipment[],
    asked: Required<Asked>,
  ): DeliveredShipment[] {
    const latest = new Map<number, DeliveredShipment>();
    for (const row of rows) {
      const known = latest.get(row.shipmentId);
      if (!known || known.version < row.version) latest.set(row.shipmentId, row);
    }
    return [...latest.values()].filter(
      (row) =>
        row.destCap === asked.destCap &&
        row.deliveredOn >= "2025-11-20" &&
        !row.isReturn &&
        !row.removed,
    );
  }

  function inGrain(
    row: DeliveredShipment,
    grain: Grain,
    { originCap, weightKg }: Required<Asked>,
  ): boolean {
    const sameOrigin = originCap !== null && row.originCap === originCap;
    const area = originCap === null ? null : areaOfCap(originCap);
    const sameArea = area !== null && row.originCap !== null && areaOfCap(row.originCap) === area;
    const sameBand =
      weightKg !== null &&
      row.weightKg !== null &&
      weightBand(row.weightKg) === weightBand(weightKg);
    switch (grain) {
      case "origin_cap_dest_weight":
        return sameOrigin && sameBand;
      case "origin_cap_dest":
        return sameOrigin;
      case "area_cap_weight":
        return sameArea && sameBand;
      case "cap_weight":
        return sameBand;
      case "area_cap":
        return sameArea;
      case "cap":
        return true;
    }
  }

  function answerOf(
    code: string,
    grain: Grain,
    sample: readonly DeliveredShipment[],
    { weightKg }: Required<Asked>,
  ): CourierTimes {
    const leads = sample.map(({ leadDays }) => leadDays);
    const departed = sample.flatMap(({ transitDays }) =>
      transitDays === null ? [] : [transitDays],
    );
    const transits = departed.length >= 20 ? departed : [];
    return {
      courierCode: code,
      status: "ok",
      level: grain,
      weightBand: grain.endsWith("_weight") && weightKg !== null ? weightBand(weightKg) : null,
      sampleSize: sample.length,
      transitSampleSize: transits.length || null,
      leadMedian: nearestRank(leads, 0.5),
      leadMean: mean(leads),
      leadP90: nearestRank(leads, 0.9),
      transitMedian: nearestRank(transits, 0.5),
      transitMean: mean(transits),
      transitP90: nearestRank(transits, 0.9),
      leadMedianInterval: interval(leads),
      transitMedianInterval: interval(transits),
    };
  }

  function nearestRank(values: readonly number[], share: number): number | null {
    const sorted = values.toSorted((one, other) => one - other);
    return sorted[Math.ceil(share * values.length) - 1] ?? null;
  }

  /** Order statistics by the binomial table in exact integers. */
  function interval(values: readonly number[]): { low: number; high: number } | null {
    const rank = intervalRank(values.length);
    const sorted = values.toSorted((one, other) => one - other);
    const [low, high] = [sorted[rank - 1], sorted[values.length - rank]];
    return low === undefined || high === undefined ? null : { low, high };
  }

  function intervalRank(size: number): number {
    let ways = 1n;
    let below = 1n;
    let rank = 0;
    while (below * 40n <= 1n << BigInt(size)) {
      rank += 1;
      ways = (ways * BigInt(size - rank + 1)) / BigInt(rank);
      below += ways;
    }
    return rank;
  }

  function mean(values: readonly number[]): number | null {
    if (values.length === 0) return null;
    const total = values.reduce((sum, value) => sum + value, 0);
    return Math.round((total / values.length) * 10) / 10;
  }

  function empty(courierCode: string): CourierTimes {
    return {
      courierCode,
      status: "insufficient_data",
      level: null,
      weightBand: null,
      sampleSize: null,
      transitSampleSize: null,
      leadMedian: null,
      leadMean: null,
      leadP90: null,
      transitMedian: null,
      transitMean: null,
      transitP90: null,
      leadMedianInterval: null,
      transitMedianInterval: null,
    };
  }

  function compareAnswers(one: CourierTimes, other: CourierTimes): number {
    const key = ({ status, leadMedian, leadMean, leadP90 }: CourierTimes) => [
      status === "ok" ? 0 : 1,
      leadMedian ?? 0,
      leadMean ?? 0,
      leadP90 ?? 0,
    ];
    const [left, right] = [key(one), key(other)];
    const at = left.findIndex((value, index) => value !== right[index]);
    if (at !== -1) return (left[at] ?? 0) - (right[at] ?? 0);
    return one.courierCode.localeCompare(other.courierCode);
  }

  const COURIERS = ["BRT_ITA", "GLS_ITA", "POSTE_ITA", "SDA_ITA", "TNT_ITA"];
  const ORIGINS = ["20121", "20122", "00184", "80121", null];

  /** Sparse enough that questions fall back to every grain. */
  function randomDeliveries(seed: number, destCap: string, count: number): DeliveredShipment[] {
    const random = seededRandom(seed);
    const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
    return deliveredShipments(count, (at) => {
      const leadDays = Math.floor(random() ** 2 * 9);
      const day = new Date(NOW_MS - Math.floor(random() * 400) * 86_400_000);
      return {
        shipmentId: seed * 1_000_000 + Math.floor(random() * count),
        courier: COURIERS[Math.floor(random() ** 2 * COURIERS.length)] ?? "GLS_ITA",
        destCap,
        originCap: pick(ORIGINS),
        weightKg: random() < 0.1 ? null : random() ** 3 * 60,
        deliveredOn: day.toISOString().slice(0, 10),
        leadDays,
        transitDays: random() < 0.2 ? null : Math.max(0, leadDays - 1),
        isReturn: random() < 0.05,
        version: at + 1,
        removed: random() < 0.05,
      };
    }).map((row, _, all) => {
      // A shipment keeps its courier and its ship date: key and partition of its row never change.
      const { courier, shipDate } =
        all.find(({ shipmentId }) => shipmentId === row.shipmentId) ?? row;
      const deliveredMs = Date.parse(shipDate) + row.leadDays * 86_400_000;
      const deliveredOn = new Date(deliveredMs).toISOString().slice(0, 10);
      return { ...row, courier, shipDate, deliveredOn };
    });
  }

  describe("delivery times agree with a recomputation from the raw rows", () => {
    const seen = new Set<Grain | null>();

    for (const seed of [1, 2, 3, 4]) {
      test(`on random data, seed ${seed}`, async () => {
        const destCap = `4012${seed}`;
        const rows = randomDeliveries(seed, destCap, 300 * seed ** 2);
        await write(rows);
        for (const originCap of [null, "20121", "00184", "20900", "99999"]) {
          for (const weightKg of [null, 0.5, 1, 4, 25, 55]) {
            const asked = { destCap, originCap, weightKg, couriers: COURIERS, nowMs: NOW_MS };
            const answer = await ask(asked);
            expect(answer).toEqual(recompute(rows, asked));
            for (const { level } of answer) seen.add(level);
          }
        }
      });
    }

    test("and the random data reached every grain and the lack of data", () => {
      expect([...seen].map(String).sort()).toEqual(["null", ...GRAINS].map(String).sort());
    });
  });

  describe("redelivery, correction and removal", () => {
    test("every batch sent twice and out of order changes no figure", async () => {
      const destCap = "50121";
      const rows = randomDeliveries(9, destCap, 900);
      const batches = [rows.slice(0, 300), rows.slice(300, 600), rows.slice(600)];
      const entries = batches.map((batch) => batch.map(laneEntry));
      for (const batch of entries) await handle(batch);
      const asked = { destCap, originCap: "20121", weightKg: 2, couriers: COURIERS, nowMs: NOW_MS };
      const before = await ask(asked);
      expect(before).toEqual(recompute(rows, asked));
      for (const batch of [...entries].reverse()) await handle(batch);
      for (const batch of [...entries].reverse()) await handle(batch.toReversed());
      const all = entries.flat();
      await handle(all.filter((_, at) => at % 2 === 0));
      await handle(all.filter((_, at) => at % 3 === 0).reverse());
      expect(await ask(asked)).toEqual(before);
    });

    test("a corrected delivery counts with its last version only, whichever comes first", async () => {
      const destCap = "50122";
      const first = deliveredShipments(20, (at) => ({
        shipmentId: 500 + at,
        destCap,
        leadDays: 2,
      }));
      const corrected = first.map((row) => ({ ...row, leadDays: 5, version: 2 }));
      await write(corrected);
      await write(first);
      expect((await ask({ destCap }))[0]).toMatchObject({ leadMedian: 5, sampleSize: 20 });
    });

    test("a removed delivery does not count, and counts again when it is delivered again", async () => {
      const destCap = "50123";
      const rows = deliveredShipments(20, (at) => ({ shipmentId: 600 + at, destCap }));
      const [one] = rows;
      if (!one) throw new Error("no rows");
      await write(rows);
      await write([{ ...one, version: 2, removed: true }]);
      await write([one]);
      expect((await ask({ destCap }))[0]).toMatchObject({
        status: "insufficient_data",
        sampleSize: null,
      });
      await write([{ ...one, version: 3 }]);
      expect((await ask({ destCap }))[0]).toMatchObject({ status: "ok", sampleSize: 20 });
    });

    test("merges of the parts in the background change no figure", async () => {
      const asked = { destCap: "50121", originCap: null, weightKg: null, couriers: COURIERS };
      const before = await ask(asked);
      await store.writer.command({ query: "OPTIMIZE TABLE deliveries FINAL" });
      expect(await ask(asked)).toEqual(before);
    });
  });

  describe("document 1, Limits: cells with a sample under 20 are suppressed, window of 12 months", () => {
    test("19 deliveries are insufficient data, 20 are a benchmark", async () => {
      const destCap = "50124";
      await write(deliveredShipments(19, (at) => ({ shipmentId: 700 + at, destCap })));
      expect(await ask({ destCap })).toEqual([empty("GLS_ITA")]);
      await write([deliveredShipment({ shipmentId: 719, destCap })]);
      expect((await ask({ destCap }))[0]).toMatchObject({
        status: "ok",
        level: "cap",
        leadMedian: 2,
      });
    });

    test("the same day a year ago counts and the day before it does not, by the day in Rome", async () => {
      const destCap = "50125";
      const old = { shipDate: "2025-11-17", destCap };
      await write(
        deliveredShipments(20, (at) => ({
          ...old,
          deliveredOn: "2025-11-20",
          shipmentId: 800 + at,
        })),
      );
      await write(
        deliveredShipments(20, (at) => ({
          ...old,
          deliveredOn: "2025-11-19",
          shipmentId: 820 + at,
        })),
      );
      const size = async (now: string) =>
        (await ask({ destCap, nowMs: Date.parse(now) }))[0]?.sampleSize;
      expect(await size("2026-11-19T22:59:59Z")).toBe(40);
      expect(await size("2026-11-19T23:00:00Z")).toBe(20);
      expect(await size("2026-11-20T23:00:00Z")).toBeNull();
    });

    test("transit days have a sample of their own: 19 departures give none of its figures, 20 give all", async () => {
      const destCap = "50128";
      await write(
        deliveredShipments(25, (at) => ({
          shipmentId: 5_000 + at,
          destCap,
          transitDays: at < 19 ? 1 : null,
        })),
      );
      const none = {
        transitSampleSize: null,
        transitMedian: null,
        transitMean: null,
        transitP90: null,
        transitMedianInterval: null,
      };
      expect((await ask({ destCap }))[0]).toMatchObject({ sampleSize: 25, ...none });
      await write([deliveredShipment({ shipmentId: 5_100, destCap, transitDays: 1 })]);
      expect((await ask({ destCap }))[0]).toMatchObject({
        transitSampleSize: 20,
        transitMedian: 1,
      });
    });

    test("a delivery before its ship date, or more than a year after it, is no evidence and is counted as left out", async () => {
      const destCap = "50129";
      const deliveredOn = "2026-11-10";
      const on = (shipDate: string, shipmentId: number) =>
        deliveredShipment({ shipmentId, destCap, shipDate, deliveredOn });
      await write(
        deliveredShipments(18, (at) => ({ shipmentId: 5_200 + at, destCap, deliveredOn })),
      );
      await write([on("2025-11-10", 5_300), on("2026-11-10", 5_301)]);
      await write([on("2025-11-09", 5_302), on("2026-11-11", 5_303), on("1930-01-01", 5_304)]);
      expect((await ask({ destCap }))[0]).toMatchObject({ sampleSize: 20, leadMedian: 2 });
      const answer = await store.writer.query({
        query: "SELECT sum(left_out) AS left_out FROM courier_performance",
        format: "JSONEachRow",
      });
      expect(await answer.json()).toEqual([{ left_out: 3 }]);
    });

    test("couriers without data follow in the order of their codes, each asked courier once", async () => {
      const answer = await ask({
        destCap: "50124",
        couriers: ["ZZZ", "AAA", "GLS_ITA", "GLS_ITA", "o'quote;"],
      });
      expect(answer.map(({ courierCode }) => courierCode)).toEqual([
        "GLS_ITA",
        "AAA",
        "ZZZ",
        "o'quote;",
      ]);
    });

    test("equal medians are ordered by mean, then p90, then code", async () => {
      const destCap = "50126";
      const lead = (code: string, base: number, days: readonly number[]) =>
        deliveredShipments(20, (at) => ({
          shipmentId: base + at,
          courier: code,
          destCap,
          leadDays: days[at] ?? 3,
        }));
      await write(lead("C_SAME", 900, []));
      await write(lead("B_SAME", 920, []));
      await write(lead("A_SLOW_MEAN", 940, [3, 3, 3, 9]));
      await write(lead("D_P90", 960, [0, 0, 6, 6]));
      const couriers = ["A_SLOW_MEAN", "B_SAME", "C_SAME", "D_P90"];
      const codes = (await ask({ destCap, couriers })).map(({ courierCode }) => courierCode);
      expect(codes).toEqual(["B_SAME", "C_SAME", "D_P90", "A_SLOW_MEAN"]);
    });
  });

  describe("document 1, efficiency index: 0 to 100 on the lane, best first, suppressed couriers appended", () => {
    test("the answer agrees with a recomputation from the raw rows", async () => {
      const destCap = "50127";
      const rows = randomDeliveries(21, destCap, 1_500).map((row, at) => ({
        ...row,
        exceptions: at % 7 === 0 ? 1 : 0,
        attempts: at % 5 === 0 ? 2 : 1,
      }));
      await write(rows);
      const asked = { destCap, originCap: "20121", weightKg: 2, nowMs: NOW_MS };
      const couriers = [...COURIERS, "NO_DATA"];
      const answer = await benchmarks.efficiencyIndex({ ...asked, couriers });
      expect(answer.length).toBe(couriers.length);
      expect(answer.filter(({ rank }) => rank !== null).map(({ rank }) => rank)).toEqual(
        answer.flatMap(({ status }, at) => (status === "ok" ? [at + 1] : [])),
      );
      const counted = countedRows(rows, { ...asked, couriers });
      for (const { courierCode, level, scores, sampleSize } of answer) {
        if (level === null || scores === null) continue;
        const cell = counted.filter((row) => inGrain(row, level, { ...asked, couriers }));
        const own = cell.filter(({ courier }) => courier === courierCode);
        expect(sampleSize).toBe(own.length);
        expect(scores.reliability).toBeCloseTo(reliability(own, cell), SHOWN_DIGITS);
        expect(scores.speed).toBeCloseTo(speed(own, cell, scores.basis), SHOWN_DIGITS);
      }
      const indices = answer.flatMap(({ scores }) => (scores ? [scores.index] : []));
      expect(indices.length).toBeGreaterThan(1);
      expect(indices).toEqual(indices.toSorted((one, other) => other - one));
      expect(answer.at(-1)).toEqual({
        courierCode: "NO_DATA",
        status: "insufficient_data",
        rank: null,
        scores: null,
        medianInterval: null,
        level: null,
        weightBand: null,
        sampleSize: null,
      });
    });

    test("only the asked couriers are answered, compared with all of the network", async () => {
      const asked = { destCap: "50127", originCap: null, weightKg: null, nowMs: NOW_MS };
      const all = await benchmarks.efficiencyIndex({ ...asked, couriers: COURIERS });
      const [one] = await benchmarks.efficiencyIndex({ ...asked, couriers: ["GLS_ITA"] });
      const among = all.find(({ courierCode }) => courierCode === "GLS_ITA");
      if (!one || !among) throw new Error("no answer");
      expect(one).toEqual({ ...among, rank: 1 });
    });
  });

  function reliability(
    own: readonly DeliveredShipment[],
    network: readonly DeliveredShipment[],
  ): number {
    const troubled = (rows: readonly DeliveredShipment[]) =>
      rows.filter(({ attempts, exceptions }) => attempts > 1 || exceptions > 0).length;
    const usual = troubled(network) / network.length;
    return (100 * usual) / (usual + (troubled(own) + 20 * usual) / (own.length + 20));
  }

  function speed(
    own: readonly DeliveredShipment[],
    network: readonly DeliveredShipment[],
    basis: "transit" | "lead",
  ): number {
    const days = (rows: readonly DeliveredShipment[]) =>
      basis === "lead"
        ? rows.map(({ leadDays }) => leadDays)
        : rows.flatMap(({ transitDays }) => (transitDays === null ? [] : [transitDays]));
    const [mine, all] = [days(own), days(network)];
    let points = 0;
    for (const one of mine) for (const two of all) points += one < two ? 1 : one === two ? 0.5 : 0;
    return (100 * points) / (mine.length * all.length);
  }

  test("before the tables exist there is no data and no error", async () => {
    await store.writer.command({ query: "RENAME TABLE deliveries TO deliveries_away" });
    try {
      expect(await ask({ destCap: "50124" })).toEqual([empty("GLS_ITA")]);
    } finally {
      await store.writer.command({ query: "RENAME TABLE deliveries_away TO deliveries" });
    }
  });

  const QUESTION = {
    destCap: "50124",
    originCap: null,
    weightKg: null,
    couriers: ["GLS_ITA"],
    nowMs: NOW_MS,
  };

  describe("ClickHouse away", () => {
    test("a server that does not answer is 503 BENCHMARKS_UNAVAILABLE, and opening does not fail", async () => {
      const away = await openBenchmarks({ ...store.config, clickhouseUrl: "http://127.0.0.1:1" });
      expect(await away.ready()).toBe(false);
      const refused = await away.deliveryTimes(QUESTION).catch((error) => error);
      expect(refused).toBeInstanceOf(Problem);
      expect(refused).toMatchObject({ status: 503, code: "BENCHMARKS_UNAVAILABLE" });
      await away.close();
    });

    test.skipIf(kind !== "embedded")(
      "every process on a data folder is answered by its engine, also when the one that started it has closed it",
      async () => {
        const [own] = await benchmarks.deliveryTimes(QUESTION);
        const other = await startOtherProcess(store.config.dataDir);
        expect(await other.ask()).toBe(`${own?.sampleSize} deliveries`);
        await benchmarks.close();
        await store.writer.close();
        const isAnswered = async () => (await other.ask()) === `${own?.sampleSize} deliveries`;
        await eventually(isAnswered, "an engine of its own answers");
        await other.stop();
      },
    );
  });

  /** Another process with benchmarks over the same folder; it answers each line of its input with one line. */
  async function startOtherProcess(dataDir: string) {
    const program = `
    import { openBenchmarks } from "#analytics/benchmarks.ts";
    import { readConfig } from "#core/platform/environment/config.ts";
    const benchmarks = await openBenchmarks(readConfig({ DATA_DIR: ${JSON.stringify(dataDir)} }));
    for await (const line of console) {
      const text = await benchmarks.deliveryTimes(${JSON.stringify(QUESTION)}).then(
        ([row]) => row.sampleSize + " deliveries",
        (error) => error.status + " " + error.code,
      );
      process.stdout.write(text + "\\n");
    }
    await benchmarks.close();`;
    const child = Bun.spawn([process.execPath, "-e", program], {
      cwd: join(import.meta.dir, "..", "..", ".."),
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    return {
      async ask(): Promise<string> {
        child.stdin.write("ask\n");
        child.stdin.flush();
        const { value } = await lines.read();
        return value?.trim() ?? "ended";
      },
      async stop() {
        child.stdin.end();
        await child.exited;
      },
    };
  }
});
