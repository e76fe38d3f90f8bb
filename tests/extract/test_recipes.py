"""Recipes: in structured data of all kinds, and as pages show them."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.extract import record_claims
from curtsy.grounding import judge, schema

_TEXT = {"type": "string"}
_PROPERTIES = {"name": _TEXT, "author": _TEXT, "ingredients": {"type": "array", "items": _TEXT}}
RECIPE = schema.inline({"title": "dish", "type": "object", "properties": _PROPERTIES})
TYPED = schema.inline({"type": "object", "properties": _PROPERTIES, "x-curtsy": {"types": ["Recipe"]}})
_HEAD = "<title>Bean soup - Pot</title><h1>Bean soup</h1>"
_TWO = ["1 cup beans", "2 carrots"]
_ITEMS = "<li>1 cup beans</li><li>2 carrots</li>"
_METHOD = "<h2>Method</h2><ol><li>Soak the beans.</li><li>Stir.</li></ol>"


def _ld(data: str) -> str:
    return f'{_HEAD}<script type="application/ld+json">{data}</script>'


def _record(html: str, made: schema.Schema = RECIPE) -> dict[str, Any]:
    page = record_claims.sources_of("1", "https://pot.test/soup", html.encode(), "text/html; charset=utf-8")
    return judge.assemble(made, judge.settle(made, record_claims.extract(made, [page]).claims))


@pytest.mark.parametrize("made", [RECIPE, TYPED], ids=["untyped", "typed"])
@pytest.mark.parametrize(
    "html",
    [
        _ld('{"@type": ["Recipe", "NewsArticle"], "name": "Bean soup", "author": [{"@type": "Person", "name":'
            '"Nora Field"}], "recipeIngredient": ["1 cup beans", "2 carrots"]}'),
        _ld('{"@graph": [{"@type": "Person", "@id": "#n", "name": "Nora Field"}, {"@type": "Recipe", "name":'
            '"Bean soup", "author": {"@id": "#n"}, "recipeIngredient": [["1 cup beans"], ["2 carrots"]]}]}'),
        _ld('{"@type": "WebPage", "mainEntity": {"@type": "http://schema.org/Recipe", "name": "Bean soup", "creator":'
            '"Nora Field", "ingredients": ["1 cup beans", "2 carrots"]}}'),
        _ld('{"@type": "Recipe", "url": "https://first.test/soup", "name": "Bean soup", "author": "Nora Field",'
            '"recipeIngredient": ["1 cup beans", "2 carrots"]}'),
        f'{_HEAD}<div itemscope itemtype="http://schema.org/Recipe"><b itemprop=name>Bean soup</b> <i itemprop=author>'
        'Nora Field</i><p itemprop=ingredients>1 cup beans<p itemprop=ingredients>2 carrots</div>',
        f'{_HEAD}<div vocab="http://schema.org/" typeof=Recipe><b property=name>Bean soup</b> <i property=author>Nora'
        ' Field</i><p property=recipeIngredient>1 cup beans<p property=recipeIngredient>2 carrots</div>',
        f'{_HEAD}<div class=hrecipe><b class=fn>Bean soup</b> by <i class=author>Nora Field</i><ul>'
        '<li class=ingredient>1 cup beans<li class=ingredient>2 carrots</ul></div>',
    ],
    ids=["types", "reference", "main-entity", "elsewhere", "microdata", "rdfa", "hrecipe"],
)  # fmt: skip
def test_a_recipe_in_structured_data(html: str, made: schema.Schema) -> None:
    assert _record(html, made) == {"name": "Bean soup", "author": "Nora Field", "ingredients": _TWO}


@pytest.mark.parametrize(
    "html",
    [
        f"<ul class='recipe-ingredients'>{_ITEMS}</ul>{_METHOD}",
        "<div class=wprm-recipe-ingredients-container>"
        "<p class=wprm-recipe-ingredient><span>1</span> <span>cup</span> beans</p>"
        "<p class=wprm-recipe-ingredient>▢ 2 carrots</p></div>",
        "<div id=ingredients><table><tr><td>1 cup<td>beans<tr><td>2<td>carrots</table></div>",
        "<section class=ingredients__list><h3>For the soup:</h3><p>1 cup beans<p>2 carrots</section>",
        f"<div class=field--name-field-ingredients><ul>{_ITEMS}</ul></div>",
        f"<div class=ERSIngredients><ul>{_ITEMS}</ul></div>",
        f"<h2>Ingredients</h2><ul>{_ITEMS}</ul>{_METHOD}",
        f"<h2>Zutaten (für 2 Personen)</h2><h3>Suppe</h3><ul>{_ITEMS}</ul>"
        "<h2>Zubereitung</h2><ol><li>Rühren.<li>Kochen.</ol>",
        "<p><b>Ingredients:</b><br>1 cup beans<br>2 carrots<p><b>Directions</b><br>Stir.",
        # an article that explains ingredients above its recipe
        f"<ul><li class=ingredient>Beans<li class=ingredient>Carrots</ul><ul class=card-ingredients>{_ITEMS}</ul>",
    ],
)  # fmt: skip
def test_ingredients_that_only_the_page_shows(html: str) -> None:
    page = f"{_HEAD}<p class=byline>By Nora Field</p>{html}<ul><li>Home</li><li>About 7 of us</li></ul>"
    assert _record(page) == {"name": "Bean soup", "author": "Nora Field", "ingredients": _TWO}


@pytest.mark.parametrize(
    "html",
    [
        f"<h2>Menu</h2><ul>{_ITEMS}</ul>",
        "<p>Ingredients matter: 1 cup beans.</p><ul><li>a</li><li>b</li></ul>",
        "<p class=ingredients-note>Beans</p>",
        "<ul class=ingredients><li>1 cup beans</ul>",
        "<h2>Ingredients</h2><p>" + "Beans are old. " * 30 + "<p>Carrots are not.<h2>Method</h2>",
    ],
)
def test_lists_that_are_no_ingredients(html: str) -> None:
    assert "ingredients" not in _record(_HEAD + html)


def test_a_list_of_recipes_is_none_of_them() -> None:
    two = '[{"@type": "Recipe", "name": "Pie", "author": "Ida"}, {"@type": "Recipe", "name": "Cake", "author": "Tom"}]'
    assert _record(_ld(two).replace("Bean soup", "Recipes")) == {}


def test_a_recipe_may_be_by_the_site_but_an_article_may_not() -> None:
    data = '{"@type": "Recipe", "name": "Bean soup", "author": "Pot", "recipeIngredient": ["1 cup beans"]}'
    html = f'<meta property="og:site_name" content="Pot">{_ld(data)}<p class=byline>By Nora Field</p>'
    assert _record(html)["author"] == "Pot"
    article = schema.inline({"type": "object", "properties": {"headline": _TEXT, "author": _TEXT}})
    assert _record(html, article)["author"] == "Nora Field"
    site = "<meta property='og:site_name' content='Pot House'>"
    shown = f"{site}{_HEAD}<p class=author>Pot House</p><ul class=ingredients>{_ITEMS}</ul>"
    assert _record(shown)["author"] == "Pot House"


def test_the_text_of_a_whole_item_is_no_name() -> None:
    html = (
        f"<div class=h-recipe>{'Beans and more beans. ' * 30}<h1>Bean soup</h1><p class=p-ingredient>1 cup beans</div>"
    )
    assert _record(f"<title>Bean soup</title>{html}")["name"] == "Bean soup"


@pytest.mark.parametrize(
    "html",
    [
        f"<div class=related><h3>Lentil stew</h3><ul class=ingredients>{_ITEMS}</ul></div>",
        f"<ol class=commentlist><li><h3>Ingredients</h3><ul>{_ITEMS}</ul></ol>",
        f"<div class=comment><p>Ingredients</p><ul>{_ITEMS}</ul></div>",
        f"<h2>More recipes</h2><h3>Ingredients</h3><ul>{_ITEMS}</ul>",
        f"<div class=comment><p>Ingredients</p><p>1 cup beans</p><p>2 carrots</p>{_METHOD}</div>",
        "<h2>Ingredients</h2><p>See the video.</p><ul><li><a href=/>Home</a><li><a href=/c>Contact</a></ul>",
    ],
    ids=["related", "comment-list", "comment", "more-recipes", "lines-of-comment", "menu"],
)
def test_lists_of_others_and_menus_are_no_ingredients(html: str) -> None:
    assert "ingredients" not in _record(f"{_HEAD}<p>{'A soup of beans. ' * 20}</p>{html}")


def test_controls_above_the_ingredients_do_not_hide_them() -> None:
    assert _record(f"{_HEAD}<h2>Share this</h2><h3>Ingredients</h3><ul>{_ITEMS}</ul>{_METHOD}")["ingredients"] == _TWO


def test_linked_ingredients_with_quantities_count() -> None:
    items = "<li><a href=/b>1 cup beans</a><li><a href=/c>2 carrots</a>"
    assert _record(f"{_HEAD}<h2>Ingredients</h2><ul>{items}</ul>{_METHOD}")["ingredients"] == _TWO


_FOUR = ["1 cup beans", "200 g carrots", "2 tbsp oil", "salt"]
_LINES = "".join(f"<li>{one}</li>" for one in _FOUR)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<h3>For four:</h3><ul>{_LINES}</ul><p>Soak the beans.", _FOUR),
        (f"<blockquote><p>{'<br>'.join(_FOUR)}</p></blockquote><p>Soak the beans.", _FOUR),
        # two lists of one recipe
        (f"<ul>{_LINES}</ul><p>Dressing</p><ul><li>1 tsp mustard<li>3 tbsp cream<li>1 lemon</ul>",
         [*_FOUR, "1 tsp mustard", "3 tbsp cream", "1 lemon"]),
        # a row has several ingredients
        ("<div class=ingredients><table><tr><td><h4>Soup:</h4><p>1 cup beans<br>200 g carrots<br>2 tbsp oil"
         "<tr><td><p>salt</table></div>", _FOUR),
        # properties outside of an item
        ("<ul><li itemprop=ingredients>1 cup beans<li itemprop=ingredients>salt</ul>", ["1 cup beans", "salt"]),
        # the box has what a serving contains
        (f"<div class=recipe--ingredients><ul>{_LINES}</ul><div class=recipe--nutrients><ul><li>protein: 2 g"
         f"<li>carbs: 5 g</ul></div></div>{_METHOD}", _FOUR),
        # the first list below the label is no list of amounts
        (f"<h2>Ingredients</h2><ul><li>for two<li>easy</ul><ul>{_LINES}</ul>", _FOUR),
        # a link to the ingredients
        (f"<p>Ingredients<ul><li>Blog<li>Shop<li>About</ul><p>Ingredients:</p><ul>{_LINES}</ul>{_METHOD}", _FOUR),
        (f"<h2>Dit heb je nodig (twee personen)</h2><ul>{_ITEMS}</ul><h2>Zo maak je het</h2>", _TWO),
    ],
    ids=["list", "paragraph", "two-lists", "row", "microdata", "nutrients", "first-list", "link", "dutch"],
)  # fmt: skip
def test_where_pages_list_amounts(html: str, expected: list[str]) -> None:
    page = f"{_HEAD}<p>{'A soup of beans. ' * 20}</p>{html}<p>{'It keeps for days. ' * 9}</p>"
    assert _record(page)["ingredients"] == expected


@pytest.mark.parametrize(
    "html",
    [
        "<ul><li>20 g protein<li>30 g carbs<li>9 g sugar</ul>",
        "<ol><li>1 Soak the beans.<li>2 Cut the carrots.<li>3 Stir.</ol>",
        "<ul><li><a href=/a>15 easy soups</a><li><a href=/b>9 stews</a><li><a href=/c>20 pies</a></ul>",
        f"<div class=related><ul>{_LINES}</ul></div>",
        # points beside each name
        "<h2>Ingredients</h2><div>Beans</div><div>0 points</div><div>Carrots</div><div>0 points</div><div>Oil</div>"
        "<div>0 points</div><h2>Method</h2>",
    ],
    ids=["nutrition", "steps", "links", "related", "points"],
)
def test_amounts_that_are_no_ingredients(html: str) -> None:
    assert "ingredients" not in _record(f"{_HEAD}<p>{'A soup of beans. ' * 20}</p>{html}")


def test_an_ingredient_in_parts_keeps_its_amount() -> None:
    parts = "<li itemprop=ingredient itemscope><b itemprop=amount>{}</b> <i itemprop=name>{}</i>"
    items = parts.format("1 cup", "beans") + parts.format("2", "carrots")
    html = (
        f"{_HEAD}<div itemscope itemtype=https://schema.org/Recipe><b itemprop=name>Bean soup</b><ul>{items}</ul></div>"
    )
    assert _record(html)["ingredients"] == _TWO


def test_one_text_with_all_ingredients_does_not_count() -> None:
    data = '{"@type": "Recipe", "name": "Bean soup", "recipeIngredient": "1 cup beans, 2 carrots, 3 tbsp oil, 1 lemon"}'
    assert _record(_ld(data) + f"<h2>Ingredients</h2><ul>{_ITEMS}</ul>{_METHOD}")["ingredients"] == _TWO


def test_properties_may_begin_with_a_capital() -> None:
    data = (
        '{"@type": "Recipe", "name": "Bean soup", "Author": {"name": "Nora Field"}, "recipeIngredient": ["2 carrots"]}'
    )
    assert _record(_ld(data))["author"] == "Nora Field"


def test_a_page_whose_own_title_is_the_name_of_the_site_has_a_name() -> None:
    names = "<meta property=og:title content='Bean soup'><meta property=og:site_name content='Bean soup'>"
    assert _record(f"{names}{_HEAD}<h2>Ingredients</h2><ul>{_ITEMS}</ul>{_METHOD}")["name"] == "Bean soup"


def test_a_recipe_names_its_author_in_the_footer_of_its_heading() -> None:
    html = f"{_HEAD}<div class=single-hero__footer><h6><span>Recipe by </span><span>Nora Field</span></h6></div>"
    assert _record(f"{html}<h2>Ingredients</h2><ul>{_ITEMS}</ul>{_METHOD}")["author"] == "Nora Field"
