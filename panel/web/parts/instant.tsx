import { useFormat } from "#panel/web/i18n/format.ts";

interface InstantProps {
  readonly at: string | null;
  readonly precise?: boolean;
}

/** An instant in Rome's time; the exact one in UTC under the pointer. */
export function Instant({ at, precise = false }: InstantProps) {
  const f = useFormat();
  if (at === null) return <>–</>;
  return (
    <time dateTime={at} title={at} className="nowrap figures">
      {precise ? f.second(at) : f.minute(at)}
    </time>
  );
}
