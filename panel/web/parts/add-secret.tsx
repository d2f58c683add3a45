/** Beside the heading of a section: a button whose dialog makes a secret, which is then shown once. */
import { type ReactNode, useState } from "react";
import { AddButton } from "./add-button.tsx";
import { SecretOnce } from "./secret-once.tsx";

interface AddSecretProps {
  readonly label: string;
  /** Of the secret. */
  readonly title: string;
  readonly dialogOf: (onClose: () => void, onMade: (secret: string) => void) => ReactNode;
}

export function AddSecret({ label, title, dialogOf }: AddSecretProps) {
  const [isOpen, setIsOpen] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const close = () => setIsOpen(false);
  const show = (made: string) => {
    close();
    setSecret(made);
  };
  return (
    <>
      <AddButton label={label} onClick={() => setIsOpen(true)} />
      {isOpen && dialogOf(close, show)}
      <SecretOnce title={title} secret={secret} onClose={() => setSecret(null)} />
    </>
  );
}
