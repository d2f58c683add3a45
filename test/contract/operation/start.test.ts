/** Starting by hand: arguments, the launcher's refusal, the setup command, and a log that nobody reads any more. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { applySetupFile, openRuntime } from "#core/runtime/runtime.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { PANEL_TOKEN } from "#test/support/product/product.ts";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-start-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const dataDir = () => ({ DATA_DIR: join(folder, "data") });
const run = (...command: string[]) => outcomeOf(startCommand(command, dataDir()));

async function fileOf(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify(content));
  return path;
}

describe("the start", () => {
  test("names the commands for apt, brew and docker where redis-server cannot be installed", async () => {
    const path = join(folder, "bin");
    await mkdir(path);
    const node = Bun.which("node") ?? "";
    await symlink(await realpath(node), join(path, "node"));
    const { errors, status } = await outcomeOf(
      startCommand([join(path, "node"), "cli/run.mjs", "start"], { PATH: path }),
    );
    expect(status).toBe(1);
    expect(errors.trim().split("\n")).toHaveLength(1);
    for (const tool of ["apt-get install", "brew install", "docker run"]) {
      expect(errors).toContain(tool);
    }
  });

  test("stops, with its Redis, when nobody reads its log any more", async () => {
    const unread = join(folder, "unread");
    const product = startCommand(["bun", "ingest/main.ts"], { DATA_DIR: unread });
    const reader = product.stdout.getReader();
    await reader.read();
    const pid = Number(await readFile(join(unread, "redis", "redis.pid"), "utf8"));
    await reader.cancel();
    await product.exited;
    await eventually(() => !isAlive(pid), "the embedded Redis is gone");
  });

  test("that is told to stop while a role starts stops that role too, once it has started", async () => {
    const program = `
      import { readConfig } from "#core/platform/environment/config.ts";
      import { createLog } from "#core/platform/process/log.ts";
      import { serve } from "#core/runtime/runtime.ts";
      const role = {
        name: "slow",
        async start() {
          const told = new Promise((resolve) => process.once("SIGTERM", resolve));
          console.log("starting");
          await told;
          return { name: "slow", url: null, stop: async () => console.log("the role stops") };
        },
      };
      await serve(readConfig(process.env), createLog("silent"), [role]);`;
    const product = startCommand(["bun", "-e", program], { DATA_DIR: join(folder, "slow") });
    const reader = product.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let said = (await reader.read()).value ?? "";
    expect(said).toBe("starting\n");
    product.kill("SIGTERM");
    for (let more = await reader.read(); !more.done; more = await reader.read()) said += more.value;
    expect([said, await product.exited]).toEqual(["starting\nthe role stops\n", 0]);
  });
});

describe("waybill setup", () => {
  const company = { code: "acme", channels: [{ code: "acme-it", apiKeys: [{ code: "main" }] }] };

  test("prints how much it wrote, and a generated secret only the first time", async () => {
    const path = await fileOf("good.json", { companies: [company] });
    const first = await run("bun", "cli/main.ts", "setup", path);
    expect(first.status).toBe(0);
    expect(first.output).toMatch(/: [1-9]\d* written\n$/);
    expect(first.errors).toMatch(
      /channel acme-it, API key main, shown only now: key_[0-9a-f]{64}\n/,
    );
    const second = await run("bun", "cli/main.ts", "setup", path);
    expect(second.output).toEndWith(": 0 written\n");
    expect(second.errors).toBe("");
  });

  test("beside a product that has its secrets in its environment, it neither replaces nor prints any", async () => {
    const own = join(folder, "beside");
    const secrets = { JWT_SECRET: "jwt-secret-of-the-tests", PANEL_TOKEN };
    const config = readConfig({ DATA_DIR: own, ...secrets });
    const running = await openRuntime(config, createLog("silent"));
    await applySetupFile(running, testSetup());
    const path = await fileOf("beside.json", { companies: [company] });
    const env = { DATA_DIR: own };
    const beside = await outcomeOf(startCommand(["bun", "cli/main.ts", "setup", path], env));
    expect(beside.status).toBe(0);
    expect(beside.output).toEndWith(" written\n");
    expect(beside.errors).toBe("");
    const files = await readdir(join(own, "secrets")).catch(() => []);
    expect(files).not.toContain("panel-token");
    await running.close();
  }, 300_000);

  test("lists every fault with its path and ends with status 1", async () => {
    const path = await fileOf("bad.json", {
      couriers: [{ code: "X" }],
      companies: [{ name: "A" }],
    });
    // As compose.yaml and the chart start it.
    const { errors, status } = await run("bun", "cli/setup/main.ts", path);
    expect(status).toBe(1);
    expect(errors).toContain("couriers[0].tokens: REQUIRED");
    expect(errors).toContain("companies[0].code: REQUIRED");
  });

  test("prints the JSON Schema of the setup file", async () => {
    const { output, status } = await run("bun", "cli/main.ts", "setup", "--schema");
    expect(status).toBe(0);
    expect(Object.keys(JSON.parse(output).properties)).toContain("couriers");
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
