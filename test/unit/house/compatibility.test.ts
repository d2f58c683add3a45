/** docs/compatibility.md: each line names what it is known by, and the versions are those that are shipped and tested. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { LEAST_CLICKHOUSE } from "#core/doctor/store-doctor.ts";
import { CLICKHOUSE_IMAGE, REDIS_IMAGE } from "#test/support/servers/server-images.ts";

const PAGE = readFileSync("docs/compatibility.md", "utf8");
const ROWS = PAGE.split("\n")
  .filter((line) => /^\| (?!On \||Part \||Server \|)/.test(line))
  .map((line) => line.slice(2, -2).split(" | "));
const { engines, dependencies, version } = JSON.parse(readFileSync("package.json", "utf8"));
const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
const COMPOSE = ["compose.yaml", "compose.cluster.yaml"];

/** Series, such as 7.4 of `redis:7.4-alpine`. */
const seriesOf = (image: string) => /:(\d+\.\d+)/.exec(image)?.[1] ?? "";
const imagesOf = (file: string, name: string) => [
  ...new Set(readFileSync(file, "utf8").match(new RegExp(`${name}:\\S+`, "g"))),
];
const rowAbout = (text: string) => ROWS.filter((cells) => cells.join(" | ").includes(text));

describe("each line", () => {
  test.each(ROWS.map((cells) => [cells.slice(0, -1).join(", "), cells.at(-1) ?? ""]))(
    "%s: names a test that exists or a step of CI, or says that it is tried by hand or untested",
    (_, known) => {
      const paths = [...known.matchAll(/`((?:test|\.ci)\/[^`]+)`/g)].map(([, path]) => path ?? "");
      for (const path of paths) expect([path, existsSync(path)]).toEqual([path, true]);
      const isOpen = /\buntested\b|\bby hand at \d+\.\d+\.\d+/.test(known);
      expect(paths.length > 0 || isOpen).toBe(true);
    },
  );
});

describe("what the compose files ship is what the tests run", () => {
  test.each(COMPOSE)("%s: the same images as where containers answer the tests", (file) => {
    expect(imagesOf(file, "redis").filter((image) => /^redis:\d/.test(image))).toEqual([
      REDIS_IMAGE,
    ]);
    expect(imagesOf(file, "clickhouse/clickhouse-server")).toEqual([CLICKHOUSE_IMAGE]);
  });

  test("the embedded engine is of the same version as the ClickHouse server", () => {
    const engine: string = packages["node_modules/@chdb/lib-linux-x64-gnu"].version;
    expect(engine).toStartWith(`${seriesOf(CLICKHOUSE_IMAGE)}.`);
  });

  test("the redis-server of this machine, which tests run on elsewhere, is no older than the oldest of the page", () => {
    const found = Bun.spawnSync(["redis-server", "--version"]).stdout.toString();
    const [, major = "", minor = ""] = /v=(\d+)\.(\d+)/.exec(found) ?? [];
    expect(Number(`${major}.${minor}`)).toBeGreaterThanOrEqual(7);
    expect(rowAbout("Redis, the oldest | 7.0.")).toHaveLength(1);
  });
});

describe("the page names the versions of today", () => {
  test("of Bun, Node.js, Redis and ClickHouse", () => {
    expect(rowAbout(`| ${dependencies.bun}, from the lock file`)).toHaveLength(1);
    expect(engines.node).toBe(">=20");
    expect(
      rowAbout(`Redis, which both compose files ship | ${seriesOf(REDIS_IMAGE)}`),
    ).toHaveLength(1);
    for (const what of ["embedded (chDB)", "server, which both compose files ship", "cluster"]) {
      expect(
        rowAbout(
          `ClickHouse ${what}`.replace("ClickHouse embedded", "ClickHouse, embedded"),
        )[0]?.[1],
      ).toBe(seriesOf(CLICKHOUSE_IMAGE));
    }
    expect(PAGE).toContain(`refuses less than ${LEAST_CLICKHOUSE.join(".")}`);
  });

  test("what was tried by hand was tried with this version or one before", () => {
    const tried = [...PAGE.matchAll(/by hand at (\d+\.\d+\.\d+)/g)].map(([, at]) => at ?? "");
    expect(tried.length).toBeGreaterThan(0);
    for (const at of tried) expect(Bun.semver.order(at, version)).toBeLessThanOrEqual(0);
  });
});
