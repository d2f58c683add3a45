/** The words printed on labels, error labels and slips, in the company's language. */
import type { Language } from "#core/domain/shipment.ts";

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
}

const ERROR_WORDS: Readonly<Record<Language, readonly [string, string, string, string, string]>> = {
  it: ["NON SPEDIRE", "Riferimento", "Corriere", "Data e ora", "Errore"],
  en: ["DO NOT SHIP", "Reference", "Carrier", "Date and time", "Error"],
  de: ["NICHT VERSENDEN", "Referenz", "Paketdienst", "Datum und Uhrzeit", "Fehler"],
  fr: ["NE PAS EXPÉDIER", "Référence", "Transporteur", "Date et heure", "Erreur"],
  es: ["NO ENVIAR", "Referencia", "Transportista", "Fecha y hora", "Error"],
  pt: ["NÃO ENVIAR", "Referência", "Transportadora", "Data e hora", "Erro"],
  zh: ["请勿发货", "参考号", "承运商", "日期和时间", "错误"],
  ru: ["НЕ ОТПРАВЛЯТЬ", "Номер заказа", "Перевозчик", "Дата и время", "Ошибка"],
  ja: ["発送禁止", "参照番号", "運送会社", "日時", "エラー"],
  cs: ["NEODESÍLAT", "Reference", "Dopravce", "Datum a čas", "Chyba"],
  ro: ["NU EXPEDIAȚI", "Referință", "Curier", "Data și ora", "Eroare"],
  hu: ["NE SZÁLLÍTSA", "Hivatkozás", "Futárszolgálat", "Dátum és idő", "Hiba"],
  ar: ["لا ترسل", "المرجع", "شركة الشحن", "التاريخ والوقت", "خطأ"],
  sk: ["NEODOSIELAŤ", "Referencia", "Dopravca", "Dátum a čas", "Chyba"],
  pl: ["NIE WYSYŁAĆ", "Numer", "Przewoźnik", "Data i godzina", "Błąd"],
  ko: ["발송 금지", "참조 번호", "운송사", "날짜 및 시간", "오류"],
  nl: ["NIET VERZENDEN", "Referentie", "Vervoerder", "Datum en tijd", "Fout"],
};

export function errorWords(language: Language): ErrorWords {
  const [doNotShip, reference, carrier, time, error] = ERROR_WORDS[language];
  return { doNotShip, reference, carrier, time, error };
}
