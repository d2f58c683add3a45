/** What a form on a channel's page does once its change is saved, and when somebody else has changed the channel. */
import { useText } from "#panel/web/i18n/text.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { queries } from "#panel/web/queries.ts";

export function useChannelEnds(channelCode: string) {
  const { t } = useText();
  const reread = () => queries.invalidateQueries({ queryKey: ["channels", channelCode] });
  return {
    onDone() {
      tell(t.common.saved);
      return reread();
    },
    reread,
  };
}
