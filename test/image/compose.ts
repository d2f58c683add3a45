/** Services of compose.yaml as command lines of Podman: what a service says of how it runs is taken from the file. */
import { resolve } from "node:path";

export interface Service {
  readonly image: string;
  readonly command: string | readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test?: readonly string[] };
}

export async function servicesOf(file: string): Promise<Readonly<Record<string, Service>>> {
  const text = await Bun.file(file).text();
  return (Bun.YAML.parse(text) as { services: Record<string, Service> }).services;
}

/**
 * Options, image and command of `podman run`. Variables of the shell are those given.
 * @param files what stands on the machine in the place of a file beside compose.yaml
 */
export function runArguments(
  service: Service,
  shell: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): { readonly options: string[]; readonly image: string; readonly command: string[] } {
  const { environment = {}, volumes = [], ports = [], tmpfs = [] } = service;
  const variables = Object.entries(environment).map(
    ([name, value]) => `${name}=${interpolated(value, shell)}`,
  );
  const mounts = volumes.map((volume) => {
    const [source = "", ...rest] = volume.split(":");
    const found = files[source] ?? (source.startsWith(".") ? resolve(source) : source);
    return [found, ...rest].join(":");
  });
  return {
    options: [
      ...(service.read_only ? ["--read-only"] : []),
      ...each("--cap-drop", service.cap_drop ?? []),
      ...each("--security-opt", service.security_opt ?? []),
      ...each("--tmpfs", tmpfs),
      ...each("--env", variables),
      ...each("--volume", mounts),
      ...each("--publish", ports),
    ],
    image: service.image,
    command:
      typeof service.command === "string"
        ? service.command.trim().split(/\s+/)
        : [...service.command],
  };
}

function each(option: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [option, value]);
}

/** `${NAME:-value}`, as in Compose. */
function interpolated(text: string, shell: Readonly<Record<string, string>>): string {
  return text.replace(
    /\$\{(\w+):-([^}]*)\}/g,
    (_, name: string, otherwise: string) => shell[name] || otherwise,
  );
}
