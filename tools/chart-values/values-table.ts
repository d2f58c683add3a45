/** The table of the chart's values that docs/operations/deploy.md has, from their schema and their defaults. */
interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Row {
  readonly path: string;
  readonly description: string;
}

const CHART = "deploy/helm/waybill";
const ROLES = ["ingest", "api", "panel", "processors", "analytics"];

export async function readSchema(): Promise<Schema> {
  return Bun.file(`${CHART}/values.schema.json`).json();
}

/** Every value that can be set, roles one by one. */
export function valuePaths(schema: Schema): Row[] {
  const resolved = ({ $ref, ...own }: Schema): Schema => {
    if ($ref === undefined) return own;
    let at: unknown = schema;
    for (const name of $ref.split("/").slice(1)) at = (at as Record<string, unknown>)[name];
    return { ...resolved(at as Schema), ...own };
  };
  const below = (path: string, given: Schema): Row[] => {
    const { description = "", properties } = resolved(given);
    if (properties === undefined || path === "config") return [{ path, description }];
    return Object.entries(properties).flatMap(([name, one]) => below(`${path}.${name}`, one));
  };
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => name !== "global")
    .flatMap(([name, one]) => below(name, one));
}

/** As YAML in one line; empty for what has no default. */
function defaultOf(path: string, values: unknown): string {
  let at = values;
  for (const name of path.split(".")) at = (at as Record<string, unknown> | undefined)?.[name];
  if (at === undefined || path === "config") return "";
  return `\`${typeof at === "string" && at !== "" ? at : JSON.stringify(at)}\``;
}

/** Roles have the same values: they are shown once, as the first role with all of them has them. */
function rowOf({ path, description }: Row, values: unknown): string[] {
  const [first, role = "", ...rest] = path.split(".");
  if (first !== "roles") return [`| \`${path}\` | ${defaultOf(path, values)} | ${description} |`];
  if (role !== ROLES[0]) return [];
  const name = rest.join(".");
  const defaults = new Set(ROLES.map((one) => defaultOf(`roles.${one}.${name}`, values)));
  defaults.delete("");
  const shown = defaults.size > 1 ? "by role" : [...defaults].join("");
  return [`| \`roles.<role>.${name}\` | ${shown} | ${description} |`];
}

export async function valuesTable(): Promise<string> {
  const schema = await readSchema();
  const values = Bun.YAML.parse(await Bun.file(`${CHART}/values.yaml`).text());
  const rows = valuePaths(schema).flatMap((row) => rowOf(row, values));
  return ["| Value | Default | Meaning |", "|---|---|---|", ...rows, ""].join("\n");
}
