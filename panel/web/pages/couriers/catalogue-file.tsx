/** A courier's catalogue as a file: download, and upload after a look at what it would change. */
import { Button } from "@mantine/core";
import { IconDownload, IconUpload } from "@tabler/icons-react";
import { useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { UploadCatalogue } from "./upload-catalogue.tsx";

export function CatalogueFile({ code }: { readonly code: string }) {
  const { t, language } = useText();
  const mayUpload = useMay("catalogue:write");
  const [isOpen, setOpen] = useState(false);
  // Excel in Italian splits at semicolons.
  const separator = language === "it" ? "semicolon" : "comma";
  const path = `/panel/api/couriers/${encodeURIComponent(code)}/catalogue/file`;
  return (
    <>
      <Button
        component="a"
        href={`${path}?separator=${separator}`}
        download
        size="xs"
        variant="default"
        leftSection={<IconDownload size={14} aria-hidden />}
      >
        {t.couriers.download}
      </Button>
      {mayUpload && (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconUpload size={14} aria-hidden />}
          onClick={() => setOpen(true)}
        >
          {t.couriers.upload}
        </Button>
      )}
      {isOpen && <UploadCatalogue code={code} onClose={() => setOpen(false)} />}
    </>
  );
}
