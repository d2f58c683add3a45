/** The words of the application in the visitor's language: a file of their own for each, of which a visitor loads one. */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Messages } from "./en.ts";

export type Language = "en" | "it";

export interface Words {
  readonly language: Language;
  readonly t: Messages;
}

const FILES: Readonly<Record<Language, () => Promise<Messages>>> = {
  en: async () => (await import("./en.ts")).en,
  it: async () => (await import("./it.ts")).it,
};
const STORED_AS = "waybill-language";

let shown: Words | null = null;

/** To be waited for before anything is drawn. */
export async function loadWords(language: Language = firstLanguage()): Promise<Words> {
  shown = { language, t: await FILES[language]() };
  return shown;
}

interface Text extends Words {
  /** Its words may have to come first. */
  readonly setLanguage: (language: Language) => Promise<void>;
}

const TextContext = createContext<Text | null>(null);

interface TextProviderProps {
  readonly first: Words;
  readonly children: ReactNode;
}

export function TextProvider({ first, children }: TextProviderProps) {
  const [words, setWords] = useState(first);
  useEffect(() => {
    document.documentElement.lang = words.language;
    localStorage.setItem(STORED_AS, words.language);
  }, [words]);
  const value = useMemo(
    () => ({
      ...words,
      setLanguage: async (language: Language) => setWords(await loadWords(language)),
    }),
    [words],
  );
  return <TextContext value={value}>{children}</TextContext>;
}

export function useText(): Text {
  const text = useContext(TextContext);
  if (!text) throw new Error("useText outside of TextProvider");
  return text;
}

/** For what is said outside of a component. */
export function wordsNow(): Messages {
  if (!shown) throw new Error("wordsNow before loadWords");
  return shown.t;
}

function firstLanguage(): Language {
  const known = localStorage.getItem(STORED_AS);
  if (known === "en" || known === "it") return known;
  return navigator.language.startsWith("it") ? "it" : "en";
}
