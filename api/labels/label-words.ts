/** The words printed on labels, error labels and slips, in the company's language. */
import type { Language } from "#core/shipments/rules/shipment.ts";

interface LabelWords {
  readonly from: string;
  readonly to: string;
  readonly reference: string;
  readonly weight: string;
  readonly parcel: string;
  readonly service: string;
  readonly cashOnDelivery: string;
  readonly content: string;
}

const ENGLISH: LabelWords = {
  from: "From",
  to: "To",
  reference: "Reference",
  weight: "Weight",
  parcel: "Parcel",
  service: "Service",
  cashOnDelivery: "Cash on delivery",
  content: "Content",
};

const ITALIAN: LabelWords = {
  from: "Mittente",
  to: "Destinatario",
  reference: "Riferimento",
  weight: "Peso",
  parcel: "Collo",
  service: "Servizio",
  cashOnDelivery: "Contrassegno",
  content: "Contenuto",
};

/** English where a language has no words of its own. */
export function labelWords(language: Language): LabelWords {
  return language === "it" ? ITALIAN : ENGLISH;
}

/** The sheet that tells an operator not to ship (document 1, "Labels"). */
export interface ErrorWords {
  readonly doNotShip: string;
  readonly reference: string;
  readonly carrier: string;
  readonly time: string;
  readonly error: string;
  readonly unreachable: string;
  readonly unreadable: string;
}

type SevenWords = readonly [string, string, string, string, string, string, string];

const ERROR_WORDS: Readonly<Record<Language, SevenWords>> = {
  it: [
    "NON SPEDIRE",
    "Riferimento",
    "Corriere",
    "Data e ora",
    "Errore",
    "Il corriere non è raggiungibile.",
    "La risposta del corriere non è leggibile.",
  ],
  en: [
    "DO NOT SHIP",
    "Reference",
    "Carrier",
    "Date and time",
    "Error",
    "The carrier cannot be reached.",
    "The carrier's answer cannot be read.",
  ],
  de: [
    "NICHT VERSENDEN",
    "Referenz",
    "Paketdienst",
    "Datum und Uhrzeit",
    "Fehler",
    "Der Paketdienst ist nicht erreichbar.",
    "Die Antwort des Paketdienstes ist nicht lesbar.",
  ],
  fr: [
    "NE PAS EXPÉDIER",
    "Référence",
    "Transporteur",
    "Date et heure",
    "Erreur",
    "Le transporteur est injoignable.",
    "La réponse du transporteur est illisible.",
  ],
  es: [
    "NO ENVIAR",
    "Referencia",
    "Transportista",
    "Fecha y hora",
    "Error",
    "No se puede contactar con el transportista.",
    "La respuesta del transportista no se puede leer.",
  ],
  pt: [
    "NÃO ENVIAR",
    "Referência",
    "Transportadora",
    "Data e hora",
    "Erro",
    "Não é possível contactar a transportadora.",
    "A resposta da transportadora não é legível.",
  ],
  zh: [
    "请勿发货",
    "参考号",
    "承运商",
    "日期和时间",
    "错误",
    "无法连接承运商。",
    "无法读取承运商的答复。",
  ],
  ru: [
    "НЕ ОТПРАВЛЯТЬ",
    "Номер заказа",
    "Перевозчик",
    "Дата и время",
    "Ошибка",
    "Перевозчик недоступен.",
    "Ответ перевозчика не читается.",
  ],
  ja: [
    "発送禁止",
    "参照番号",
    "運送会社",
    "日時",
    "エラー",
    "運送会社に接続できません。",
    "運送会社の応答を読み取れません。",
  ],
  cs: [
    "NEODESÍLAT",
    "Reference",
    "Dopravce",
    "Datum a čas",
    "Chyba",
    "Dopravce není dostupný.",
    "Odpověď dopravce nelze přečíst.",
  ],
  ro: [
    "NU EXPEDIAȚI",
    "Referință",
    "Curier",
    "Data și ora",
    "Eroare",
    "Curierul nu poate fi contactat.",
    "Răspunsul curierului nu poate fi citit.",
  ],
  hu: [
    "NE SZÁLLÍTSA",
    "Hivatkozás",
    "Futárszolgálat",
    "Dátum és idő",
    "Hiba",
    "A futárszolgálat nem érhető el.",
    "A futárszolgálat válasza nem olvasható.",
  ],
  ar: [
    "لا ترسل",
    "المرجع",
    "شركة الشحن",
    "التاريخ والوقت",
    "خطأ",
    "لا يمكن الوصول إلى شركة الشحن.",
    "لا يمكن قراءة رد شركة الشحن.",
  ],
  sk: [
    "NEODOSIELAŤ",
    "Referencia",
    "Dopravca",
    "Dátum a čas",
    "Chyba",
    "Dopravca nie je dostupný.",
    "Odpoveď dopravcu sa nedá prečítať.",
  ],
  pl: [
    "NIE WYSYŁAĆ",
    "Numer",
    "Przewoźnik",
    "Data i godzina",
    "Błąd",
    "Przewoźnik jest nieosiągalny.",
    "Nie można odczytać odpowiedzi przewoźnika.",
  ],
  ko: [
    "발송 금지",
    "참조 번호",
    "운송사",
    "날짜 및 시간",
    "오류",
    "운송사에 연결할 수 없습니다.",
    "운송사의 응답을 읽을 수 없습니다.",
  ],
  nl: [
    "NIET VERZENDEN",
    "Referentie",
    "Vervoerder",
    "Datum en tijd",
    "Fout",
    "De vervoerder is niet bereikbaar.",
    "Het antwoord van de vervoerder is niet leesbaar.",
  ],
};

export function errorWords(language: Language): ErrorWords {
  const [doNotShip, reference, carrier, time, error, unreachable, unreadable] =
    ERROR_WORDS[language];
  return { doNotShip, reference, carrier, time, error, unreachable, unreadable };
}
