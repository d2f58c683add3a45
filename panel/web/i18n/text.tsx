/** The words of the application in the visitor's language. */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { en, type Messages } from "./en.ts";
import { it } from "./it.ts";

export type Language = "en" | "it";

const ALL: Readonly<Record<Language, Messages>> = { en, it };
const STORED_AS = "waybill-language";

interface Text {
  readonly language: Language;
  readonly t: Messages;
  readonly setLanguage: (language: Language) => void;
}

const TextContext = createContext<Text | null>(null);

export function TextProvider({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState<Language>(firstLanguage);
  useEffect(() => {
    document.documentElement.lang = language;
    localStorage.setItem(STORED_AS, language);
  }, [language]);
  const value = useMemo(() => ({ language, t: ALL[language], setLanguage }), [language]);
  return <TextContext value={value}>{children}</TextContext>;
}

export function useText(): Text {
  const text = useContext(TextContext);
  if (!text) throw new Error("useText outside of TextProvider");
  return text;
}

function languageNow(): Language {
  return document.documentElement.lang === "it" ? "it" : "en";
}

/** For what is said outside of a component. */
export function wordsNow(): Messages {
  return ALL[languageNow()];
}

function firstLanguage(): Language {
  const known = localStorage.getItem(STORED_AS);
  if (known === "en" || known === "it") return known;
  return navigator.language.startsWith("it") ? "it" : "en";
}
