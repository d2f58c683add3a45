/** Italian places of the demo, each with one of its postal codes (CAP), and people who do not exist. */

export interface Place {
  readonly city: string;
  readonly province: string;
  readonly cap: string;
}

const place = (city: string, province: string, cap: string): Place => ({ city, province, cap });

/** Destinations with enough deliveries for a benchmark from the first seconds on; the README asks for the first. */
export const BENCHMARK_PLACES = [
  place("Roma", "RM", "00184"),
  place("Milano", "MI", "20121"),
  place("Napoli", "NA", "80121"),
  place("Torino", "TO", "10121"),
] as const;

export const PLACES: readonly Place[] = [
  ...BENCHMARK_PLACES,
  place("Palermo", "PA", "90133"),
  place("Genova", "GE", "16121"),
  place("Bologna", "BO", "40121"),
  place("Firenze", "FI", "50122"),
  place("Bari", "BA", "70121"),
  place("Catania", "CT", "95131"),
  place("Venezia", "VE", "30121"),
  place("Verona", "VR", "37121"),
  place("Messina", "ME", "98122"),
  place("Padova", "PD", "35121"),
  place("Trieste", "TS", "34121"),
  place("Brescia", "BS", "25121"),
  place("Taranto", "TA", "74121"),
  place("Prato", "PO", "59100"),
  place("Parma", "PR", "43121"),
  place("Modena", "MO", "41121"),
  place("Reggio Calabria", "RC", "89125"),
  place("Perugia", "PG", "06121"),
  place("Ravenna", "RA", "48121"),
  place("Livorno", "LI", "57123"),
  place("Cagliari", "CA", "09124"),
  place("Foggia", "FG", "71121"),
  place("Rimini", "RN", "47921"),
  place("Salerno", "SA", "84121"),
  place("Sassari", "SS", "07100"),
  place("Latina", "LT", "04100"),
  place("Bergamo", "BG", "24121"),
  place("Trento", "TN", "38122"),
  place("Pescara", "PE", "65121"),
  place("Lecce", "LE", "73100"),
  place("Ancona", "AN", "60121"),
  place("Udine", "UD", "33100"),
  place("Bolzano", "BZ", "39100"),
  place("L'Aquila", "AQ", "67100"),
  place("Potenza", "PZ", "85100"),
  place("Cosenza", "CS", "87100"),
  place("Aosta", "AO", "11100"),
  place("Campobasso", "CB", "86100"),
];

export const HUBS: readonly Place[] = [
  place("Bologna Interporto", "BO", "40010"),
  place("Piacenza Le Mose", "PC", "29122"),
  place("Roma Fiano", "RM", "00065"),
  place("Landriano", "PV", "27015"),
];

export const STREETS = [
  "Via Roma",
  "Via Garibaldi",
  "Corso Italia",
  "Via Mazzini",
  "Via Dante Alighieri",
  "Viale Europa",
  "Via Giuseppe Verdi",
  "Piazza Cavour",
  "Via Marconi",
  "Via XX Settembre",
] as const;

export const FIRST_NAMES = [
  "Giulia",
  "Marco",
  "Francesca",
  "Luca",
  "Chiara",
  "Alessandro",
  "Martina",
  "Davide",
  "Elena",
  "Matteo",
] as const;

export const FAMILY_NAMES = [
  "Rossi",
  "Ferrari",
  "Bianchi",
  "Romano",
  "Colombo",
  "Ricci",
  "Marino",
  "Greco",
  "Conti",
  "Esposito",
] as const;
