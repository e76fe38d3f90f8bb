"""Words that grounding must know, in the languages that it meets most."""

from __future__ import annotations

import unicodedata


def _set(text: str) -> frozenset[str]:
    """Words as they are in a folded text."""
    return frozenset(unicodedata.normalize("NFKD", text).split())


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: say that something is not so
NEGATIONS = _set("""
    not no never neither nor without cannot none nothing hardly isn't aren't wasn't weren't don't doesn't didn't hasn't
    haven't hadn't can't won't wouldn't couldn't shouldn't nicht kein keine keinen keiner keinem nie niemals ohne sans
    jamais pas aucun aucune sin nunca senza non ikke inte zonder niet geen
""")

#: make a saying narrower, wider or less certain
QUALIFIERS = _set("""
    will would shall may might could should must plan plans planned planning aim aims hope hopes intend intends want
    wants try tries target targets goal goals almost nearly about roughly approximately around partly mostly some most
    many few all every each any up least half only except unless until if more less fewer over under above below before
    after
    soll sollen wird werden will wollen kann können fast beinahe etwa rund alle jede jeder manche viele nur mehr weniger
""")

#: a copy may have them or lack them
LIGHT = _set("""
    a an and are as at be been being but by for from had has have he her his i in into is it its of on or our own she so
    some such than that the their them then there these they this those to too under until up upon us was we were what
    when where which while who whose will with would you your also both each every all any can may do does did
    der die das den dem des ein eine einen einem einer und oder aber mit von zu zum zur im in am an auf für ist sind war
    wir unsere unser haben hat hatte hatten sich es sie
    le la les un une des du de et ou à au aux en est sont nous notre nos el los las y o con por para
""")

#: amounts that are not written in digits
AMOUNTS = _set("""
    hundred thousand million millions billion billions trillion dozen half third quarter double twice triple
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety
""")

ONES = _list("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
""")
TENS = _list("twenty thirty forty fifty sixty seventy eighty ninety")

#: units whose letters may follow a number without a blank
UNITS = _set("""
    k m mn mio bn b mrd tn t kt mt g kg mg km cm mm kw mw gw tw kwh mwh gwh twh wh w kwp mwp ha l ml hl m2 m3 m² m³ km2
    km² h s ms min d a c f eur usd gbp chf sek nok dkk x pp pct
""")

#: what models write where they found nothing
NOTHING = frozenset(
    line.strip()
    for line in """
    n/a
    na
    none
    null
    nil
    unknown
    unspecified
    undefined
    string
    tbd
    not applicable
    not available
    not specified
    not stated
    not given
    not found
    not provided
    not mentioned
    -
    --
    ?

""".splitlines()
)

#: of the twelve months, in English, German, French, Spanish, Italian, Dutch, Portuguese and Swedish
MONTHS = tuple(
    _list(names)
    for names in (
        "january jan januar jänner janvier enero gennaio januari janeiro jän janv",
        "february feb februar février fevrier febrero febbraio februari fevereiro févr",
        "march mar märz maerz mars marzo maart março mrz",
        "april apr avril abril aprile avr",
        "may mai mayo maggio mei maio maj",
        "june jun juni juin junio giugno junho",
        "july jul juli juillet julio luglio julho juil",
        "august aug août aout agosto augustus augusti",
        "september sep sept septembre septiembre settembre setembro",
        "october oct oktober okt octobre octubre ottobre outubro",
        "november nov novembre noviembre novembro",
        "december dec dezember dez décembre decembre diciembre dicembre dezembro desember déc",
    )
)
