/**
 * A setup file laid over settings that the panel changes too. A file is applied at every start, so only what it says otherwise
 * than the last time counts: the panel's word stands for the rest.
 */
import { CHANNEL_SETTINGS } from "#core/configuration/rules/settings.ts";
import type { Remaining, SetupChannel, SetupChannelCourier } from "./setup.ts";

type OwnSettings = Pick<SetupChannel, keyof typeof CHANNEL_SETTINGS>;
const OWN_SETTINGS = Object.keys(CHANNEL_SETTINGS) as (keyof OwnSettings)[];

/** What a setup file has said last of a channel's settings. */
export interface SaidOfChannel {
  readonly own?: OwnSettings;
  readonly rateLimit?: SetupChannel["rateLimit"] | undefined;
  /** By code. */
  readonly couriers?: Readonly<Record<string, SetupChannelCourier>>;
  readonly sender?: SetupChannel["sender"] | undefined;
  readonly emails?: Omit<NonNullable<SetupChannel["emails"]>, "templates"> | undefined;
}

/**
 * Fingerprints of the members of a courier or company that a setup file has named last, by name. Empty: no file has named it since it
 * was made, so it is the panel's.
 */
export type SaidMembers = Readonly<Record<string, string>>;

/** What a setup file owns; `panel`: made there, and named by no file. */
export type ManagedBy = "setup.json" | "panel";

export function managedBy(setupSaid: object): ManagedBy {
  return Object.keys(setupSaid).length > 0 ? "setup.json" : "panel";
}

/** The members of `now` that differ from those of `last`. */
export function newlySaid<T extends object>(
  now: T | undefined,
  last: Partial<T> | undefined,
): Partial<T> {
  const differs = ([name, value]: [string, unknown]) =>
    value !== undefined && JSON.stringify(value) !== JSON.stringify(last?.[name as keyof T]);
  return Object.fromEntries(Object.entries(now ?? {}).filter(differs)) as Partial<T>;
}

export function ownSettingsOf(file: SetupChannel): OwnSettings {
  const given = OWN_SETTINGS.filter((name) => file[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, file[name]]));
}

/** What is known of a channel after this file: what it does not name, an earlier one has said. */
export function saidAfter(said: SaidOfChannel, file: SetupChannel): SaidOfChannel {
  const { templates: _, ...emails } = file.emails ?? {};
  const couriers = (file.couriers ?? []).map((courier) => [courier.code, courier] as const);
  return {
    own: { ...said.own, ...ownSettingsOf(file) },
    rateLimit: file.rateLimit ?? said.rateLimit,
    couriers: { ...said.couriers, ...Object.fromEntries(couriers) },
    sender: file.sender ?? said.sender,
    emails: file.emails ? emails : said.emails,
  };
}

/** A courier of a channel, with every member that entities store. */
export type StoredChannelCourier = Required<SetupChannelCourier>;

export function withCourierDefaults(courier: SetupChannelCourier): StoredChannelCourier {
  const defaults = { transcodings: [], senderAccounts: [], shippingEnabled: true };
  return { ...defaults, labelFormat: "PDF", errorLabel: false, ...courier };
}

/** The couriers of a channel after a file. One that the panel has removed comes back once the file says something new of it. */
export function mergeChannelCouriers(
  stored: readonly StoredChannelCourier[],
  said: SaidOfChannel["couriers"],
  file: Remaining<SetupChannel>["couriers"],
): StoredChannelCourier[] {
  const merged = new Map(stored.map((courier) => [courier.code, withCourierDefaults(courier)]));
  // A faulty item leaves a hole in its list, which is passed over.
  file?.forEach((item) => {
    const { code } = item;
    if (code === undefined) return;
    const given = { ...item, code } as SetupChannelCourier;
    const news = newlySaid(given, said?.[code]);
    if (Object.keys(news).length === 0) return;
    const before = merged.get(code);
    merged.set(code, withCourierDefaults(before ? { ...before, ...news } : given));
  });
  return [...merged.values()];
}

export const TRANSCODING_TAKEN = "A transcoding means one courier of the channel.";

/** Codes of couriers by the transcodings that they have, in small letters: merchants write them in any case. */
export function ownersOfTranscodings(
  couriers: readonly Pick<StoredChannelCourier, "code" | "transcodings">[],
): ReadonlyMap<string, readonly string[]> {
  const all = couriers.flatMap(({ code, transcodings }) =>
    transcodings.map((text) => ({ code, text: text.toLowerCase() })),
  );
  const grouped = Map.groupBy(all, ({ text }) => text);
  return new Map([...grouped].map(([text, owners]) => [text, owners.map(({ code }) => code)]));
}
