"""Words with a meaning for grounding, in the most common languages."""

from __future__ import annotations

import unicodedata


def _set(text: str) -> frozenset[str]:
    """Words in their folded form."""
    return frozenset(unicodedata.normalize("NFKD", text).split())


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: negate a statement
NEGATIONS = _set("""
    not no never neither nor without cannot none nothing hardly isn't aren't wasn't weren't don't doesn't didn't hasn't
    haven't hadn't can't won't wouldn't couldn't shouldn't nicht kein keine keinen keiner keinem nie niemals ohne sans
    jamais pas aucun aucune sin nunca senza non ikke inte zonder niet geen
""")

#: make a statement narrower, wider or less certain
QUALIFIERS = _set("""
    will would shall may might could should must plan plans planned planning aim aims hope hopes intend intends want
    wants try tries target targets goal goals almost nearly about roughly approximately around partly mostly some most
    many few all every each any up least half only except unless until if more less fewer over under above below before
    after second third fourth next wrongly falsely allegedly reportedly supposedly former formerly unlike virtually
    practically proposed expected estimated
    soll sollen wird werden will wollen kann können fast beinahe etwa rund alle jede jeder manche viele nur mehr weniger
""")

#: exchange subject and object
AGENTS = _set("by von durch par por da door av af")

#: present and past of `be`
IS, WAS = _set("is are am ist sind est sont es son"), _set("was were war waren était étaient era eran")

#: may be added or missing in a near copy
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

#: nouns that make `5m` a count and not a length
COUNTED = _list("""
    accounts citizens clients consumers customers dollars downloads employees euros fans followers homes households
    inhabitants installs items jobs listeners lives members orders passengers patients people players pounds products
    readers residents streams students subscribers trees units users viewers views visitors visits votes workers
""")

#: ISO 4217 codes of common currencies
CURRENCIES = _set("""
    aed ars aud bgn brl cad chf clp cny cop czk dkk egp eur gbp hkd huf idr ils inr isk jpy kes krw mxn myr ngn nok nzd
    pen php pln ron rub sar sek sgd thb try twd uah usd vnd zar
""")

#: units that may follow a number without a space
UNITS = _set("""
    k m mn mio bn b mrd tn t kt mt g kg mg km cm mm kw mw gw tw kwh mwh gwh twh wh w kwp mwp ha l ml hl m2 m3 m² m³ km2
    km² h s ms min d a c f eur usd gbp chf sek nok dkk kr zł kč pln czk x pp pct ft lb lbs oz yd mi mph
""")

#: what models write if they found nothing
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

#: of the twelve months, in English, German, French, Spanish, Italian, Dutch, Portuguese, Swedish, Polish, Finnish,
#: Czech and Russian
MONTHS = tuple(
    _list(names)
    for names in (
        "january jan januar jänner janvier enero gennaio januari janeiro jän janv stycznia tammikuuta ledna января",
        "february feb februar février fevrier febrero febbraio februari fevereiro févr lutego helmikuuta února февраля",
        "march mar märz maerz mars marzo maart março mrz marca maaliskuuta března марта",
        "april apr avril abril aprile avr kwietnia huhtikuuta dubna апреля",
        "may mai mayo maggio mei maio maj maja toukokuuta května мая",
        "june jun juni juin junio giugno junho czerwca kesäkuuta června июня",
        "july jul juli juillet julio luglio julho juil lipca heinäkuuta července июля",
        "august aug août aout agosto augustus augusti sierpnia elokuuta srpna августа",
        "september sep sept septembre septiembre settembre setembro września syyskuuta září сентября",
        "october oct oktober okt octobre octubre ottobre outubro października lokakuuta října октября",
        "november nov novembre noviembre novembro listopada marraskuuta listopadu ноября",
        "december dec dezember dez décembre decembre diciembre dicembre dezembro desember déc grudnia joulukuuta"
        " prosince декабря",
    )
)
