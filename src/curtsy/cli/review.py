"""`review ...`: what people decide of records that wait for them."""

from __future__ import annotations

import getpass
import json
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli import show as shown
from curtsy.cli.commands import Commands
from curtsy.cli.options import AsJson, Config, DataDir, OfCrawl, number_of, stored
from curtsy.cli.records import shown_of
from curtsy.cli.remote import Api, client
from curtsy.cli.show import say, when
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.export import pages
from curtsy.records import review
from curtsy.records.review import ReviewCase
from curtsy.store import crawls, records
from curtsy.store.engine import Store

app = Commands("Review records that need a decision.")
Which = Annotated[int, typer.Argument(metavar="RECORD", min=1, max=2**63 - 1, help="Number of a record.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who decides; by default who is logged in here.")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why.")]
Golden = Annotated[bool, typer.Option("--golden", help="It shall become a golden case.")]
#: of a text around a quote
_AROUND = 60


@app.command("list")
def list_(
    crawl: OfCrawl = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**6, metavar="N", help="At most so many.")] = 100,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the records that wait for a person, oldest first."""
    if api:
        found = list(islice(client(api).items("/v1/reviews", crawl=crawl, limit=min(limit, 1000)), limit))
    else:
        with stored(config, data_dir) as (_settings, store):
            found = _waiting(store, crawl, limit)
    if as_json:
        shown.document({"records": found})
        return
    rows = [
        (one["id"], one["schema"], ", ".join(one["confidence"].get("reasons", ())), len(one["fields"]),
         len(one["withheld"]), one["url"])
        for one in found
    ]  # fmt: skip
    shown.table(["record", "schema", "why", "values", "withheld", "url"], rows)


def _waiting(store: Store, crawl: str | None, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = 0
    n = number_of(store, crawl)
    while len(found) < limit:
        with store.read() as tx:
            some, after = records.chunk(tx, n, after, min(500, limit - len(found)), statuses=("held",))
        if not some:
            break
        found += [_line(store, ReviewCase(record=record, sources=(), history=())) for record in some]
    return found


@app.command()
def show(
    record: Which, api: Api = None, config: Config = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Show a record: its values with the words they rest on, what is withheld and why, every decision."""
    found = client(api).get(f"/v1/records/{record}/review") if api else _known(record, config, data_dir)
    if as_json:
        shown.document(found)
    else:
        _print(found)


@app.command()
def approve(
    record: Which,
    by: By = None,
    note: Note = "",
    golden: Golden = False,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Publish a record as it is; what is withheld of it stays withheld."""
    said = {"decision": "approve", "by": by, "note": note, "golden": golden}
    _decide(record, said, api, config, data_dir, as_json)


@app.command()
def reject(
    record: Which,
    by: By = None,
    note: Note = "",
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Never publish a record."""
    _decide(record, {"decision": "reject", "by": by, "note": note}, api, config, data_dir, as_json)


@app.command()
def correct(
    record: Which,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="POINTER=JSON", help="The right value: '/founded_year=1954'; null for none."),
    ],
    by: By = None,
    note: Note = "",
    golden: Golden = False,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Put values right and publish the record."""
    said = {"decision": "correct", "by": by, "note": note, "correction": _correction(values), "golden": golden}
    _decide(record, said, api, config, data_dir, as_json)


@app.command("export-golden")
def export_golden(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A folder for each case goes there.")],
    record: Annotated[
        list[int] | None, typer.Option("--record", metavar="N", help="Only these records, marked as golden or not.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every approved or corrected record, marked or not.")] = False,
    crawl: OfCrawl = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write golden cases: the stored pages of reviewed records, their schema, and what is right."""
    with stored(config, data_dir) as (settings, store):
        n, segments = number_of(store, crawl), pages.segments_of(settings)
        made = review.export_golden(store, segments, out, crawl=n, every=every, only=frozenset(record or ()))
    if as_json:
        shown.document({"cases": [str(case) for case in made]})
    else:
        shown.say(f"{len(made):,} golden cases are in {out}")


# What they share


def _correction(values: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in values:
        pointer, equals, told = one.partition("=")
        if not equals or not pointer.startswith("/"):
            raise UsageError(f"--set {one!r} is not POINTER=JSON, for example '/founded_year=1954'.")
        try:
            found[pointer] = json.loads(told)
        except ValueError:
            found[pointer] = told  # words need no quotation marks
    return found


def _decide(
    record: int, said: dict[str, Any], api: str | None, config: Path | None, data_dir: Path | None, as_json: bool
) -> None:
    """`said` as the API takes it."""
    if api:
        found = client(api).post(f"/v1/records/{record}/review", said)
    else:
        who = said.pop("by") or getpass.getuser()
        with stored(config, data_dir, looks=False) as (_settings, store):
            review.decide(store, record, review.Decision(who=who, **said), clock.now_ms())
            found = _line(store, review.review_case(store, record))
    if as_json:
        shown.document(found)
    else:
        shown.say(f"Record {record} is {found['status']}.")


def _known(record: int, config: Path | None, data_dir: Path | None) -> dict[str, Any]:
    with stored(config, data_dir) as (_settings, store):
        return _line(store, review.review_case(store, record))


def _line(store: Store, known: ReviewCase) -> dict[str, Any]:
    """The fields that the API gives."""
    record = known.record
    with store.read() as tx:
        crawl = crawls.ids(tx, [record.crawl]).get(record.crawl)
    names = ("decision", "who", "note", "correction", "before", "golden")
    history = [{**{name: getattr(one, name) for name in names}, "at": when(one.at_ms)} for one in known.history]
    withheld = [{"note": "", "claimed_quote": None, **one} for one in record.withheld]
    sources = [one._asdict() | {"page": f"{record.crawl}-{one.page}"} for one in known.sources]
    found = shown_of(record) | {"crawl": crawl, "withheld": withheld}
    return found | {"sources": sources, "reviews": history}


def _print(found: dict[str, Any]) -> None:
    why = ", ".join(found["confidence"].get("reasons", ()))
    say(f"record {found['id']}, version {found['version']}: {found['status']}{f' ({why})' if why else ''}")
    say(f"{found['schema']} of {found['url']}")
    for problem in found["confidence"].get("problems", ()):
        say(f"  does not fit the schema: {problem}")
    texts = {one["sha256"]: one["text"] for one in found["sources"]}
    for field in found["fields"]:
        value = json.dumps(field["value"], ensure_ascii=False)
        say(f"  {field['path']} = {value}  [{field['verdict']}, {field['rung']}]")
        for one in field["evidence"]:
            place = " ".join(filter(None, (one["url"], one["locator"])))
            say(f"      {_context(texts.get(one['sha256']), one)}  ({place})")
    for field in found["withheld"]:
        value = json.dumps(field["value"], ensure_ascii=False)
        say(f"  WITHHELD {field['path']} = {value}  [{field['note'] or field['verdict']}, {field['rung']}]")
        if field["claimed_quote"]:
            say(f"      claimed: {field['claimed_quote']!r}")
    for one in found["reviews"]:
        note = f": {one['note']}" if one["note"] else ""
        say(f"  {one['at']} {one['who']} {one['decision']}{note}")


def _context(text: str | None, evidence: dict[str, Any]) -> str:
    """The quote between the words around it."""
    if text is None or evidence["source"] != "text":
        return f"»{evidence['quote']}«"
    start, end = evidence["start"], evidence["end"]
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    return " ".join(f"{before}»{text[start:end]}«{after}".split())
