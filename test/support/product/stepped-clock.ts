/**
 * Loaded before the product (`bun --preload`): its wall clock is ahead of the machine's by the milliseconds that the file
 * CLOCK_STEP_FILE holds, from the moment they are written. Timers and `performance.now` go on as they do in a real step.
 */
import { readFileSync } from "node:fs";
import { productEnv } from "./product.ts";

const LOOK_EVERY_MS = 20;
const path = productEnv()["CLOCK_STEP_FILE"] ?? "";
const realNow = Date.now;
let stepMs = 0;

setInterval(() => {
  stepMs = Number(readFileSync(path, "utf8")) || 0;
}, LOOK_EVERY_MS).unref();

const now = () => realNow() + stepMs;
globalThis.Date = new Proxy(Date, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
