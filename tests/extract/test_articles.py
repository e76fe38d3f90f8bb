"""Bylines and dates of articles; tests/golden/judge/articles.toml has whole pages."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.extract import article_page, record_claims
from curtsy.extract.bylines import is_placeholder, names_in
from curtsy.grounding import judge, schema


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("By Nora Field", ["Nora Field"]),
        ("by Nora Field and Tom de Wit, staff writers", ["Nora Field", "Tom de Wit"]),
        ("Von Käthe Brandt | 3. März 2023", ["Käthe Brandt"]),
        ("Written by Jo Marsh on 5 May", ["Jo Marsh"]),
        ("文：山田花子", ["山田花子"]),
        ("Автор: Анна Белова", ["Анна Белова"]),
        ("澎湃新闻记者 贺梨萍", ["贺梨萍"]),
        ("新华社记者 贺梨萍摄", []),
        ("Written by Nora Field Medically reviewed by Ann Leaf, MD", ["Nora Field"]),
        ("Text: Nora Field Photos: Tom Alder August 23, 2004", ["Nora Field"]),
        ("Fotos: Karl Braun, Text: Anna Wald", ["Anna Wald"]),
        ("Von Anna Wald (Text) und Karl Braun (Fotos)", ["Anna Wald"]),
        ("Text und Fotos: Anna Wald", ["Anna Wald"]),
        ("do 25 mei 2023, 14:32 – Door Marijke Veld", ["Marijke Veld"]),
        ("May 4, 2024 by Nora Field", ["Nora Field"]),
        ("Built in 1962 by Harland Wolff", []),
        ("Por Ana Souza, de São Paulo", ["Ana Souza"]),
        ("文・山岸千秋　写真・大河内誠", ["山岸千秋"]),
        ("2022年11月03日 10:12 来源：江湾日报 记者：顾晓岚", ["顾晓岚"]),
        ("（记者 顾晓岚）", ["顾晓岚"]),
        ("윤서진·김철수 기자", ["윤서진", "김철수"]),
        ("한들일보 윤서진 기자 yoon@a.test", ["윤서진"]),
        ("記者陳怡君／台中報導", ["陳怡君"]),
        ("本报记者 顾晓岚 报道", ["顾晓岚"]),
        ("责任编辑：孟凡", []),
        ("By Friday the choir knew it.", []),
        ("Read more about Nora", []),
        ("", []),
    ],
)
def test_the_names_of_a_byline(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_one_word_is_a_name_only_where_a_mark_says_so() -> None:
    assert names_in("Nora") == []
    assert names_in("Nora", marked=True) == ["Nora"]


@pytest.mark.parametrize(
    "name",
    [
        "admin",
        "Administrator",
        "{{ author }}",
        "https://a.test/x",
        "Harbor Post",
        "harborpost",
        "webmaster 2",
        "",
        "12",
    ],
)
def test_placeholders_are_no_authors(name: str) -> None:
    assert is_placeholder(name, ["Harbor Post"])


def test_people_are_authors() -> None:
    assert not is_placeholder("Nora Field", ["Harbor Post"])


def _record(html: str, **properties: Any) -> dict[str, Any]:
    made = schema.inline({"type": "object", "properties": properties})
    page = record_claims.sources_of("1", "https://a.test/x", html.encode(), "text/html; charset=utf-8")
    return judge.assemble(made, judge.settle(made, record_claims.extract(made, [page]).claims))


ARTICLE = """<title>Fog</title><h1>Fog</h1><p class="byline">By Nora Field and Tom Alder</p><p>5 May 2024</p>
<p>It was foggy.</p>"""


def test_schemas_of_users_get_bylines_and_dates_by_the_names_of_their_values() -> None:
    found = _record(
        ARTICLE, title={"type": "string"}, author={"type": "string"}, date={"type": "string", "format": "date"}
    )
    assert found == {"title": "Fog", "author": "Nora Field and Tom Alder", "date": "2024-05-05"}


def test_a_date_without_an_article_around_it_is_not_searched() -> None:
    assert _record(ARTICLE, date={"type": "string", "format": "date"}, seats={"type": "integer"}) == {}


_DATE = {"type": "string", "format": "date"}
_TITLE = "<title>Canal Post: The lock at Elm Bridge is closed</title>"
_HEAD = "<h1>The lock at Elm Bridge is closed</h1>"
_BODY = "<p>Boats wait above the bridge until the gate is mended.</p>" * 12


@pytest.mark.parametrize(
    ("html", "day"),
    [
        (f"{_HEAD}{_BODY}<p>Published: 5 May 2024</p>", "2024-05-05"),
        (f"{_HEAD}{_BODY}<aside><dl><dt>Datum</dt><dd>05.05.2024</dd></dl></aside>",
         "2024-05-05"),
        (f"{_HEAD}{_BODY}<table><tr><td>发布日期：2024-05-05</table>", "2024-05-05"),
        (f"{_HEAD}{_BODY}<div class=post-footer><p class=meta>5 May 2024</p></div>",
         "2024-05-05"),
        # blogs whose posts are widgets with an h3
        (f"<div class='widget Blog'><h2 class=date-header>Sunday, May 5, 2024</h2><h3>The lock at Elm Bridge is closed"
         f"</h3>{_BODY}</div>", "2024-05-05"),
        # the date of today far above
        (f"<p class=date>7 June 2024</p>{'<p>Menu</p>' * 9}<h1>The lock at Elm Bridge is closed</h1><p>5 May 2024</p>",
         "2024-05-05"),
        # the date of today right above
        (f"<div class=date-box>Fri, 7 June 2024</div><p>News</p>{_HEAD}<p>Nora Field<p>Sun, 5 May 2024</p>{_BODY}",
         "2024-05-05"),
        (f"<p>5 May 2024</p>{_HEAD}{_BODY}", "2024-05-05"),
        (f"<time>5 May 2024</time>{_HEAD}<p>7 June 2024</p>{_BODY}", "2024-05-05"),
        (f"{_HEAD}<p><b>Nora Field</b><span>May 5, 2024</span></p>", "2024-05-05"),
        (f"{_HEAD}{_BODY}<p>Source: | Published: 5 May 2024 | Views: 7</p>", "2024-05-05"),
        (f"<meta name=pubdate content='Thu, 16 May 2024 10:00:00 GMT'>{_HEAD}", "2024-05-16"),
        (f"<meta property='article:published_time' content='Sun May 05 12:45:00 EDT 2024'>{_HEAD}", "2024-05-05"),
        # the update comes first in the element of the day of publication
        (f"{_HEAD}<span class=posted-on><time class=updated>June 7, 2024</time><time class='entry-date published'>"
         f"May 5, 2024</time></span>{_BODY}", "2024-05-05"),
        (f"{_HEAD}<p><time datetime='2024-05-04T05:07-0400'>05/04/24 05:07 AM EDT</time></p>{_BODY}", "2024-05-04"),
        # in an aside, in the box of the author, in the footer of an article
        (f"{_HEAD}<aside><ul><li>News<li class=meta>5 May 2024<li>7 minutes</ul></aside>{_BODY}", "2024-05-05"),
        (f"{_HEAD}<div class=author-share><b>Nora Field</b><i>2024-05-05 14:27</i></div>{_BODY}", "2024-05-05"),
        (f"{_HEAD}{_BODY}<footer><b class=post-date>5 May 2024</b> Tags: fog</footer>", "2024-05-05"),
        (f"{_HEAD}<ul><li><meta itemprop=datePublished content=2024-05-05>May</ul>", "2024-05-05"),
        (f"{_HEAD}{_BODY}<p>This entry was posted in Canals on 5 May 2024 by Nora and is filed under Canals, Fog and"
         f" Elm</p>", "2024-05-05"),
        (f"{_HEAD}{_BODY}<p>Dieser Artikel wurde am 5. Mai 2024 um 14:48 von Nora geschrieben.</p>", "2024-05-05"),
        (f"{_HEAD}<p>May 5, 2024 at 8 AM | categories: Canals, Locks, Fog, Bridges, Elm trees, Barges</p>{_BODY}",
         "2024-05-05"),
        # microformats name the day of publication so if there is no other
        (f"{_HEAD}<p class=updated>May 5, 2024</p>{_BODY}", "2024-05-05"),
        # without a heading, the only line that is a date
        (f"<p>2024.05.05</p>{_BODY}", "2024-05-05"),
        (f"<p>2024.05.05</p>{_BODY}<p>2024.05.06</p>", None),
        (f"{_HEAD}<p class=updated>Updated May 5, 2024</p>{_BODY}", None),
        (f"{_HEAD}{_BODY}<footer><b class=post-date>5 May 2024</b><b class=post-date>7 May 2024</b></footer>", None),
        (f"{_HEAD}{_BODY}<div class=related><b class=post-date>5 May 2024</b></div>", None),
        # two dates with labels, and one of a comment or a teaser
        (f"{_HEAD}{_BODY}<p>Date: 5 May 2024</p><p>Date: 9 May 2024</p>", None),
        (f"{_HEAD}{_BODY}<div class=comments><p>Posted on 5 May 2024</p></div>", None),
        (f"{_HEAD}{_BODY}<div class=related><p>Published: 5 May 2024</p></div>", None),
        (f"{_HEAD}{_BODY}<p>Updated: 5 May 2024</p>", None),
    ],
)  # fmt: skip
def test_dates_that_are_not_next_to_the_heading(html: str, day: str | None) -> None:
    found = _record(_TITLE + html, headline={"type": "string"}, published=_DATE)
    assert found.get("published") == day


def test_the_page_is_walked_once_for_all_rungs(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []
    read = article_page.prose.read

    def counted(*given: Any, **named: Any) -> Any:
        walks.append(1)
        return read(*given, **named)

    monkeypatch.setattr(article_page.prose, "read", counted)
    made = schema.load("article")
    html = f"<meta name=author content='Nora Field'>{ARTICLE}"
    page = record_claims.sources_of("1", "https://a.test/x", html.encode(), "text/html; charset=utf-8")
    assert page.article is not None
    before = len(walks)
    assert record_claims.extract(made, [page]).claims
    assert len(walks) - before == 1


@pytest.mark.parametrize(
    ("html", "names"),
    [
        (f"{_HEAD}<p>Von Markus Adler, Berlin</p>", ["Markus Adler"]),
        (f"{_HEAD}<p class=submitted>Gespeichert von <b class=username>rasos</b> am 24. Juli 2017</p>", ["rasos"]),
        (f"{_HEAD}<a rel=author href=/u>nora_f01</a>", ["nora_f01"]),
        (f"{_HEAD}<a rel=author href=/u>admin</a>", []),
        (f"{_HEAD}{_BODY}<ul><li><strong>Author</strong> Ben Marsh</li></ul>", ["Ben Marsh"]),
        (f"{_HEAD}{_BODY}<p>Author: Ben Marsh</p><p>Author: Ida Quill</p>", []),
        (f"{_HEAD}{_BODY}<div class=comments><p>Posted by Ben Marsh</p></div>", []),
        (f"{_HEAD}<p class=author>证券时报网</p>", []),
        (f"<meta name=cse_author content='Nora Field'>{_HEAD}", ["Nora Field"]),
        (f"<meta itemprop=author content='Nora Field'>{_HEAD}", ["Nora Field"]),
        (f"<meta property=author content='Nora Field'>{_HEAD}", ["Nora Field"]),
        (f"<meta name=author content=证券时报网>{_HEAD}", []),
        # elements without a blank between them
        (f"{_HEAD}<a class=author>Nora Field</a><span>May 5, 2024</span>", ["Nora Field"]),
        (f"{_HEAD}<div class=byline><span>Nora Field</span><span>May 5, 2024</span></div>", ["Nora Field"]),
        (f"{_HEAD}<p><span>By Nora Field</span><span>May 5, 2024</span></p>", ["Nora Field"]),
        (f"{_HEAD}<p class=byline><b>N</b>ora Field</p>", ["Nora Field"]),
        # a byline of several lines
        (f"{_HEAD}<div class=author>Nora Field<div>Editor</div></div>", ["Nora Field"]),
        (f"{_HEAD}<div class=authors><p>Nora Field<p>Tom Alder</div>", ["Nora Field", "Tom Alder"]),
        (f"{_HEAD}<div class=author><p>By<p>Nora Field</div>", ["Nora Field"]),
        (f"{_HEAD}<div class=author><p>Account<p>You are logged in</div>", []),
        (f"{_HEAD}<p data-component=Byline>Nora Field</p>", ["Nora Field"]),
        (f"{_HEAD}<p class=firma>Nora Field | Madrid</p>", ["Nora Field"]),
        # the box of the author has buttons
        (f"{_HEAD}<div class=author-card><a class=author-card__name>Nora Field</a></div>", ["Nora Field"]),
        (f"{_HEAD}<div id=byline>[田中宏昌，Harbor]</div>", ["田中宏昌"]),
        (f"{_HEAD}<p class=byline>By Nora (N.F.) Field</p>", ["Nora (N.F.) Field"]),
        # no months, no companies
        (f"{_HEAD}<p class=byline>Nora Field Nov 29, 2024</p>", ["Nora Field"]),
        (f"{_HEAD}<time class=byline>Dec 5, 2024</time>", []),
        (f"<meta name=author content='Alder Media Inc.'>{_HEAD}", []),
        # a link to the page of its author; such links far away are those of teasers
        (f"{_HEAD}<p><a href=/author/nora-field>Nora Field</a></p>{_BODY}", ["Nora Field"]),
        (f"{_HEAD}<p><a href=/people/1>Nora Field</a> and <a href=/people/2>Tom Alder</a></p>{_BODY}",
         ["Nora Field", "Tom Alder"]),
        (f"{_HEAD}<p><a href=/author/>All Authors</a></p>{_BODY}", []),
        (f"{_HEAD}{_BODY}{_BODY}<p><a href=/author/nora-field>Nora Field</a></p>", []),
        (f"{_HEAD}<div class=related><a href=/author/nora-field>Nora Field</a></div>{_BODY}", []),
        # an editor, a label, a heading
        (f"{_HEAD}<p class=author>责任编辑：张迪</p>", []),
        (f"{_HEAD}<p class=author>发布于</p>", []),
        (f"{_HEAD}<p class=author>相关文章</p>", []),
        # the byline has the usual order of the names
        (f"<meta name=author content='Field, Nora'>{_HEAD}<p class=author>Nora Field</p>", ["Nora Field"]),
    ],
)  # fmt: skip
def test_authors_without_a_byline_next_to_the_heading(html: str, names: list[str]) -> None:
    authors = {"type": "array", "items": {"type": "string"}}
    found = _record(_TITLE + html, headline={"type": "string"}, authors=authors, published=_DATE)
    assert found.get("authors", []) == names


def test_vague_dates_of_metadata_do_not_contradict_the_day_of_publication() -> None:
    html = """<meta property="article:published_time" content="2020-01-03T09:48:24Z">
    <meta name="date" content="2020-01-06T09:22:36Z"><meta property="article:modified_time" content="2020-01-06">"""
    found = _record(_TITLE + html + _HEAD, headline={"type": "string"}, published=_DATE, modified=_DATE)
    assert (found["published"], found["modified"]) == ("2020-01-03", "2020-01-06")


def test_a_date_may_be_written_without_a_blank_before_the_next_element() -> None:
    html = f"{_TITLE}{_HEAD}<div><span class=date>5 May 2024</span><span>Science</span></div>{_BODY}"
    assert _record(html, headline={"type": "string"}, published=_DATE)["published"] == "2024-05-05"


def test_the_page_states_the_date_of_its_article() -> None:
    """Some sites describe only the page, not the article."""
    data = """{"@graph": [{"@type": "WebPage", "url": "https://a.test/x", "datePublished": "2024-05-05"},
        {"@type": "WebPage", "url": "https://a.test/y", "datePublished": "2023-01-01"}]}"""
    html = f"{_TITLE}<script type='application/ld+json'>{data}</script>{_HEAD}{_BODY}"
    page = record_claims.sources_of("1", "https://a.test/x", html.encode(), "text/html; charset=utf-8")
    found = [
        one.value for one in record_claims.extract(schema.load("article"), [page]).claims if one.path == "/published"
    ]
    assert found == ["2024-05-05"]


def test_the_name_of_the_site_in_a_title_is_no_author() -> None:
    authors = {"type": "array", "items": {"type": "string"}}
    html = "<title>姚明对周琦说了啥_网易新闻</title><meta name=author content=网易><h1>姚明对周琦说了啥</h1>"
    assert _record(html, headline={"type": "string"}, authors=authors) == {"headline": "姚明对周琦说了啥"}


@pytest.mark.parametrize(
    "html",
    [
        "<p>Deadline: 5 May 2024</p>",
        "<p>Valid until 5 May 2030</p>",
        "<p>Born 5 May 1950</p>",
        "<p>Gültig bis: 5. Mai 2030</p>",
        "<p>Née le 5 mai 1950</p>",
        "<p>Applications close soon. Closing date: 5 May 2024</p>",
        "<p>The fog came.</p><ol class=commentlist><li><time datetime=2024-05-05>5 May 2024</time> So it was.</ol>",
        "<p>The fog came.</p><h2>Read also</h2><p>Rain <time datetime=2024-05-05>5 May 2024</time></p>",
        "<p>The fog came.</p><h2>Read also</h2><p>Published: 5 May 2024</p>",
    ],
)
def test_dates_of_something_else_are_not_the_day_of_publication(html: str) -> None:
    page = f"<title>Fog on the canal</title><h1>Fog on the canal</h1>{html}"
    assert _record(page, title={"type": "string"}, published=_DATE) == {"title": "Fog on the canal"}


def test_a_date_after_one_of_something_else_is_the_day_of_publication() -> None:
    page = "<title>Fog on the canal</title><h1>Fog on the canal</h1><p>Valid until 5 May 2030</p><p>4 March 2024</p>"
    assert _record(page, title={"type": "string"}, published=_DATE)["published"] == "2024-03-04"
