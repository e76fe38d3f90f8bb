"""Bodies that declare no encoding: UTF-8 by its bytes, other encodings by a detector that reads little."""

from __future__ import annotations

import pytest

from curtsy.content.charset import charset_of, decode
from curtsy.content.charset_guess import SAMPLE_BYTES, guess
from curtsy.content.document import Document

_TEXTS = {
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy. Včera večer jsme šli domů až po setmění, protože pršelo.",
    "pl": "Pchnąć w tę łódź jeża lub ośm skrzyń fig. Wczoraj wieczorem wróciliśmy późno, bo padał śnieg i było ślisko.",
    "ru": "Съешь же ещё этих мягких французских булок, да выпей чаю. Вчера вечером мы вернулись домой поздно.",
    "uk": "Щастям б'єш жук їх глицю в фон й ґедзь пріч. Учора ввечері ми повернулися додому пізно, бо йшов дощ.",
    "el": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Χθες το βράδυ γυρίσαμε αργά στο σπίτι, γιατί έβρεχε πολύ.",
    "tr": "Pijamalı hasta yağız şoföre çabucak güvendi. Dün akşam eve geç döndük, çünkü çok yağmur yağıyordu.",
    "he": "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה. אתמול בערב חזרנו הביתה מאוחר כי ירד גשם.",
    "ar": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. عدنا أمس مساء إلى البيت متأخرين بسبب المطر.",
    "lt": "Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą. Vakar vakare grįžome namo vėlai.",
    "th": "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน เมื่อวานเย็นเรากลับบ้านช้าเพราะฝนตก",
    "ja": "いろはにほへと、ちりぬるを。昨日の夜は雨が降ったので、私たちは遅く家に帰りました。",
    "ko": "다람쥐 헌 쳇바퀴에 타고파. 어제 저녁에는 비가 와서 우리는 집에 늦게 돌아왔습니다.",
    "zh": "天地玄黄，宇宙洪荒。昨天晚上因为下雨，我们很晚才回到家里。今天天气很好。",
    "tw": "天地玄黃，宇宙洪荒。昨天晚上因為下雨，我們很晚才回到家裡。今天天氣很好。",
    "de": "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg. Gestern kamen wir wegen des Regens spät zurück.",
    "fr": "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis. Hier soir, nous sommes rentrés tard.",
}


def _page(text: str) -> str:
    items = "".join(f'<li><a href="/section/{n}.html">{text}</a></li>' for n in range(4))
    return f"<!doctype html><html><head><title>{text}</title></head><body><ul>{items}</ul><p>{text}</p></body></html>"


@pytest.mark.parametrize(
    ("language", "charset"),
    [
        ("cs", "windows-1250"), ("cs", "iso-8859-2"), ("pl", "windows-1250"), ("pl", "iso-8859-2"),
        ("ru", "windows-1251"), ("ru", "koi8-r"), ("ru", "iso-8859-5"), ("ru", "cp866"), ("uk", "windows-1251"),
        ("uk", "koi8-u"), ("el", "windows-1253"), ("el", "iso-8859-7"), ("tr", "windows-1254"),
        ("he", "windows-1255"), ("ar", "windows-1256"), ("ar", "iso-8859-6"), ("lt", "windows-1257"), ("th", "cp874"),
        ("ja", "cp932"), ("ja", "euc_jp"), ("ja", "iso2022_jp"), ("ko", "cp949"), ("zh", "gb18030"),
        ("tw", "big5hkscs"), ("de", "windows-1252"), ("fr", "windows-1252"),
    ],
)  # fmt: skip
def test_a_page_in_an_old_encoding_is_read_without_a_declaration(language: str, charset: str) -> None:
    page = _page(_TEXTS[language])
    body = page.encode(charset)
    assert decode(body, charset_of(body, "text/html")) == page


@pytest.mark.parametrize("language", _TEXTS)
def test_utf8_needs_no_declaration(language: str) -> None:
    body = _page(_TEXTS[language]).encode()
    assert guess(body) == "utf-8"
    # Cut within a character, and with a wrong byte in a template.
    cut = body[: next(at for at in range(len(body) - 1, 0, -1) if body[at] >= 0x80)]
    assert guess(cut) == "utf-8"
    assert guess(body.replace(b"</body>", b"\xa9</body>")) == "utf-8"


@pytest.mark.parametrize("sign", ["’", "© 2024", "café", "5 €", "£ 20", "20 °C", "naïve", "Acme®", "Müller", "½", "–"])
def test_a_few_signs_in_an_english_page_are_windows_1252(sign: str) -> None:
    page = _page("The quick brown fox jumps over the lazy dog. ").replace("</p>", f"and {sign} too</p>")
    body = page.encode("windows-1252")
    assert decode(body, guess(body)) == page


def test_one_byte_at_the_end_does_not_make_a_page_utf8() -> None:
    assert guess(b"<p>a small caf\xe9") == "windows-1252"


def test_the_country_of_the_host_tells_similar_encodings_apart() -> None:
    text = "A kiadás dátuma és a szerző neve kötelező mező, kérjük töltse ki. "
    body = _page(text).encode("windows-1250")
    assert Document.parse(body, "text/html", "https://pelda.hu:8080/x").title == text.strip()


def test_the_detector_reads_from_the_first_byte_beyond_ascii_on() -> None:
    lead = b"<script>" + b"var a = 1;\n" * SAMPLE_BYTES + b"</script>"
    assert guess(lead + _page(_TEXTS["ru"]).encode("koi8-r")) in ("koi8-r", "koi8-u")


def test_what_lies_beyond_the_sample_does_not_count() -> None:
    russian = _page(_TEXTS["ru"]).encode("koi8-r")
    body = russian * (SAMPLE_BYTES // len(russian) + 1) + _TEXTS["zh"].encode("gb18030") * 10_000
    assert guess(body) in ("koi8-r", "koi8-u")  # the same letters
