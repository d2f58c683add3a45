import { Button, Menu } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useText } from "#panel/web/i18n/text.tsx";

const FORMATS = ["csv", "parquet"] as const;

interface ExportMenuProps {
  /** Of the call below `/panel/api/analytics`. */
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
  /** What is exported, for who does not see where the button stands. */
  readonly label: string;
}

/** The rows of a table as a file. */
export function ExportMenu({ name, query, label }: ExportMenuProps) {
  const { t } = useText();
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const addressOf = (format: string) =>
    `/panel/api/analytics/${name}?${new URLSearchParams([...given, ["format", format]])}`;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} aria-hidden />}
          aria-label={`${t.benchmarks.export} ${label}`}
        >
          {t.benchmarks.export}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map((format) => (
          <Menu.Item key={format} component="a" href={addressOf(format)} download>
            {t.sql[format]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
