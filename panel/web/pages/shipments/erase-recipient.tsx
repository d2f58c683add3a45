/** Erasing the recipient of a shipment, for those who may. It may be repeated, after a restored backup for example. */
import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconUserOff } from "@tabler/icons-react";
import { useSuspenseQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";

export function EraseRecipient({ id }: { readonly id: string }) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const [isAsking, { open, close }] = useDisclosure(false);
  const erasing = useAction({
    mutationFn: () => call("delete", "/panel/api/shipments/:id/personal-data", { params: { id } }),
    onError: tellProblem,
    async onSuccess() {
      close();
      tell(t.shipments.erased);
      await queries.invalidateQueries({ queryKey: ["shipments", id] });
    },
  });
  if (!capabilities.includes("shipments:erase")) return null;
  return (
    <>
      <Button variant="default" leftSection={<IconUserOff size={16} aria-hidden />} onClick={open}>
        {t.shipments.erase}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={close}
        title={t.shipments.erase}
        text={t.shipments.eraseText}
        action={t.shipments.eraseAction}
        isPending={erasing.isPending}
        onConfirm={() => erasing.mutate()}
      />
    </>
  );
}
