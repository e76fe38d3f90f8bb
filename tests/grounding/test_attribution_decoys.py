"""Sentences that only look like deeds of the organization, and deeds that look like those of others: five languages."""

from __future__ import annotations

import pytest

from curtsy.grounding import attribution


@pytest.mark.parametrize(
    "sentence",
    [
        "We halved the water use of our laundry between 2019 and 2023.",
        "All of our depots run on wind power since 2021.",
        "Unsere Werkstatt heizt seit 2020 mit Holz aus der Region.",
        "Wir haben 2023 alle Lieferwagen durch elektrische ersetzt.",
        "Notre atelier recycle 80 pour cent de ses chutes.",
        "Nous avons remplacé 40 chaudières en 2022.",
        "Nuestra planta usa energía solar desde 2019.",
        "Reciclamos el 70 por ciento de nuestros envases.",
        "当社の工場は2020年から太陽光で動いています。",
        "私たちは2022年に包装のプラスチックを40%減らしました。",
        "We offset nothing: in 2021 we removed 60 tonnes of carbon from our own supply chain",
        "Thanks to our new boiler, we burn 12 percent less gas.",
        "Dank unserer Wärmepumpe sparen wir 20 Prozent Gas.",
        "Gracias a nuestra caldera ahorramos un 12 por ciento de gas.",
        "Grâce à notre chaudière, nous brûlons 12 pour cent de gaz en moins.",
    ],
)
def test_deeds_of_ones_own_are_accepted(sentence: str) -> None:
    assert attribution.why_not_own(sentence) == ""


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Our landlord installed 300 solar panels on the roof next door.", "other_subject"),
        ("Thanks to our software, retailers waste 25 percent less food.", "other_subject"),
        ("Carriers that book with us emit 10 percent less.", "other_subject"),
        ("The city of Elmford planted 2,000 trees last year.", "other_subject"),
        ("Dank unserer Technik sparen Hotels 30 Prozent Wasser.", "other_subject"),
        ("Unser Vermieter hat 2022 eine Solaranlage gebaut.", "other_subject"),
        ("Grâce à notre outil, les communes économisent 20 pour cent d'énergie.", "other_subject"),
        ("Notre partenaire Verdi a planté 5 000 arbres.", "other_subject"),
        ("Gracias a nuestra aplicación, los hoteles ahorran un 15 por ciento de agua.", "other_subject"),
        ("Nuestro socio Verdal recicló 20 toneladas.", "other_subject"),
        ("パートナー企業は電力を20%削減しました。", "other_subject"),
        ("導入企業では廃棄物が30%減りました。", "other_subject"),
        ('"They cut our waste by half", says Ida Quill of Harbor Foods.', "quotation"),
        ('Ida Quill says: "We saved 40 percent of our energy."', "quotation"),
        ("„Wir sparen 30 Prozent Strom“, sagt Jens Adler.", "quotation"),
        ("«Nous avons réduit nos déchets de moitié», raconte Luc Morin.", "quotation"),
        ("«Ahorramos un 20 por ciento», cuenta Ana Ruiz.", "quotation"),
        ("「電気代が半分になりました」と山田さんは話します。", "quotation"),
        ("A firm of our size could save 50 tonnes of CO2 a year.", "hypothetical"),
        ("Imagine we ran every van on hydrogen.", "hypothetical"),
        ("Were we to move, our emissions would fall by 20 percent.", "hypothetical"),
        ("Würden wir umziehen, sänken unsere Emissionen um 20 Prozent.", "hypothetical"),
        ("Si nous changions de four, nous économiserions 12 tonnes.", "hypothetical"),
        ("Si cambiáramos de flota, ahorraríamos 30 toneladas.", "hypothetical"),
        ("もし全車を電化すれば、CO2は30%減るでしょう。", "hypothetical"),
        ("We have never bought carbon credits.", "negated"),
        ("None of our sites is certified to ISO 14001.", "negated"),
        ("It is untrue that we reduced our waste by 40 percent.", "negated"),
        ("Keiner unserer Standorte ist nach ISO 14001 zertifiziert.", "negated"),
        ("Wir haben noch nie Ökostrom bezogen.", "negated"),
        ("Aucun de nos sites n'est certifié ISO 14001.", "negated"),
        ("Ninguna de nuestras plantas tiene certificado ambiental.", "negated"),
        ("当社は再生可能エネルギーを使用していません。", "negated"),
        ("We aim to halve our emissions by 2030.", "plan"),
        ("Our target is 100 percent green power in 2028.", "plan"),
        ("We are working towards zero waste.", "plan"),
        ("Unser Ziel: 50 Prozent weniger Abfall bis 2030.", "plan"),
        ("Wir möchten unsere Emissionen halbieren.", "plan"),
        ("Notre objectif est de réduire nos émissions de 40 pour cent.", "plan"),
        ("Nuestro objetivo es reducir las emisiones un 30 por ciento.", "plan"),
        ("当社は2030年の排出量ゼロを目指しています。", "plan"),
        ("Until 2018 we bought all our power from wind farms.", "past"),
        ("We no longer run our tree planting program.", "negated"),
        ("Our certificate expired in 2020.", "past"),
        ("Bis 2018 bezogen wir Strom aus Windkraft.", "past"),
        ("Früher haben wir 90 Prozent unseres Glases recycelt.", "past"),
        ("Autrefois, nous recyclions tout notre verre.", "past"),
        ("Antes reciclábamos todo nuestro vidrio.", "past"),
        ("以前は当社の電力はすべて風力でした。", "past"),
        ("We missed our goal of cutting waste by 20 percent.", "plan"),
        ("Our franchise owners planted 300 trees.", "other_subject"),
        ("Nuestros vecinos reciclan el 40 por ciento.", "other_subject"),
        ("Unsere Mieter sparen 15 Prozent Heizkosten.", "other_subject"),
        ("It is a myth that we plant a tree for every order.", "negated"),
        ("We are exploring a switch to green power.", "plan"),
        ("Nous étudions le passage à l'énergie solaire.", "plan"),
    ],
)
def test_decoys_are_refused_with_their_reason(sentence: str, reason: str) -> None:
    assert attribution.why_not_own(sentence) == reason
