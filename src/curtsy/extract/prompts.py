"""Prompts for a language model: the texts in prompt_texts/, the fields, and the pages between unguessable marks.

A page may contain sentences that pretend to be instructions. Three measures here work against them, before grounding
(a value without evidence in the page is never published):
    the pages are enclosed in marks that they cannot contain: the mark is a hash of their content;
    characters that servers read as the end of a message (`<|im_end|>`, `[INST]`) and invisible ones are removed;
    paragraphs that address a model are not shown.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol

from curtsy.core.claims import Source
from curtsy.extract import answer_schema
from curtsy.extract.answer_schema import Style
from curtsy.extract.chunks import Passage, choose, tokens_of
from curtsy.grounding.schema import Leaf, Schema

#: increment when this module changes a prompt; the files in prompt_texts/ are hashed
_FORM = 2
_FILES = ("ask", "ask_value", "extract", "extract_value", "question", "repair")
#: hex digits: a page that contains its own mark would take 2**64 attempts to find
_MARK_DIGITS = 16

_BRACKETED = re.compile(r"\[(/?[A-Z][A-Z_]{2,30})\]")
_TO_A_MODEL = re.compile(
    r"\b(ignore|disregard|forget|override|bypass)"
    r"(\W+(all|any|every|of|the|your|my|our|these|those|this|previous|prior|above|earlier|preceding|other|given|system))*"
    r"\W+(instructions?|prompts?|guidelines|(?<=previous )\w+|(?<=prior )\w+|(?<=above )\w+|(?<=earlier )\w+)\b"
    r"|\b(you are|act as|pretend to be|behave as)\b.{0,30}\b(ai|a\.i\.|assistant|language model|llm|chatbot|gpt)\b"
    r"|\b(system|developer|hidden) (prompts?|message|override|instructions?)\b"
    r"|\b(attention|dear|note (to|for)|instructions? (to|for)|message (to|for))\b.{0,20}"
    r"\b(ais?|llms?|language models?|(ai|chat) ?(assistants?|agents?|bots?))\b"
    r"|<\|?/?\s{0,3}(im_start|im_end|system|user|assistant|start_of_turn|end_of_turn|endoftext|eot_id)\b"
    r"|\[/?INST\]",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one call. `content` is the part that comes from the pages."""

    system: str
    user: str
    content: str


@cache
def version() -> str:
    """Identifies the prompts: answers to other prompts are not comparable."""
    text = "\0".join([str(_FORM), *map(_text, _FILES)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def prompt_texts(leaves: Sequence[Leaf]) -> list[str]:
    """Return everything in the prompt except the pages: a value that repeats it is not a finding."""
    texts = [_text(name) for name in ("extract", "extract_value", "ask", "ask_value")]
    return [*texts, *(leaf.description for leaf in leaves if leaf.description)]


class Page(Protocol):
    """What a prompt needs of a page."""

    @property
    def text(self) -> Source: ...

    @property
    def shown(self) -> str: ...


def extraction(
    schema: Schema, leaves: Sequence[Leaf], pages: Sequence[Page], budget_tokens: int, style: Style = Style.QUOTE
) -> Prompt | None:
    """Return the prompt for these pages; None if nothing in them can state one of the values."""
    shown = choose(
        [page.shown for page in pages], leaves, budget_tokens, leave_out=speaks_to_a_model,
        layouts=[page.text.layout for page in pages],
        # Quotes of documents need not relate to their field, so all their passages count.
        related=[page.text.context is not None for page in pages],
    )  # fmt: skip
    if not shown:
        return None
    content = _content(shown, len(pages))
    mark = _mark(content)
    names = ", ".join(map(_name, leaves))
    if style is Style.VALUE:
        fields = " ".join(f"{_name(leaf).replace('_', ' ')}? {leaf.description}" for leaf in leaves)
        user = _text("ask_value").format(mark=mark, fields=fields, pages=content, names=names)
        return Prompt(_text("extract_value"), user, content)
    parts = {"fields": _fields(schema, leaves), "names": names, "form": answer_schema.form_of(leaves)}
    user = _text("ask").format(mark=mark, pages=content, **parts)
    return Prompt(_text("extract").format(mark=mark), user, content)


def judgment(question: str, texts: Sequence[str], budget_tokens: int) -> Prompt:
    """Return the prompt for a rubric's question about texts, as many of them as fit."""
    shown: list[str] = []
    for text in texts:
        budget_tokens -= tokens_of(text)
        if budget_tokens >= 0 and text.strip() and not speaks_to_a_model(text):
            shown.append(plain(text))
    content = "\n\n".join(shown)
    mark = _mark(content)
    asked = f"Question: {question}"
    user = f"{asked}\n\nMark {mark}: the texts begin.\n{content}\nMark {mark}: the texts end.\n\n{asked}"
    return Prompt(_text("question").format(mark=mark), user, content)


def repair(problem: str) -> str:
    return _text("repair").format(problem=problem)


def plain(text: str) -> str:
    """Remove what a server could take for the end of a message, and invisible characters."""
    kept = "".join(
        sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Co", "Cs")
    )
    return _BRACKETED.sub(r"(\1)", kept.replace("<", "‹").replace(">", "›"))


def unplain(quote: str) -> str:
    """Return a quote as the page has it."""
    return quote.replace("‹", "<").replace("›", ">")


def speaks_to_a_model(text: str) -> bool:
    """Return whether a paragraph addresses a model. Not a complete filter: what passes still needs evidence."""
    return _TO_A_MODEL.search(unicodedata.normalize("NFKC", text)) is not None


def text(name: str) -> str:
    """Return a text of prompt_texts/."""
    return _text(name)


def mark_of(content: str) -> str:
    """Return a mark that the content does not contain."""
    return _mark(content)


@cache
def _text(name: str) -> str:
    return files("curtsy.extract").joinpath("prompt_texts", f"{name}.txt").read_text("utf-8").strip()


def _content(shown: Sequence[Passage], pages: int) -> str:
    found: list[str] = []
    before, context = -1, ""
    for one in shown:
        if one.page != before and pages > 1:
            found.append(f"(page {one.page + 1})")
        if one.context and (one.context, one.page) != (context, before):
            found.append(f"({plain(one.context)})")
        before, context = one.page, one.context
        found.append(plain(one.text))
    return "\n".join(found)


def _mark(content: str) -> str:
    """Return a mark that cannot occur in the content, because it is the content's hash."""
    mark = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:_MARK_DIGITS]
    return mark if mark not in content else _mark(content + mark)


def _fields(schema: Schema, leaves: Sequence[Leaf]) -> str:
    about = [f"(of: {schema.description or schema.name})"]
    return "\n".join(about + [f"- {_name(leaf)} ({_type(leaf)}){_described(leaf)}" for leaf in leaves])


def _described(leaf: Leaf) -> str:
    return f": {leaf.description}" if leaf.description else ""


def _type(leaf: Leaf) -> str:
    return "one of " + ", ".join(map(str, leaf.enum)) if leaf.enum else "text" if leaf.type == "string" else leaf.type


def _name(leaf: Leaf) -> str:
    return leaf.path[1:].replace("/*", "[]").replace("/", ".")
