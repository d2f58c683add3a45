/**
 * The first two digits of every Italian postal code (CAP): which provinces they serve and which area they lie in. Areas
 * follow the five of ISTAT with the two northern ones and the two southern ones joined: Abruzzo, the South and both large
 * islands are SUD. Prefixes that the post does not use are absent: 49, 68, 69, 77 to 79, 99.
 */
export type OriginArea = "NORD" | "CENTRO" | "SUD";

export interface CapPrefix {
  readonly prefix: string;
  readonly provinces: string;
  readonly area: OriginArea;
}

const PROVINCES: Readonly<Record<OriginArea, Readonly<Record<string, string>>>> = {
  CENTRO: {
    "00": "Roma",
    "01": "Viterbo",
    "02": "Rieti",
    "03": "Frosinone",
    "04": "Latina",
    "05": "Terni",
    "06": "Perugia",
    "50": "Firenze",
    "51": "Pistoia",
    "52": "Arezzo",
    "53": "Siena",
    "54": "Massa-Carrara",
    "55": "Lucca",
    "56": "Pisa",
    "57": "Livorno",
    "58": "Grosseto",
    "59": "Prato",
    "60": "Ancona",
    "61": "Pesaro e Urbino",
    "62": "Macerata",
    "63": "Ascoli Piceno, Fermo",
  },
  NORD: {
    "10": "Torino",
    "11": "Aosta",
    "12": "Cuneo",
    "13": "Vercelli, Biella",
    "14": "Asti",
    "15": "Alessandria",
    "16": "Genova",
    "17": "Savona",
    "18": "Imperia",
    "19": "La Spezia",
    "20": "Milano, Monza e Brianza",
    "21": "Varese",
    "22": "Como",
    "23": "Lecco, Sondrio",
    "24": "Bergamo",
    "25": "Brescia",
    "26": "Cremona, Lodi",
    "27": "Pavia",
    "28": "Novara, Verbano-Cusio-Ossola",
    "29": "Piacenza",
    "30": "Venezia",
    "31": "Treviso",
    "32": "Belluno",
    "33": "Udine, Pordenone",
    "34": "Trieste, Gorizia",
    "35": "Padova",
    "36": "Vicenza",
    "37": "Verona",
    "38": "Trento",
    "39": "Bolzano",
    "40": "Bologna",
    "41": "Modena",
    "42": "Reggio Emilia",
    "43": "Parma",
    "44": "Ferrara",
    "45": "Rovigo",
    "46": "Mantova",
    "47": "Forlì-Cesena, Rimini",
    "48": "Ravenna",
  },
  SUD: {
    "07": "Sassari",
    "08": "Nuoro",
    "09": "Cagliari, Oristano, Sud Sardegna",
    "64": "Teramo",
    "65": "Pescara",
    "66": "Chieti",
    "67": "L'Aquila",
    "70": "Bari",
    "71": "Foggia",
    "72": "Brindisi",
    "73": "Lecce",
    "74": "Taranto",
    "75": "Matera",
    "76": "Barletta-Andria-Trani",
    "80": "Napoli",
    "81": "Caserta",
    "82": "Benevento",
    "83": "Avellino",
    "84": "Salerno",
    "85": "Potenza",
    "86": "Campobasso, Isernia",
    "87": "Cosenza",
    "88": "Catanzaro, Crotone",
    "89": "Reggio Calabria, Vibo Valentia",
    "90": "Palermo",
    "91": "Trapani",
    "92": "Agrigento",
    "93": "Caltanissetta",
    "94": "Enna",
    "95": "Catania",
    "96": "Siracusa",
    "97": "Ragusa",
    "98": "Messina",
  },
};

/** In the order of the prefixes. */
export const CAP_PREFIXES: readonly CapPrefix[] = (["NORD", "CENTRO", "SUD"] as const)
  .flatMap((area) =>
    Object.entries(PROVINCES[area]).map(([prefix, provinces]) => ({ prefix, provinces, area })),
  )
  .sort((one, other) => Number(one.prefix) - Number(other.prefix));

const byPrefix = new Map(CAP_PREFIXES.map((one) => [one.prefix, one]));

/** Null for no Italian postal code. */
export function capPrefixOf(cap: string): CapPrefix | null {
  if (!/^\d{5}$/.test(cap) || cap === "00000") return null;
  return byPrefix.get(cap.slice(0, 2)) ?? null;
}
