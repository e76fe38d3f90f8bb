"""Parts of pages by their roles, microdata, links and phrases: which are content, and which are not."""

from __future__ import annotations

import pytest

from curtsy.content.document import Document
from curtsy.content.main_content import PageType

SENTENCE = "The ferry crosses the strait four times a day, and in summer it takes bicycles without a ticket. "
MENU = '<nav><a href="/a">Timetables</a> <a href="/b">Fares and more</a> <a href="/c">Harbors</a></nav>'


def page(body: str, title: str = "The ferry", head: str = "", url: str = "https://ferry.test/page") -> Document:
    html = f"<html><head><title>{title}</title>{head}</head><body>{MENU}{body}</body></html>"
    return Document.parse(html.encode(), "text/html; charset=utf-8", url)


# Types


@pytest.mark.parametrize(
    "said",
    [
        '[{"@type": ["WebPage", "FAQPage"]}, {"@type": "Question"}]',
        '[{"@type": "Article"}, {"@type": "Question"}]',
    ],
)
def test_questions_of_an_article_make_no_forum(said: str) -> None:
    comments = "".join(f'<li class="comment">{n} days ago: {SENTENCE}</li>' for n in range(3))
    document = page(
        f'<article><h1>The ferry</h1><p>{SENTENCE * 8}</p></article><ol class="comment-list">{comments}</ol>',
        head=f'<script type="application/ld+json">{said}</script>',
    )
    assert document.page_type() is not PageType.FORUM
    assert "days ago" not in document.main_text()


def test_every_type_of_a_list_counts() -> None:
    said = '<script type="application/ld+json">{"@type": [ "Thing",\n "https://schema.org/BlogPosting" ]}</script>'
    assert page(f"<div><h1>The ferry</h1><p>{SENTENCE}</p></div>", head=said).page_type() is PageType.ARTICLE


def test_the_classes_of_a_recipe_are_no_posts() -> None:
    steps = "".join(f'<div class="cooked-dir-content"><p>{n}: {SENTENCE}</p></div>' for n in range(4))
    assert page(f"<div><h1>The ferry</h1>{steps}</div>").page_type() is not PageType.FORUM


def test_the_button_to_edit_a_blog_is_no_post() -> None:
    edit = '<span class="item-control blog-admin pid-533645473"><a href="#">Edit this entry</a></span>'
    body = f'<div><h1>The ferry</h1><div class="post-body"><p>{SENTENCE * 6}</p>{edit}</div></div>'
    assert page(body + edit).page_type() is not PageType.FORUM
