/**
 * Who may do what in the control panel. This table is the only one: routes name the capability that they need and whose the
 * thing is that their path names (`panel/server/panel-routes.ts`), and nothing else decides.
 */

/** Operators work for the service, the others for one company (merchant) or one courier. */
export const ACCOUNT_KINDS = ["operator", "company", "courier"] as const;
export type AccountKind = (typeof ACCOUNT_KINDS)[number];

const CAPABILITIES = [
  "me",
  "overview:read",
  "alarms:read",
  "alarms:write",
  "shipments:read",
  "shipments:erase",
  "webhooks:read",
  "webhooks:write",
  "webhooks:replay",
  "channels:read",
  "channels:write",
  "templates:write",
  "shipping:write",
  "keys:write",
  "orders:write",
  "couriers:read",
  "couriers:write",
  "courier-access:write",
  "catalogue:write",
  "events:read",
  "requests:read",
  "quality:read",
  "quality:share",
  "benchmarks:read",
  "sql:run",
  "jobs:read",
  "dead-letters:read",
  "dead-letters:write",
  "doctor:read",
  "clock:write",
  "accounts:read",
  "accounts:write",
  "audit:read",
] as const;
export type Capability = (typeof CAPABILITIES)[number];

const READING = CAPABILITIES.filter((one) => one === "me" || one.endsWith(":read"));

const COMPANY_READING = [
  "me",
  "shipments:read",
  "webhooks:read",
  "channels:read",
  "jobs:read",
  "requests:read",
  "benchmarks:read",
  "alarms:read",
] as const satisfies readonly Capability[];

const COMPANY_WORK = [
  ...COMPANY_READING,
  "webhooks:write",
  "webhooks:replay",
  "templates:write",
  "shipping:write",
  "keys:write",
  "alarms:write",
] as const satisfies readonly Capability[];

const COURIER_READING = [
  "me",
  "couriers:read",
  "events:read",
  "requests:read",
  "quality:read",
  "alarms:read",
] as const satisfies readonly Capability[];

const ACCOUNTS = ["accounts:read", "accounts:write"] as const satisfies readonly Capability[];

/** Each kind's roles, the most powerful first. */
const ROLES = {
  operator: {
    admin: CAPABILITIES,
    operator: CAPABILITIES.filter((one) => one !== "accounts:write"),
    // What is read there is personal data of recipients, so SQL access, which reads only too, is not part of it.
    "read-only": READING,
  },
  company: {
    owner: [...COMPANY_WORK, ...ACCOUNTS, "shipments:erase"],
    member: COMPANY_WORK,
    "read-only": COMPANY_READING,
  },
  courier: {
    owner: [
      ...COURIER_READING,
      ...ACCOUNTS,
      "courier-access:write",
      "quality:share",
      "alarms:write",
    ],
    "read-only": COURIER_READING,
  },
} as const satisfies Record<AccountKind, Record<string, readonly Capability[]>>;

type RolesOf<K extends AccountKind> = keyof (typeof ROLES)[K];
export type Role = { [K in AccountKind]: RolesOf<K> }[AccountKind];

export const ALL_ROLES = [
  "admin",
  "operator",
  "owner",
  "member",
  "read-only",
] as const satisfies readonly Role[];

export function rolesOf(kind: AccountKind): Role[] {
  return Object.keys(ROLES[kind]) as Role[];
}

/** Empty where the kind has no such role. */
export function capabilitiesOf(kind: AccountKind, role: string): readonly Capability[] {
  const roles: Readonly<Record<string, readonly Capability[]>> = ROLES[kind];
  return roles[role] ?? [];
}
