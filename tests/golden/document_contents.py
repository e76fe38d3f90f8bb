"""What the golden documents say: the same kind of content in several languages, written into every kind of file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    heading: str
    paragraphs: tuple[str, ...]
    #: the first row has the labels of the columns, the first cell of each other row is its label
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Content:
    name: str
    language: str
    title: str
    author: str
    sections: tuple[Section, ...]
    links: tuple[str, ...]
    #: can be drawn with the 14 fonts that every PDF reader has
    latin: bool = True

    @property
    def tables(self) -> list[tuple[tuple[str, ...], ...]]:
        return [section.table for section in self.sections if section.table]


HARBOUR = Content(
    name="harbour",
    language="en",
    title="Harbour report 2024",
    author="Ida Roe",
    links=("https://harbour.test/report", "https://harbour.test/tides?year=2024"),
    sections=(
        Section(
            "Traffic",
            (
                "The harbour counted more boats than in any year since the bridge was opened, and fewer accidents.",
                "Fishing boats lead, as always; the number of house boats doubled within three summers.",
            ),
            (
                ("Kind", "Arrivals", "Share", "Fees"),
                ("Fishing", "4,210", "52%", "63,150"),
                ("Ferries", "2,190", "27%", "88,400"),
                ("House boats", "610", "8%", "12,200"),
                ("Yachts", "1,050", "13%", "41,975"),
            ),
        ),
        Section(
            "Energy",
            (
                "Shore power replaced diesel at two of five quays.",
                "The new turbine was out of service for eleven days in March because of a bird nest.",
            ),
            (
                ("Quay", "Diesel, litres", "Power, kWh"),
                ("North", "1,800", "940"),
                ("South", "0", "22,600"),
            ),
        ),
    ),
)

BAECKEREI = Content(
    name="baeckerei",
    language="de",
    title="Jahresbericht der Bäckerei Öhmchen",
    author="Jürgen Öhmchen",
    links=("https://oehmchen.test/prüfbericht.pdf", "mailto:brot@oehmchen.test"),
    sections=(
        Section(
            "Umsätze",
            (
                "Größere Brötchen brachten höhere Erlöse, obwohl die Mehlpreise überdurchschnittlich stiegen.",
                "Süßes Gebäck verkaufte sich nur am Wochenende: „Montags fastet die Straße“, sagt die Chefin.",
            ),
            (
                ("Sorte", "Stück", "Erlös in €"),
                ("Roggenbrot", "18.400", "62.560,00"),
                ("Brötchen", "210.000", "84.000,50"),
                ("Käsekuchen", "3.150", "9.450,75"),
            ),
        ),
        Section("Ausblick", ("Ein dritter Ofen soll bis März 2025 angeschlossen sein.",)),
        Section("Prüfung", ("Die Prüferin fand keine Einwände – außer Mehlstaub.",)),
    ),
)

CLINIQUE = Content(
    name="clinique",
    language="fr",
    title="Bilan de la clinique vétérinaire",
    author="Anaïs Lefèvre",
    links=("https://clinique.test/", "https://clinique.test/horaires#été"),
    sections=(
        Section(
            "Consultations",
            (
                "Les chats ont dépassé les chiens pour la première fois depuis l’ouverture du cabinet.",
                "Une tortue de quarante-deux ans a reçu une prothèse imprimée en trois dimensions.",
                "Les urgences de nuit restent assurées par deux praticiennes à tour de rôle.",
            ),
            (
                ("Espèce", "2022", "2023", "2024"),
                ("Chats", "812", "930", "1 104"),
                ("Chiens", "1 020", "998", "975"),
                ("Reptiles", "14", "31", "47"),
                ("Rongeurs", "205", "199", "240"),
                ("Oiseaux", "66", "58", "71"),
            ),
        ),
        Section("Personnel", ("L’équipe compte onze personnes, dont trois apprenties.",)),
    ),
)

TEAGARDEN = Content(
    name="teagarden",
    language="ja",
    title="茶園の年次報告",
    author="山口みどり",
    links=("https://chaen.test/report",),
    latin=False,
    sections=(
        Section(
            "収穫",
            (
                "一番茶の収穫は四月二十日に始まり、例年より五日早く終わりました。",
                "霜の害は北側の畑だけに見られました。",
            ),
            (("畑の名", "面積", "収量"), ("北側", "12アール", "310キロ"), ("南側", "20アール", "705キロ")),
        ),
        Section("販売", ("直売所の売り上げは前の年の一・二倍になりました。",)),
    ),
)

CONTENTS = (HARBOUR, BAECKEREI, CLINIQUE, TEAGARDEN)
