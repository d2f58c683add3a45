import type { ReactNode } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { EditForm } from "./edit-form.tsx";
import { GuardedModal } from "./guarded-modal.tsx";
import { type Edit, type EditOptions, useEdit } from "./use-edit.tsx";

interface FormDialogProps<Values extends object, Answer> extends EditOptions<Values, Answer> {
  readonly title: string;
  readonly action?: string;
  readonly size?: string;
  readonly onClose: () => void;
  readonly children: (inputOf: Edit<Values>["inputOf"], edit: Edit<Values>) => ReactNode;
}

/** A form in a dialogue, which is not closed over what has been written without a question. */
export function FormDialog<Values extends object, Answer>(props: FormDialogProps<Values, Answer>) {
  const { title, action, size = "md", onClose, children, ...options } = props;
  const { t } = useText();
  const edit = useEdit(options);
  return (
    <GuardedModal
      opened
      onClose={edit.isPending ? () => {} : onClose}
      title={title}
      size={size}
      loss={edit.isTouched ? t.common.lossOfDraft : null}
    >
      <EditForm edit={edit} onCancel={onClose} {...(action !== undefined && { action })}>
        {children(edit.inputOf, edit)}
      </EditForm>
    </GuardedModal>
  );
}
