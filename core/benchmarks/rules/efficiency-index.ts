/**
 * Efficiency index of a courier on a lane (document 1, "Couriers"): 0 to 100, against the lane's own distribution across
 * the network, which is all couriers' deliveries in the same cell, the courier's own among them. 50 is as good as the
 * network; a courier that is alone on its lane has 50 everywhere.
 *
 *   index       = 0.4 speed + 0.2 consistency + 0.4 reliability, from the sub-scores as shown (one decimal)
 *   days        = transit days where the courier's cell has 20 of them, else lead days; the same for the network
 *   speed       = 100 * (P(own < network) + P(own = network) / 2) over the days of two random deliveries, one of each:
 *                 the chance to be the faster one, a draw counting half
 *   consistency = the same over the distance of a delivery's days from the median of its own side
 *   reliability = 100 * n / (n + c), with n = the network's share of troubled deliveries (a second attempt or an
 *                 exception) and c = the courier's, drawn towards n by the weight of 20 deliveries so that a small sample
 *                 proves little: c = (troubles + 20 n) / (deliveries + 20)
 *
 * Edges: no troubled delivery in the network = reliability 50 for all; every delivery troubled = 50 as well. All on the
 * same day = speed and consistency 50. A cell under 20 deliveries is suppressed before it comes here.
 *
 * Example: A delivers 10 parcels in 1 day and 10 in 2, one troubled; B 10 in 2 days and 10 in 3, four troubled. The
 * network is 1 day x 10, 2 x 20, 3 x 10 with n = 5/40.
 *   speed of A       = 100 * (1/2 * (30/40 + 10/40 / 2) + 1/2 * (10/40 + 20/40 / 2)) = 68.8; of B 31.3
 *   consistency      : A is 0 or 1 day from its median 1, half of each, so is the network from its median 2: 50; B 50
 *   reliability of A : c = (1 + 2.5) / 40 = 0.0875, 100 * 0.125 / 0.2125 = 58.8; of B c = 0.1625 and 43.5
 *   index            : A 0.4 * 68.8 + 0.2 * 50 + 0.4 * 58.8 = 61.0; B 39.9
 */
import { type DayCounts, percentileDays, sampleSize, sumCounts } from "./day-counts.ts";
import { MIN_SAMPLE } from "./lane.ts";

/** Deliveries of one courier, or of all, in one cell of a lane. */
export interface LaneSample {
  readonly leads: DayCounts;
  /** Of those deliveries that have a departure. */
  readonly transits: DayCounts;
  /** Deliveries with more than one attempt or an exception. */
  readonly troubles: number;
}

/** 0 to 100, one decimal. */
export interface Efficiency {
  readonly index: number;
  readonly speed: number;
  readonly consistency: number;
  readonly reliability: number;
  /** Which days speed and consistency are about. */
  readonly basis: "transit" | "lead";
}

/** Deliveries of a courier that weigh as much as the network's experience. */
const PRIOR_DELIVERIES = 20;

export function efficiency(own: LaneSample, network: LaneSample): Efficiency {
  const basis = sampleSize(own.transits) >= MIN_SAMPLE ? "transit" : "lead";
  const [mine, all] =
    basis === "transit" ? [own.transits, network.transits] : [own.leads, network.leads];
  const speed = oneDecimal(100 * chanceToBeLess(mine, all));
  const consistency = oneDecimal(100 * chanceToBeLess(spread(mine), spread(all)));
  const reliability = oneDecimal(100 * reliabilityOf(own, network));
  const index = oneDecimal((4 * speed + 2 * consistency + 4 * reliability) / 10);
  return { index, speed, consistency, reliability, basis };
}

/** All couriers' deliveries of a cell together. */
export function networkOf(samples: readonly LaneSample[]): LaneSample {
  return {
    leads: sumCounts(samples.map(({ leads }) => leads)),
    transits: sumCounts(samples.map(({ transits }) => transits)),
    troubles: samples.reduce((sum, { troubles }) => sum + troubles, 0),
  };
}

/** Chance that a random one of `own` is less than a random one of `other`; a draw counts half. */
function chanceToBeLess(own: DayCounts, other: DayCounts): number {
  let wins = 0;
  for (const [days, deliveries] of own) {
    for (const [otherDays, otherDeliveries] of other) {
      if (days < otherDays) wins += deliveries * otherDeliveries;
      else if (days === otherDays) wins += (deliveries * otherDeliveries) / 2;
    }
  }
  return wins / (sampleSize(own) * sampleSize(other));
}

function spread(counts: DayCounts): DayCounts {
  const median = percentileDays(counts, 50) ?? 0;
  return sumCounts([counts.map(([days, deliveries]) => [Math.abs(days - median), deliveries])]);
}

function reliabilityOf(own: LaneSample, network: LaneSample): number {
  const usual = network.troubles / sampleSize(network.leads);
  if (usual === 0) return 0.5;
  const share =
    (own.troubles + PRIOR_DELIVERIES * usual) / (sampleSize(own.leads) + PRIOR_DELIVERIES);
  return usual / (usual + share);
}

function oneDecimal(value: number): number {
  return Math.round(value * 10) / 10;
}
