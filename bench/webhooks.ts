/**
 * Webhook deliveries a second over HTTPS with keep-alive, 2 KB, signed: `bun bench/webhooks.ts [--deliveries 20k] [--rounds 5]
 * [--receivers 1k] [--everysec] [--quick] [--json]`. Receivers are a process of their own, Redis is as shipped. First 100 endpoints,
 * beside a bare loop of signed requests with the same transport and beside BullMQ with `fetch`; then how far connections are kept
 * when there are many receivers (rows 7 and 8). Then one merchant with one endpoint: its receiver answers at once, beside BullMQ with
 * as many workers as an endpoint may have requests in flight (row 16), and takes 100 ms, or a second, where the first seconds,
 * in which the concurrency adapts, are in the figure (row 17).
 */
import type { Channel } from "#core/configuration/store/configuration.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { DEFAULT_MAX_CONCURRENCY } from "#core/webhooks/rules/concurrency.ts";
import { createTransport, type Transport } from "#core/webhooks/store/transport/transport.ts";
import { openWebhookPeer, requestHeaders } from "./bullmq.ts";
import * as harness from "./harness.ts";
import { type Receivers, startReceivers } from "./receivers.ts";
import { figureOf } from "./rows.ts";
import { webhookSetup } from "./shipments.ts";
import { median } from "./table.ts";
import { BODY_BYTES, queueDeliveries, runDeliverer } from "./webhook-load.ts";

const { deliveries, rounds, receivers, slow100, slow1000 } = harness.readOptions({
  deliveries: [20_000, 5_000],
  rounds: [5, 1],
  receivers: [1_000, 200],
  slow100: [20_000, 2_000],
  slow1000: [8_000, 800],
});
const PER_CHANNEL = 5;
const ENDPOINTS = 100;
const IN_FLIGHT = 400;
const REQUESTS = 4;
/** `fetch` keeps 64 idle connections in all: more at once opens new ones for most requests, and is slower. */
const PEER_CONCURRENCY = 64;

interface Playing {
  readonly runtime: Runtime;
  readonly playing: Receivers;
  readonly transport: Transport;
  readonly channels: readonly Channel[];
  readonly defer: harness.Defer;
}

/** @returns requests a second of a loop that only signs and posts, the same headers as ours */
function runBare(
  { urlOf }: Receivers,
  transport: Transport,
  count: number,
  names = ENDPOINTS,
  inFlight = IN_FLIGHT,
): Promise<number> {
  const id = "evt_bench";
  const body = JSON.stringify({ id, text: "x".repeat(BODY_BYTES - 32) });
  const requests = Array.from({ length: count }, (_, n) => urlOf(n % names));
  const work = () =>
    harness.forEach(requests, inFlight, async (url) => {
      const sent = await transport.post(url, requestHeaders(id, body, 1), body);
      if (sent.kind !== "answered") throw new Error(sent.error);
    });
  return harness.ratePerSecond(count, work);
}

const jobsOf = (urls: readonly string[]) =>
  Array.from({ length: deliveries }, (_, n) => {
    const id = `evt_${String(n).padStart(32, "0")}`;
    return {
      id,
      url: urls[n % urls.length] ?? "",
      payload: { id, text: "x".repeat(BODY_BYTES - 60) },
    };
  });

/** Rows 7 and 8. */
async function measureMany(
  { runtime, playing, transport, channels, defer }: Playing,
  urls: string[],
) {
  const peer = openWebhookPeer(defer, runtime, playing.ca, PEER_CONCURRENCY);
  const jobs = jobsOf(urls);
  // Idle connections are closed after 4 s, and a handshake costs as much as twenty requests: it is not what is measured.
  const connect = () => runBare(playing, transport, IN_FLIGHT * 6, ENDPOINTS, IN_FLIGHT * 3);
  const { ours, bare, bullmq } = await harness.inTurns(rounds, {
    async bare() {
      await connect();
      return runBare(playing, transport, deliveries);
    },
    async ours() {
      await queueDeliveries(runtime, channels, deliveries);
      await connect();
      return runDeliverer(runtime, transport, deliveries);
    },
    bullmq: () => peer(jobs),
  });
  const names = { endpoints: ENDPOINTS };
  return [
    figureOf("webhooks bare", { ours, peer: bare }, names),
    figureOf("webhooks bullmq", { ours, peer: bullmq }, names),
  ];
}

/** Row 7: with more receivers, each of which gets some requests. */
async function measureConnections(playing: Receivers, transport: Transport) {
  const { connections: before } = await playing.counts();
  // So few at once that no receiver has two of them.
  const inFlight = Math.min(IN_FLIGHT, receivers / 5);
  await runBare(playing, transport, receivers * REQUESTS, receivers, inFlight);
  const ours = (await playing.counts()).connections - before;
  const names = { requests: REQUESTS, receivers: String(receivers) };
  return figureOf("webhooks connections", { ours, peer: receivers }, names);
}

/** Row 16: one endpoint. */
async function measureOne(
  { runtime, playing, transport, channels, defer }: Playing,
  urls: string[],
) {
  const workers = DEFAULT_MAX_CONCURRENCY;
  const peer = openWebhookPeer(defer, runtime, playing.ca, workers);
  const jobs = jobsOf(urls);
  const cpuUs = async () => {
    const redis = await harness.redisSeconds(runtime.redis);
    const own = await harness.processSeconds(process.pid);
    return (redis + own) * 1e6 + (await playing.counts()).cpuUs;
  };
  const costs: number[] = [];
  const { ours, bullmq } = await harness.inTurns(rounds, {
    async ours() {
      await queueDeliveries(runtime, channels, deliveries);
      const before = await cpuUs();
      const rate = await runDeliverer(runtime, transport, deliveries);
      costs.push(((await cpuUs()) - before) / deliveries);
      return rate;
    },
    bullmq: () => peer(jobs),
  });
  return [
    figureOf("webhooks one", { ours, peer: bullmq }, { workers }),
    figureOf("webhooks cost", { ours: median(costs.slice(1)) }),
  ];
}

await harness.runPart(async (defer) => {
  const playing = await startReceivers(defer, Math.max(ENDPOINTS, receivers));
  const { urlOf, ca, caFile } = playing;
  const urls = Array.from({ length: ENDPOINTS }, (_, n) => urlOf(n));
  const companies = Array.from({ length: ENDPOINTS / PER_CHANNEL }, (_, n) =>
    urls.slice(n * PER_CHANNEL, (n + 1) * PER_CHANNEL),
  );
  const alone = [[urlOf(0)], [urlOf(1, 100)], [urlOf(2, 1_000)]];
  const env = { WEBHOOK_CA_FILE: caFile };
  const { runtime } = await harness.openStore(defer, webhookSetup([...companies, ...alone]), env);
  const options = { allowed: runtime.config.webhookAllowedCidrs, ca };
  const [transport, many] = [createTransport(options), createTransport(options)];
  defer(() => [transport, many].map((one) => one.close()));
  const all = [...runtime.live.configuration().channels.values()];
  const [one, fast, slow] = all.slice(-alone.length).map((channel) => [channel]);
  const common = { runtime, playing, transport, defer };
  const figures = await measureMany({ ...common, channels: all.slice(0, -alone.length) }, urls);
  const about = `${harness.fsyncText()}, medians of ${rounds}`;
  // Only row 8 is measured so too.
  if (harness.flags.everysec) return { figures, redis: runtime.redis, about };
  figures.push(await measureConnections(playing, many));
  figures.push(...(await measureOne({ ...common, channels: one ?? [] }, [urlOf(0)])));
  for (const [name, channels = [], count] of [
    ["100ms", fast, slow100],
    ["1000ms", slow, slow1000],
  ] as const) {
    await queueDeliveries(runtime, channels, count);
    const ours = await runDeliverer(runtime, transport, count);
    figures.push(figureOf(`webhooks ${name}`, { ours }));
  }
  return { figures, redis: runtime.redis, about };
});
